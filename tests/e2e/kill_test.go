package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/verify"
	"turnstone/providers/model/modeltest"
)

const (
	killRounds    = 20 // in all
	killTurns     = 3  // live at every kill
	killTokens    = 30
	killInterval  = 15 * time.Millisecond
	killDirective = "[[script tokens=30 ttft=15ms interval=15ms]]"
	richDirective = "[[script tokens=24 reasoning=6 tool=calculate:30ms:ok code=go ttft=15ms interval=12ms]]"
	// killWithin limits the number of the event that the kill waits for. A steered turn has a few more events.
	killWithin = killTokens + 20
	// killJitter bounds the delay after that event. With a delay, kills also happen between two events, during a commit
	// or during a response.
	killJitter = 25 * time.Millisecond
	roundTime  = time.Minute
)

// recovery describes how a model continues an answer that was cut, and what the complete answer contains.
type recovery struct {
	name   string
	rounds int
	model  func(modeltest.Request) modeltest.Step // of a vendor whose model has to start over; nil: the scripted model, which continues
	text   string                                 // the first message of the turns
	// checkText checks a complete message against the question. applied is the text of the steering input that was
	// applied, or "". If checkText is nil, no turn is steered, and the message must be equal to that of a turn that was
	// not cut.
	checkText func(parts []string, asked, applied string) error
}

var recoveries = []recovery{
	{name: "a model that continues where it was cut", rounds: killRounds * 7 / 20, text: killDirective, checkText: checkContinuedAnswer},
	{name: "a model that has to start over", rounds: killRounds * 7 / 20, text: "Recite.", checkText: checkSupersededAnswer, model: recitingModel},
	{name: "reasoning, a tool and code, with a model that continues", rounds: killRounds * 3 / 20, text: richDirective},
	{name: "reasoning, a tool and code, with a model that starts over", rounds: killRounds * 3 / 20, text: "Calculate.", model: toolModel},
}

// TestKillNineLosesNothing kills the built binary at random moments of its turns and restarts it. Everything that was
// acknowledged or seen before must still be there, and each turn must reach its only end in a log without gaps.
func TestKillNineLosesNothing(t *testing.T) {
	for _, how := range recoveries {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			runKillRounds(t, how)
		})
	}
}

// environment configures the model of the recovery, which keeps running when the program is killed.
func (r recovery) environment(t *testing.T) []string {
	t.Helper()
	if r.model == nil {
		return nil
	}
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: r.model, Interval: killInterval})
	t.Cleanup(server.Close)
	return []string{
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=" + server.URL, "TURNSTONE_MODEL_BALANCED=reciter",
		"TURNSTONE_MODEL_CODING=reciter",
	}
}

// checkContinuedAnswer checks the answer of the scripted model: the passage of the directive or, if an input was
// applied, a prefix of that passage, an acknowledgement and the whole passage again. If the answer was cut while the
// input was pending, the prefix may end anywhere.
func checkContinuedAnswer(parts []string, _, applied string) error {
	said, passage := strings.Join(parts, ""), sitetest.ScriptedText(killDirective)
	if applied != "" {
		var whole bool
		if said, whole = strings.CutSuffix(said, "Taking into account: "+applied+"\n\n"+passage); !whole || !strings.HasPrefix(passage, said) {
			return fmt.Errorf("the answer of the steered turn is %q", parts)
		}
		return nil
	}
	if said != passage {
		return fmt.Errorf("the answer is %q", parts)
	}
	return nil
}

// recitingModel answers with words that quote the last message.
func recitingModel(request modeltest.Request) modeltest.Step {
	return modeltest.Step{
		Text: reciting(request.Messages[len(request.Messages)-1].Text), Usage: &llm.Usage{InputTokens: 1, OutputTokens: killTokens},
	}
}

func reciting(asked string) []string {
	pieces := []string{"Of “" + asked + "”: "}
	for i := range killTokens {
		pieces = append(pieces, strconv.Itoa(i)+" ")
	}
	return pieces
}

// toolModel calls a tool after some reasoning, and then answers with code.
func toolModel(request modeltest.Request) modeltest.Step {
	usage := &llm.Usage{InputTokens: 1, OutputTokens: killTokens}
	if last := request.Messages[len(request.Messages)-1]; last.Role == "tool" {
		text := []string{"It ", "is ", last.Text, ".\n\n", "```", "go\n", "func ", "main() ", "{\n", "}\n", "```\n", "\n"}
		return modeltest.Step{Reasoning: []string{"So ", "that ", "is it."}, Text: append(text, reciting("a tool")...), Usage: usage}
	}
	step := modeltest.ToolThenAnswer("calculate", `{"expression":"6*7"}`)(request)
	step.Reasoning, step.Text = []string{"A ", "sum ", "then."}, []string{"Let ", "me ", "see. "}
	return step
}

// checkSupersededAnswer checks the answer of a model that has to start over: every answer is complete, and an answer
// that was cut is no longer in the message.
func checkSupersededAnswer(parts []string, asked, applied string) error {
	want := []string{strings.Join(reciting(asked), "")}
	if applied != "" {
		if want = append(want, strings.Join(reciting(applied), "")); len(parts) == 1 {
			// It was applied before the first answer was complete. That answer was dropped, so the model got both messages
			// of the user as one.
			want = []string{strings.Join(reciting(asked+"\n\n"+applied), "")}
		}
	}
	if strings.Join(parts, "|") != strings.Join(want, "|") {
		return fmt.Errorf("the answer is %q, want %q", parts, want)
	}
	return nil
}

// outline describes the parts of a message without the fields that differ between turns.
func outline(parts []protocol.Part) string {
	var lines strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&lines, "%s %q %s %q %s %s %s %q %t %t\n", part.Type, part.Text, part.Language, part.Code, part.ToolName, part.Input,
			part.State, part.Output, part.Truncated, part.Open)
	}
	return lines.String()
}

func runKillRounds(t *testing.T, how recovery) {
	s := sitetest.NewSite(t, how.environment(t)...)
	p := s.Start()
	seed := testSeed(t)
	first := sitetest.NewUser(t, s.Base)
	uncut, end := first.Chat(t, sitetest.NewChatBody(how.text)).ReadToEnd(t)
	if end.Status != protocol.TurnCompleted {
		t.Fatalf("without a kill the turn ended %s", end.Status)
	}
	want := outline(sitetest.Fold(uncut))
	kinds := map[string]int{}
	for round := range how.rounds {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		at, jitter := random.Int64N(killWithin), time.Duration(random.Int64N(int64(killJitter)))
		atReceipt := round%3 == 2
		t.Logf("round %d: kill at event %d + %s, or at a receipt: %t", round, at, jitter, atReceipt)
		ctx := sitetest.Within(t, roundTime)
		u := sitetest.NewUser(t, s.Base) // a new user per round, because an account has ten cancels a minute
		turns := make([]*killedTurn, killTurns)
		var running sync.WaitGroup
		for i := range turns {
			turns[i] = newKilledTurn(u, u.NewConversation(t), how, random)
		}
		if atReceipt {
			turns[0].commandAt(at%killTokens, how)
		}
		for _, turn := range turns {
			running.Go(func() { turn.run(ctx) })
		}
		if atReceipt { // the acknowledged command must be durable by then
			turns[0].awaitDecided(ctx)
		} else {
			turns[0].awaitEvent(ctx, at)
			if err := clock.Sleep(ctx, jitter); err != nil {
				t.Fatal(err)
			}
		}
		over := u.Ledger.Plan()
		p.Kill()
		p = s.Start()
		running.Wait()
		over()
		for i, turn := range turns {
			if err := turn.check(t, how, want); err != nil {
				t.Errorf("round %d, turn %d (%s): %v", round, i, turn.turn, err)
			}
			for _, kind := range turn.notes {
				kinds[kind]++
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("seen: %v", kinds)
	if kinds["recovered"] == 0 {
		t.Error("no turn was recovered, so the kills prove nothing")
	}
}

// testSeed returns a random seed, or the one in TURNSTONE_TEST_SEED, which repeats a run.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("TURNSTONE_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("TURNSTONE_TEST_SEED=%d", seed)
	return seed
}

// killedTurn is a turn with three clients: one that starts it and reads, one that only reads, and one that steers or
// cancels. All of them keep trying while the service is down.
type killedTurn struct {
	u            *sitetest.User
	conversation string
	text         string
	key          string
	steerAt      int64 // number of the event at which to steer; -1: never
	cancelAt     int64

	began        chan struct{} // closed when turn is known
	turn         string        // set before began is closed
	acknowledged chan struct{} // closed when steerOrCancel has finished: every command was decided

	mu      sync.Mutex
	last    int64         // guarded by mu: the number of the newest event that a client saw
	moved   chan struct{} // guarded by mu: closed at the next event
	over    bool          // guarded by mu
	failure error         // guarded by mu

	steered, cancelled sitetest.Receipt // owned by steerOrCancel until run returns
	notes              []string
}

func newKilledTurn(u *sitetest.User, conversation string, how recovery, random *rand.Rand) *killedTurn {
	k := &killedTurn{
		u: u, conversation: conversation, text: how.text, key: fmt.Sprintf("key-%x", random.Uint64()),
		steerAt: -1, cancelAt: -1, began: make(chan struct{}), moved: make(chan struct{}),
		acknowledged: make(chan struct{}),
	}
	switch drawn := random.IntN(4); {
	case drawn <= 1 && how.checkText != nil:
		k.steerAt = random.Int64N(killTokens)
	case drawn == 2:
		k.cancelAt = random.Int64N(killTokens)
	}
	return k
}

// commandAt makes the turn steer, or cancel if it cannot be steered, at an event.
func (k *killedTurn) commandAt(sequence int64, how recovery) {
	k.steerAt, k.cancelAt = sequence, -1
	if how.checkText == nil {
		k.steerAt, k.cancelAt = -1, sequence
	}
}

// awaitDecided waits until the commands were decided.
func (k *killedTurn) awaitDecided(ctx context.Context) {
	select {
	case <-k.acknowledged:
	case <-ctx.Done():
	}
}

func (k *killedTurn) steeringText() string { return "steer with " + k.key }

// run runs the clients and returns when each of them has seen the end of the turn.
func (k *killedTurn) run(ctx context.Context) {
	var clients sync.WaitGroup
	clients.Go(func() { k.fail(k.begin(ctx)) })
	clients.Go(func() { k.fail(k.follow(ctx)) })
	clients.Go(func() { k.fail(k.steerOrCancel(ctx)) })
	clients.Wait()
}

func (k *killedTurn) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure == nil {
		k.failure = err
	}
}

// recordEvent records an event that a client received.
func (k *killedTurn) recordEvent(e sitetest.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = max(k.last, e.Sequence)
	k.over = k.over || e.Type == "turn.finished"
	close(k.moved)
	k.moved = make(chan struct{})
}

// awaitEvent waits until a client has seen the event with the given number, or the end of the turn. For 0 it returns at
// once.
func (k *killedTurn) awaitEvent(ctx context.Context, sequence int64) {
	for {
		k.mu.Lock()
		there, moved := k.last >= sequence || k.over || k.failure != nil, k.moved
		k.mu.Unlock()
		if there {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// begin repeats the start, always with the same key, until it gets a stream, and reads the stream to its end.
func (k *killedTurn) begin(ctx context.Context) error {
	body := sitetest.NewChatBody(k.text).In(k.conversation)
	var s *sitetest.Stream
	var refused *sitetest.Response
	var err error
	attempts := 0
	waited := clocktest.Poll(ctx, sitetest.PollEvery, func() bool {
		attempts++
		s, refused, err = k.u.TryChat(ctx, body, "Idempotency-Key", k.key)
		return s != nil || refused != nil && refused.Status != http.StatusServiceUnavailable &&
			(refused.Status != http.StatusConflict || !strings.Contains(string(refused.Body), `"idempotency_in_progress"`))
	})
	switch {
	case waited != nil:
		return errors.Join(waited, err)
	case s == nil:
		return fmt.Errorf("POST /chat, request %d: %d %s", attempts, refused.Status, refused.Body)
	}
	if attempts > 1 && s.Header.Get("Idempotent-Replayed") == "true" {
		k.notes = append(k.notes, "start replayed")
	}
	k.turn = s.Turn
	close(k.began)
	return k.u.Watch(ctx, s.Turn, s, k.recordEvent)
}

func (k *killedTurn) follow(ctx context.Context) error {
	select {
	case <-k.began:
	case <-ctx.Done():
		return ctx.Err()
	}
	return k.u.Watch(ctx, k.turn, nil, k.recordEvent)
}

// steerOrCancel steers or cancels when the turn has reached the event that was drawn for it.
func (k *killedTurn) steerOrCancel(ctx context.Context) (err error) {
	defer close(k.acknowledged)
	select {
	case <-k.began:
	case <-ctx.Done():
		return ctx.Err()
	}
	if k.steerAt >= 0 {
		k.awaitEvent(ctx, k.steerAt)
		k.steered, err = sitetest.SendUntilDecided(ctx, k.u, sitetest.SteeringBody(k.turn, k.key, k.steeringText(), "next_step"))
	}
	if k.cancelAt >= 0 {
		k.awaitEvent(ctx, k.cancelAt)
		k.cancelled, err = sitetest.SendUntilDecided(ctx, k.u, sitetest.CancelBody(k.turn))
	}
	return err
}

// check reads the whole log once more and compares it with the events and responses that the clients got.
func (k *killedTurn) check(t *testing.T, how recovery, uncut string) error {
	t.Helper()
	if k.failure != nil {
		return k.failure
	}
	var told []verify.Command
	if k.steered.Sent {
		told = append(told, k.steered.Of(k.key))
		k.notes = append(k.notes, fmt.Sprintf("steered %d", k.steered.Status))
	}
	if k.cancelled.Sent {
		told = append(told, k.cancelled.Of(""))
	}
	read := k.u.CheckTurn(t, k.turn, told...)
	if err := errors.Join(k.checkConversation(t), checkReturned(k.u.Page(t, k.conversation).FollowUps, read.Inputs[k.key])); err != nil {
		return err
	}
	for _, e := range read.Events {
		if e.Type == "turn.recovering" {
			k.notes = append(k.notes, "recovered")
			break
		}
	}
	switch k.notes = append(k.notes, string(read.End.Status)); {
	case len(read.Cancels) > 0:
		return nil
	case read.End.Status != protocol.TurnCompleted:
		return fmt.Errorf("ended %s (%+v)", read.End.Status, read.End.Error)
	case how.checkText != nil:
		applied := ""
		if input := read.Inputs[k.key]; input != nil && input.Applied > 0 {
			applied = sitetest.Canary + " " + k.steeringText()
		}
		return how.checkText(sitetest.Texts(read.Parts), sitetest.Canary+" "+k.text, applied)
	}
	if got := outline(read.Parts); got != uncut {
		return fmt.Errorf("the message is\n%s\nand without a kill\n%s", got, uncut)
	}
	return nil
}

// checkConversation checks that the conversation contains the question and one answer, and that there is one usage record.
func (k *killedTurn) checkConversation(t *testing.T) error {
	t.Helper()
	messages := k.u.Messages(t, k.conversation)
	if len(messages) != 2 || messages[0].Role != protocol.RoleUser || sitetest.Texts(messages[0].Parts)[0] != sitetest.Canary+" "+k.text {
		return fmt.Errorf("the conversation has %d messages: %+v", len(messages), messages)
	}
	var usage protocol.List[protocol.UsageRecord]
	k.u.Get(t, "/conversations/"+k.conversation+"/usage", &usage)
	if len(usage.Data) != 1 || usage.Data[0].TurnID == nil || usage.Data[0].TurnID.String() != k.turn {
		return fmt.Errorf("usage: %+v", usage.Data)
	}
	return nil
}

// checkReturned checks that a returned input is in the queue once, as a held follow-up, and that any other input is not
// in the queue. nil stands for an input that is not in the log.
func checkReturned(queue []protocol.FollowUp, logged *verify.Input) error {
	if logged == nil {
		return nil
	}
	found := 0
	for _, item := range queue {
		if item.Content == logged.Text {
			if found++; logged.FollowUpID == nil || item.FollowUpID != *logged.FollowUpID || item.State != protocol.FollowUpHeld {
				return fmt.Errorf("follow-up %+v, the log says %+v", item, logged)
			}
		}
	}
	if found != logged.Returned {
		return fmt.Errorf("%d follow-ups of an input that was returned %d times", found, logged.Returned)
	}
	return nil
}
