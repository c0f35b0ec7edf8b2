package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

const (
	requestPatience = 15 * time.Second // of a client for one answer; a command may take 8 s
	streamPatience  = 10 * time.Second // for one connection of a stream
	attempts        = 8                // of one request that nobody answers
	retryPause      = 40 * time.Millisecond
	clientPause     = 60 * time.Millisecond // at most, between two things that a client does
	newestTurns     = 3                     // clients steer and cancel among these
	floodWorkers    = 6
	floodRequests   = 25 // of each worker
	floodPause      = 4 * time.Second
)

// household is an account: what its clients know together.
type household struct {
	users         []*sitetest.User
	conversations []string

	mu       sync.Mutex
	turns    []*knownTurn     // guarded by mu, oldest first
	versions map[string]int64 // guarded by mu: newest known versions of drafts and titles, by kind and conversation
}

// knownTurn is a turn that a client has heard of.
type knownTurn struct {
	id   string
	last int64 // guarded by household.mu: the newest event that anybody saw
	over bool  // guarded by household.mu
}

func (h *household) learn(turn string) *knownTurn {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, known := range h.turns {
		if known.id == turn {
			return known
		}
	}
	known := &knownTurn{id: turn}
	h.turns = append(h.turns, known)
	return known
}

// live is one of the newest turns that nobody saw the end of.
func (h *household) live(random *rand.Rand) *knownTurn {
	h.mu.Lock()
	defer h.mu.Unlock()
	var newest []*knownTurn
	for i := len(h.turns) - 1; i >= 0 && len(newest) < newestTurns; i-- {
		if !h.turns[i].over {
			newest = append(newest, h.turns[i])
		}
	}
	if len(newest) == 0 {
		return nil
	}
	return newest[random.IntN(len(newest))]
}

// any is one of all turns and a place in it that somebody saw.
func (h *household) any(random *rand.Rand) (turn *knownTurn, after int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.turns) == 0 {
		return nil, 0
	}
	from := 0
	if random.IntN(2) == 0 {
		from = max(0, len(h.turns)-newestTurns)
	}
	turn = h.turns[from+random.IntN(len(h.turns)-from)]
	return turn, random.Int64N(turn.last + 1)
}

func (h *household) version(kind, conversation string) (int64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, known := h.versions[kind+conversation]
	return v, known
}

func (h *household) learnVersion(kind, conversation string, version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.versions[kind+conversation] = max(h.versions[kind+conversation], version)
}

// client is one process of a user: it does one thing after another until ctx ends.
type client struct {
	name    string
	user    *sitetest.User
	home    *household
	random  *rand.Rand // of the present thing: what one draws does not move the next
	history *history
	notes   *notes
	clock   func() time.Duration
	ctx     context.Context // of the round
}

// choices is what a client does, and how often.
var choices = []struct {
	weight int
	act    func(*client)
}{
	{30, func(c *client) { c.start(false) }},
	{8, func(c *client) { c.start(true) }},
	{14, (*client).steer},
	{6, (*client).cancel},
	{12, (*client).putDraft},
	{12, (*client).putTitle},
	{14, (*client).read},
	{8, (*client).look},
	{3, (*client).create},
}

func (c *client) run() {
	sum := 0
	for _, choice := range choices {
		sum += choice.weight
	}
	all := c.random
	for c.ctx.Err() == nil {
		drawn := all.IntN(sum)
		c.random = rand.New(rand.NewPCG(all.Uint64(), 0))
		wait := time.Duration(all.Int64N(int64(clientPause)))
		for _, choice := range choices {
			if drawn -= choice.weight; drawn < 0 {
				choice.act(c)
				break
			}
		}
		_ = sitetest.Pause(c.ctx, wait) // the loop looks at ctx
	}
}

func (c *client) token(prefix string) string {
	return fmt.Sprintf("%s%012x", prefix, c.random.Uint64()>>16)
}

func (c *client) conversation() string {
	return c.home.conversations[c.random.IntN(len(c.home.conversations))]
}

// ask sends a request and notes what came of it. A request that was sent is waited for, also when the round ends.
func (c *client) ask(o *operation, method, path string, body any, headers ...string) *sitetest.Answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), requestPatience)
	defer cancel()
	o.Client, o.Began = c.name, c.clock()
	answer, err := c.user.Ask(ctx, method, path, body, headers...)
	o.Ended = c.clock()
	if err == nil {
		c.judge(o, answer)
	}
	return answer
}

// judge reads an answer's status, and says when no contract allows it.
func (c *client) judge(o *operation, answer *sitetest.Answer) {
	o.Status = answer.Status
	o.Replayed = answer.Header.Get("Idempotent-Replayed") == "true"
	if o.acknowledged() {
		return
	}
	var problem sitetest.Problem
	_ = json.Unmarshal(answer.Body, &problem) // judged by what was found in it
	o.Code, o.Unknown = string(problem.Code), problem.Detail == "outcome_unknown"
	switch answer.Status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if problem.Code == protocol.CodeSequenceAhead {
			c.notes.violation(notDurable, "%s: %s", answer.Request, answer.Body)
		}
	case http.StatusNotFound:
		c.notes.violation(lost, "%s: %s", answer.Request, answer.Body)
	default:
		c.notes.violation(badAnswer, "%s: %d %s", answer.Request, answer.Status, answer.Body)
	}
}

// start begins a turn, perhaps by several requests at once that carry the same key.
func (c *client) start(queue bool) {
	conversation := c.conversation()
	if !queue && c.random.IntN(12) == 0 {
		conversation = "" // a new one
	}
	token, key := c.token("T"), c.token("K")
	text := fmt.Sprintf("%s words=%d", token, 3+c.random.IntN(24))
	if c.random.IntN(3) == 0 {
		text += " tool=effect"
	}
	body := sitetest.Saying(text)
	if conversation != "" {
		body = body.In(conversation)
	}
	if queue {
		body = body.With("if_busy", "queue")
	}
	crowd := 1
	if c.random.IntN(5) == 0 {
		crowd = 2 + c.random.IntN(2)
	}
	var all sync.WaitGroup
	for range crowd {
		o := operation{Kind: opStart, Conversation: conversation, Key: key, Text: token, Queue: queue}
		limit := c.random.IntN(60)
		all.Go(func() { c.insistOnStart(o, body, limit) })
	}
	all.Wait()
	if c.random.IntN(6) == 0 { // a repeat after all is said
		o := operation{Kind: opStart, Conversation: conversation, Key: key, Text: token, Queue: queue}
		c.insistOnStart(o, body, 5)
	}
}

func (c *client) insistOnStart(o operation, body sitetest.ChatBody, limit int) {
	for range attempts {
		one := o
		again := c.tryStart(&one, body, limit)
		if !again || sitetest.Pause(c.ctx, retryPause) != nil {
			return
		}
	}
}

// tryStart asks once. again says that nobody knows, or that it may be asked again.
func (c *client) tryStart(o *operation, body sitetest.ChatBody, limit int) (again bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), requestPatience)
	defer cancel()
	o.Client, o.Began = c.name, c.clock()
	stream, refused, err := c.user.TryChat(ctx, body, "Idempotency-Key", o.Key)
	o.Ended = c.clock()
	defer func() { c.history.add(*o) }()
	switch {
	case err != nil:
		return true
	case refused != nil:
		c.judge(o, refused)
		if refused.Status == http.StatusAccepted {
			var item protocol.FollowUp
			if json.Unmarshal(refused.Body, &item) != nil {
				c.notes.violation(badAnswer, "%s: %s", refused.Request, refused.Body)
			}
			o.ID = item.FollowUpID.String()
		}
		return o.Status == http.StatusServiceUnavailable || o.Code == string(protocol.CodeIdempotencyBusy)
	}
	defer stream.Close()
	o.Status, o.ID, o.Replayed = http.StatusOK, stream.Turn, stream.Header.Get("Idempotent-Replayed") == "true"
	known := c.home.learn(stream.Turn)
	c.follow(stream, known, limit)
	return false
}

// follow reads some events of a stream.
func (c *client) follow(stream *sitetest.Stream, known *knownTurn, limit int) {
	stop := context.AfterFunc(c.ctx, stream.Close)
	defer stop()
	patience := time.AfterFunc(streamPatience, stream.Close)
	defer patience.Stop()
	for range limit {
		e, err := stream.Next()
		if errors.Is(err, sitetest.ErrBroken) {
			kind := badAnswer
			switch {
			case strings.Contains(err.Error(), "was seen as"):
				kind = changedBytes
			case strings.Contains(err.Error(), "comes"):
				kind = gaps
			case strings.Contains(err.Error(), "follows turn.finished"):
				kind = doubleTerminal
			}
			c.notes.violation(kind, "%s: %v", stream.Turn, err)
		}
		if err != nil {
			return
		}
		if e.Kind == "turn.snapshot" {
			c.sawSnapshot(e)
			continue
		}
		c.history.saw(stream.Turn, e.Sequence, e.Data)
		c.home.mu.Lock()
		known.last = max(known.last, e.Sequence)
		known.over = known.over || e.Kind == "turn.finished"
		c.home.mu.Unlock()
		if e.Kind == "turn.finished" {
			return
		}
	}
}

func (c *client) sawSnapshot(e sitetest.Event) {
	var snapshot protocol.TurnSnapshot
	err := json.Unmarshal([]byte(e.Data), &snapshot)
	if err == nil {
		if snapshot.Message.Status == protocol.MessageStreaming {
			snapshot.Message.CoversSequence = snapshot.CoversSequence
		}
		err = c.history.showed("a snapshot", &snapshot.Message)
	}
	if err != nil {
		c.notes.violation(badAnswer, "%s: %v", e.Data, err)
	}
}

// messages reads a conversation's newest messages.
func (c *client) messages(conversation string) {
	o := operation{Kind: opPage, Conversation: conversation}
	answer := c.ask(&o, http.MethodGet, "/conversations/"+conversation+"/messages?limit=100", nil)
	if !o.acknowledged() {
		return
	}
	var page protocol.List[protocol.Message]
	err := json.Unmarshal(answer.Body, &page)
	for n := range page.Data {
		err = errors.Join(err, c.history.showed("a page", &page.Data[n]))
	}
	if err != nil {
		c.notes.violation(badAnswer, "%s: %v: %s", answer.Request, err, answer.Body)
	}
}

// read resumes a turn at any place, as often as it takes.
func (c *client) read() {
	turn, after := c.home.any(c.random)
	if turn == nil {
		return
	}
	query := ""
	if c.random.IntN(8) == 0 {
		query = "?mode=snapshot"
	}
	limit := 1 + c.random.IntN(80)
	ctx, cancel := context.WithTimeout(c.ctx, streamPatience)
	defer cancel()
	stream, refused, err := c.user.Follow(ctx, turn.id, after, query)
	switch {
	case err != nil:
	case refused != nil:
		c.judge(&operation{}, refused)
	default:
		c.follow(stream, turn, limit)
		stream.Close()
	}
}

// steer sends an input until somebody decides about it.
func (c *client) steer() {
	turn := c.home.live(c.random)
	if turn == nil {
		return
	}
	id, delivery := c.token("S"), "next_step"
	if c.random.IntN(2) == 0 {
		delivery = "interrupt"
	}
	c.command(operation{Kind: opSteer, Turn: turn.id, Key: id}, sitetest.Steering(turn.id, id, id, delivery))
}

func (c *client) cancel() {
	if turn := c.home.live(c.random); turn != nil {
		c.command(operation{Kind: opCancel, Turn: turn.id}, sitetest.Cancelling(turn.id))
	}
}

func (c *client) command(o operation, body map[string]any) {
	for range attempts {
		one := o
		answer := c.ask(&one, http.MethodPost, "/chat/steering", body)
		if one.Status == http.StatusAccepted {
			var receipt protocol.SteeringReceipt
			if json.Unmarshal(answer.Body, &receipt) != nil {
				c.notes.violation(badAnswer, "%s: %s", answer.Request, answer.Body)
			}
			one.Sequence, one.Replayed = receipt.Sequence, receipt.Replayed
		}
		c.history.add(one)
		if one.Status != 0 && one.Status != http.StatusServiceUnavailable || sitetest.Pause(c.ctx, retryPause) != nil {
			return
		}
	}
}

// putDraft writes a draft; half of the time only over the version that is known.
func (c *client) putDraft() {
	o := operation{Kind: opDraft, Conversation: c.conversation(), Text: c.token("D")}
	body := map[string]any{"content": o.Text}
	c.conditional(&o, body)
	answer := c.ask(&o, http.MethodPut, "/conversations/"+o.Conversation+"/draft", body)
	var draft protocol.Draft
	if c.standing(&o, answer, &draft) {
		o.Draft, o.DraftVersion = draft.Content, draft.Version
		c.home.learnVersion(opDraft, o.Conversation, draft.Version)
	}
	c.history.add(o)
}

func (c *client) putTitle() {
	o := operation{Kind: opTitle, Conversation: c.conversation(), Text: c.token("D")}
	body := map[string]any{"title": o.Text}
	c.conditional(&o, body)
	answer := c.ask(&o, http.MethodPut, "/conversations/"+o.Conversation+"/title", body)
	var stands protocol.Conversation
	if c.standing(&o, answer, &stands) {
		o.Title, o.TitleVersion = stands.Title, stands.Version
		c.home.learnVersion(opTitle, o.Conversation, stands.Version)
	}
	c.history.add(o)
}

func (c *client) conditional(o *operation, body map[string]any) {
	if version, known := c.home.version(o.Kind, o.Conversation); known && c.random.IntN(2) == 0 {
		o.IfMatch, body["version"] = &version, version
	}
}

// standing reads what stands after a write, or in its place.
func (c *client) standing(o *operation, answer *sitetest.Answer, into any) bool {
	text := []byte(nil)
	switch {
	case o.acknowledged():
		text = answer.Body
	case o.Code == string(protocol.CodeStaleVersion):
		var problem sitetest.Problem
		_ = json.Unmarshal(answer.Body, &problem) // into notices
		text = problem.Current
	default:
		return false
	}
	if err := json.Unmarshal(text, into); err != nil {
		c.notes.violation(badAnswer, "%s: %s", answer.Request, answer.Body)
		return false
	}
	return true
}

// look reads a conversation's page.
func (c *client) look() {
	conversation := c.conversation()
	c.lookAt(conversation)
	c.messages(conversation)
}

func (c *client) lookAt(conversation string) {
	o := operation{Kind: opLook, Conversation: conversation}
	answer := c.ask(&o, http.MethodGet, "/conversations/"+o.Conversation, nil)
	if !o.acknowledged() {
		return
	}
	var page protocol.ConversationPage
	if err := json.Unmarshal(answer.Body, &page); err != nil {
		c.notes.violation(badAnswer, "%s: %s", answer.Request, answer.Body)
		return
	}
	o.Draft, o.DraftVersion = page.Draft.Content, page.Draft.Version
	o.Title, o.TitleVersion = page.Conversation.Title, page.Conversation.Version
	c.home.learnVersion(opDraft, o.Conversation, o.DraftVersion)
	c.home.learnVersion(opTitle, o.Conversation, o.TitleVersion)
	c.history.add(o)
}

// create makes a conversation, perhaps by several requests at once that carry the same key.
func (c *client) create() {
	o := operation{Kind: opCreate, Key: c.token("K"), Text: c.token("C")}
	var all sync.WaitGroup
	for range 1 + c.random.IntN(3) {
		all.Go(func() {
			for range attempts {
				one := o
				answer := c.ask(&one, http.MethodPost, "/conversations", map[string]string{"title": one.Text}, "Idempotency-Key", one.Key)
				if one.acknowledged() {
					var made protocol.Conversation
					_ = json.Unmarshal(answer.Body, &made) // an identifier that is not there is found out
					one.ID = made.ConversationID.String()
				}
				c.history.add(one)
				again := one.Status == 0 || one.Status == http.StatusServiceUnavailable || one.Code == string(protocol.CodeIdempotencyBusy)
				if !again || sitetest.Pause(c.ctx, retryPause) != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// flood writes faster than its limit allows, now and then.
func (c *client) flood() {
	for sitetest.Pause(c.ctx, floodPause) == nil {
		var all sync.WaitGroup
		for range floodWorkers {
			all.Go(func() {
				for i := 0; i < floodRequests && c.ctx.Err() == nil; i++ {
					o := operation{Kind: opFlood}
					c.ask(&o, http.MethodPut, "/conversations/"+c.home.conversations[0]+"/draft", map[string]any{"content": "more"})
					c.history.add(o)
				}
			})
		}
		all.Wait()
	}
}
