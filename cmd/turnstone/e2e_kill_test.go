package main

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

	"turnstone/actors"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

const (
	killRounds    = 20 // in all
	killTurns     = 3  // live at every kill
	killTokens    = 30
	killInterval  = 15 * time.Millisecond
	killDirective = "[[script tokens=30 ttft=15ms interval=15ms]]"
	richDirective = "[[script tokens=24 reasoning=6 tool=calculate:30ms:ok code=go ttft=15ms interval=12ms]]"
	// killWithin is up to which event of the first turn the kill may wait; the turn has a few more when it is steered.
	killWithin = killTokens + 20
	// killJitter puts the kill between two events, into a commit or an answer.
	killJitter = 25 * time.Millisecond
	roundTime  = time.Minute
)

// recovery is how a model lets a cut answer go on, and what a whole answer says.
type recovery struct {
	name   string
	rounds int
	model  func(modeltest.Request) modeltest.Step // a vendor's, which has to begin again; nil: the scripted one, which goes on
	text   string                                 // what the turns are begun with
	// says holds a whole message against what was asked. applied is the steering that was applied; empty for none. nil:
	// nobody steers, and the message is that of a turn that nobody cut.
	says func(parts []string, asked, applied string) error
}

var recoveries = []recovery{
	{name: "a model that goes on where it was cut", rounds: killRounds * 7 / 20, text: killDirective, says: continued},
	{name: "a model that has to begin again", rounds: killRounds * 7 / 20, text: "Recite.", says: superseded, model: recite},
	{name: "thoughts, a tool and code, with a model that goes on", rounds: killRounds * 3 / 20, text: richDirective},
	{name: "thoughts, a tool and code, with a model that begins again", rounds: killRounds * 3 / 20, text: "Calculate.", model: think},
}

// The built binary is killed at random moments of its turns and started again. Whatever was acknowledged or seen before
// stands, and each turn goes on to the one end of a log without gaps.
func TestKillNineLosesNothing(t *testing.T) {
	for _, how := range recoveries {
		t.Run(how.name, func(t *testing.T) { killAgainAndAgain(t, how) })
	}
}

// environment is the model of the recovery, which outlives the kills.
func (r recovery) environment(t *testing.T) []string {
	t.Helper()
	if r.model == nil {
		return nil
	}
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{React: r.model, Interval: killInterval})
	t.Cleanup(server.Close)
	return []string{
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=" + server.URL, "TURNSTONE_MODEL_BALANCED=reciter",
		"TURNSTONE_MODEL_CODING=reciter",
	}
}

// continued is the passage of the directive; with steering, what was said before it, and the passage once more with an
// acknowledgement. An answer that was cut while the steering waited may go over into the new one anywhere.
func continued(parts []string, _, applied string) error {
	script, _ := scripted.Parse(killDirective)
	said, passage := strings.Join(parts, ""), script.Text()
	if applied != "" {
		var whole bool
		if said, whole = strings.CutSuffix(said, "Taking into account: "+applied+"\n\n"+passage); !whole || !strings.HasPrefix(passage, said) {
			return fmt.Errorf("steered, the answer is %q", parts)
		}
		return nil
	}
	if said != passage {
		return fmt.Errorf("the answer is %q", parts)
	}
	return nil
}

// recite answers with words that name what was asked last.
func recite(request modeltest.Request) modeltest.Step {
	return modeltest.Step{
		Text: reciting(request.Messages[len(request.Messages)-1].Text), Usage: &actors.ModelUsage{InputTokens: 1, OutputTokens: killTokens},
	}
}

func reciting(asked string) []string {
	pieces := []string{"Of “" + asked + "”: "}
	for i := range killTokens {
		pieces = append(pieces, strconv.Itoa(i)+" ")
	}
	return pieces
}

// think calls a tool after some thought, and then answers with code.
func think(request modeltest.Request) modeltest.Step {
	usage := &actors.ModelUsage{InputTokens: 1, OutputTokens: killTokens}
	if last := request.Messages[len(request.Messages)-1]; last.Role == "tool" {
		text := []string{"It ", "is ", last.Text, ".\n\n", "```", "go\n", "func ", "main() ", "{\n", "}\n", "```\n", "\n"}
		return modeltest.Step{Reasoning: []string{"So ", "that ", "is it."}, Text: append(text, reciting("a tool")...), Usage: usage}
	}
	step := modeltest.ToolThenAnswer("calculate", `{"expression":"6*7"}`)(request)
	step.Reasoning, step.Text = []string{"A ", "sum ", "then."}, []string{"Let ", "me ", "see. "}
	return step
}

// superseded has each answer whole: a cut one has left the message.
func superseded(parts []string, asked, applied string) error {
	want := []string{strings.Join(reciting(asked), "")}
	if applied != "" {
		steered := strings.Join(reciting(applied), "")
		if want = append(want, steered); len(parts) == 1 { // it was applied before the first answer stood
			want = want[1:]
		}
	}
	if strings.Join(parts, "|") != strings.Join(want, "|") {
		return fmt.Errorf("the answer is %q, want %q", parts, want)
	}
	return nil
}

// outline is what a message shows, without what differs from turn to turn.
func outline(parts []protocol.Part) string {
	var lines strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&lines, "%s %q %s %q %s %s %s %q %t %t\n", part.Type, part.Text, part.Language, part.Code, part.ToolName, part.Input,
			part.State, part.Output, part.Truncated, part.Open)
	}
	return lines.String()
}

func killAgainAndAgain(t *testing.T, how recovery) {
	s := sitetest.NewSite(t, how.environment(t)...)
	p := s.Up()
	seed := testSeed(t)
	first := sitetest.NewUser(t, s.Base)
	uncut, end := first.Chat(t, sitetest.Saying(how.text)).ToTheEnd(t)
	if end.Status != protocol.TurnCompleted {
		t.Fatalf("without a kill it ends %s", end.Status)
	}
	want := outline(sitetest.Fold(uncut))
	kinds := map[string]int{}
	for round := range how.rounds {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		at, jitter := random.Int64N(killWithin), time.Duration(random.Int64N(int64(killJitter)))
		atReceipt := round%3 == 2
		t.Logf("round %d: kill at event %d + %s, or at a receipt: %t", round, at, jitter, atReceipt)
		ctx := sitetest.Within(t, roundTime)
		u := sitetest.NewUser(t, s.Base) // of the round: an account has ten cancels a minute
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
		if atReceipt { // what it acknowledges has to be durable by then
			turns[0].acknowledges(ctx)
		} else {
			turns[0].reaches(ctx, at)
			if err := sitetest.Pause(ctx, jitter); err != nil {
				t.Fatal(err)
			}
		}
		over := u.Ledger.Plan()
		p.Kill()
		p = s.Up()
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
		t.Error("no turn was ever cut: the kills prove nothing")
	}
}

// testSeed is random unless TURNSTONE_TEST_SEED repeats a run.
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

// killedTurn is a turn with its clients: one that begins it and reads, one that only reads, one that steers or cancels.
// None of them gives up when the service is away.
type killedTurn struct {
	u            *sitetest.User
	conversation string
	text         string
	key          string
	steerAt      int64 // at which event to steer; -1: never
	cancelAt     int64

	began        chan struct{} // closed when turn is known
	turn         string        // set before began
	acknowledged chan struct{} // closed when the first command was decided

	mu      sync.Mutex
	last    int64         // guarded by mu: the newest event that was seen
	moved   chan struct{} // guarded by mu: closed at the next one
	over    bool          // guarded by mu
	failure error         // guarded by mu

	steered, cancelled sitetest.Receipt // owned by act until run returns
	notes              []string
}

func newKilledTurn(u *sitetest.User, conversation string, how recovery, random *rand.Rand) *killedTurn {
	k := &killedTurn{
		u: u, conversation: conversation, text: how.text, key: fmt.Sprintf("key-%x", random.Uint64()),
		steerAt: -1, cancelAt: -1, began: make(chan struct{}), moved: make(chan struct{}),
		acknowledged: make(chan struct{}),
	}
	switch drawn := random.IntN(4); {
	case drawn <= 1 && how.says != nil:
		k.steerAt = random.Int64N(killTokens)
	case drawn == 2:
		k.cancelAt = random.Int64N(killTokens)
	}
	return k
}

// commandAt makes the turn one that gets a command.
func (k *killedTurn) commandAt(sequence int64, how recovery) {
	k.steerAt, k.cancelAt = sequence, -1
	if how.says == nil {
		k.steerAt, k.cancelAt = -1, sequence
	}
}

// acknowledges waits until a command was decided.
func (k *killedTurn) acknowledges(ctx context.Context) {
	select {
	case <-k.acknowledged:
	case <-ctx.Done():
	}
}

func (k *killedTurn) steeringText() string { return "steer with " + k.key }

// run returns when every client has seen the end.
func (k *killedTurn) run(ctx context.Context) {
	var clients sync.WaitGroup
	clients.Go(func() { k.fail(k.begin(ctx)) })
	clients.Go(func() { k.fail(k.readAlong(ctx)) })
	clients.Go(func() { k.fail(k.act(ctx)) })
	clients.Wait()
}

func (k *killedTurn) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure == nil {
		k.failure = err
	}
}

// saw notes how far the turn is.
func (k *killedTurn) saw(e sitetest.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = max(k.last, e.Sequence)
	k.over = k.over || e.Kind == "turn.finished"
	close(k.moved)
	k.moved = make(chan struct{})
}

// reaches waits until some client has seen an event, or the end. Event 0 has been seen as soon as the turn was asked for.
func (k *killedTurn) reaches(ctx context.Context, sequence int64) {
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

// begin asks for the turn until it has a stream, always with the same key, and reads to the end.
func (k *killedTurn) begin(ctx context.Context) error {
	body := sitetest.Saying(k.text).In(k.conversation)
	for attempt := 0; ; attempt++ {
		s, refused, err := k.u.TryChat(ctx, body, "Idempotency-Key", k.key)
		if s != nil {
			if attempt > 0 && s.Header.Get("Idempotent-Replayed") == "true" {
				k.notes = append(k.notes, "start replayed")
			}
			k.turn = s.Turn
			close(k.began)
			return k.u.Watch(ctx, s.Turn, s, k.saw)
		}
		if refused != nil && refused.Status != http.StatusServiceUnavailable && refused.Status != http.StatusConflict {
			return fmt.Errorf("POST /chat: %d %s", refused.Status, refused.Body)
		}
		if refused != nil && refused.Status == http.StatusConflict && !strings.Contains(string(refused.Body), `"idempotency_in_progress"`) {
			return fmt.Errorf("POST /chat again: %s", refused.Body)
		}
		if waited := sitetest.Pause(ctx, sitetest.PollEvery); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

func (k *killedTurn) readAlong(ctx context.Context) error {
	select {
	case <-k.began:
	case <-ctx.Done():
		return ctx.Err()
	}
	return k.u.Watch(ctx, k.turn, nil, k.saw)
}

// act steers or cancels when the turn is as far as was drawn.
func (k *killedTurn) act(ctx context.Context) (err error) {
	defer close(k.acknowledged)
	select {
	case <-k.began:
	case <-ctx.Done():
		return ctx.Err()
	}
	if k.steerAt >= 0 {
		k.reaches(ctx, k.steerAt)
		k.steered, err = sitetest.Insist(ctx, k.u, sitetest.Steering(k.turn, k.key, k.steeringText(), "next_step"))
	}
	if k.cancelAt >= 0 {
		k.reaches(ctx, k.cancelAt)
		k.cancelled, err = sitetest.Insist(ctx, k.u, sitetest.Cancelling(k.turn))
	}
	return err
}

// check holds the whole log, read once more, against what the clients were told.
func (k *killedTurn) check(t *testing.T, how recovery, uncut string) error {
	t.Helper()
	if k.failure != nil {
		return k.failure
	}
	events, end := k.u.WholeLog(t, k.turn) // contiguous, the same bytes, one end: the stream and the witness check that
	if seen := k.u.Saw.Count(k.turn); seen != len(events) || end.LastSequence != int64(len(events)) {
		return fmt.Errorf("readers saw %d events, the log has %d, its end says %d", seen, len(events), end.LastSequence)
	}
	parts := sitetest.Fold(events)
	if err := k.checkMessages(t, parts); err != nil {
		return err
	}
	applied, err := k.checkSteering(t, events)
	if err != nil {
		return err
	}
	if sitetest.CountKind(events, "turn.recovering") > 0 {
		k.notes = append(k.notes, "recovered")
	}
	k.notes = append(k.notes, string(end.Status))
	requested := sitetest.CountKind(events, "turn.cancel_requested") > 0
	switch {
	case requested != (end.Status == protocol.TurnCancelled), k.cancelled.Status == http.StatusAccepted && !requested:
		return fmt.Errorf("cancel answered %d, requested %t, and the turn ended %s", k.cancelled.Status, requested, end.Status)
	case requested:
		return nil
	case end.Status != protocol.TurnCompleted:
		return fmt.Errorf("ended %s (%+v)", end.Status, end.Error)
	}
	if how.says != nil {
		return how.says(sitetest.Texts(parts), sitetest.Canary+" "+k.text, applied)
	}
	if got := outline(parts); got != uncut {
		return fmt.Errorf("the message is\n%s\nand without a kill\n%s", got, uncut)
	}
	return nil
}

// checkMessages: the conversation holds the question and the answer once, as the log tells them, and one record of usage.
func (k *killedTurn) checkMessages(t *testing.T, parts []protocol.Part) error {
	t.Helper()
	messages := k.u.Messages(t, k.conversation)
	if len(messages) != 2 || messages[0].Role != protocol.RoleUser || sitetest.Texts(messages[0].Parts)[0] != sitetest.Canary+" "+k.text {
		return fmt.Errorf("the conversation has %d messages: %+v", len(messages), messages)
	}
	if kept, told := sitetest.Texts(messages[1].Parts), sitetest.Texts(parts); strings.Join(kept, "|") != strings.Join(told, "|") {
		return fmt.Errorf("the message says %q, the log %q", kept, told)
	}
	var usage protocol.List[protocol.UsageRecord]
	k.u.Get(t, "/conversations/"+k.conversation+"/usage", &usage)
	if len(usage.Data) != 1 || usage.Data[0].TurnID == nil || usage.Data[0].TurnID.String() != k.turn {
		return fmt.Errorf("usage: %+v", usage.Data)
	}
	return nil
}

// checkSteering: an acknowledged input is in the log once and ended once; one that was refused is not there.
func (k *killedTurn) checkSteering(t *testing.T, events []sitetest.Event) (applied string, err error) {
	t.Helper()
	fate := fateOf(events, k.key)
	if k.steered.Status == http.StatusAccepted && (fate.accepted != 1 || fate.sequence != k.steered.Sequence) ||
		k.steered.Status != http.StatusAccepted && fate.accepted != 0 {
		return "", fmt.Errorf("steering answered %+v, the log says %+v", k.steered, fate)
	}
	if fate.applied+fate.returned != fate.accepted {
		return "", fmt.Errorf("steering ended %+v", fate)
	}
	if k.steered.Sent {
		k.notes = append(k.notes, fmt.Sprintf("steered %d", k.steered.Status))
	}
	if err := checkParked(k.u.Page(t, k.conversation).FollowUps, fate); err != nil || fate.applied == 0 {
		return "", err
	}
	return sitetest.Canary + " " + k.steeringText(), nil
}

// fate is what a log says of one steering input.
type fate struct {
	accepted, applied, returned int
	sequence                    int64
	text                        string
	followUp                    *protocol.FollowUpID
}

func fateOf(events []sitetest.Event, clientID string) fate {
	var f fate
	var id protocol.SteeringID
	for _, e := range events {
		if !strings.HasPrefix(e.Kind, "steering.") {
			continue
		}
		switch p := e.Payload().(type) {
		case *protocol.SteeringAccepted:
			if p.ClientSteeringID == clientID {
				f.accepted, f.sequence, f.text, id = f.accepted+1, e.Sequence, p.Text, p.SteeringID
			}
		case *protocol.SteeringApplied:
			if p.SteeringID == id {
				f.applied++
			}
		case *protocol.SteeringReturned:
			if p.SteeringID == id {
				f.returned, f.followUp = f.returned+1, p.FollowUpID
			}
		}
	}
	return f
}

// checkParked: what was returned is a held follow-up, once; what was not is none.
func checkParked(queue []protocol.FollowUp, f fate) error {
	found := 0
	for _, item := range queue {
		if f.text != "" && item.Content == f.text {
			if found++; f.followUp == nil || item.FollowUpID != *f.followUp || item.State != protocol.FollowUpHeld {
				return fmt.Errorf("follow-up %+v, the log says %+v", item, f)
			}
		}
	}
	if found != f.returned {
		return fmt.Errorf("%d follow-ups of an input that was returned %d times", found, f.returned)
	}
	return nil
}
