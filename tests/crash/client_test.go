package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	api "turnstone/protocol/client"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

const (
	requestTimeout = 15 * time.Second // for one response; a command may take 8 s
	streamTimeout  = 10 * time.Second // for one connection of a stream
	attempts       = 8                // to send a request that gets no response or may be repeated
	retryPause     = 40 * time.Millisecond
	clientPause    = 60 * time.Millisecond // at most, between two actions of a client
	newestTurns    = 3                     // clients steer and cancel only these
	decidedAtOnce  = 10                    // approvals that a client decides one after the other
	floodWorkers   = 6
	floodRequests  = 25 // of each worker
	floodPause     = 4 * time.Second
)

// accountState is the state that the clients of an account share.
type accountState struct {
	id            protocol.AccountID
	users         []*sitetest.User
	conversations []string

	mu       sync.Mutex
	turns    []*knownTurn     // guarded by mu, oldest first
	versions map[string]int64 // guarded by mu: newest known versions of drafts and titles, by kind and conversation
}

// knownTurn is a turn that a client knows.
type knownTurn struct {
	id   string
	last int64 // guarded by accountState.mu: the newest event that a client saw
	over bool  // guarded by accountState.mu
}

func (s *accountState) addTurn(turn string) *knownTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.turns {
		if known.id == turn {
			return known
		}
	}
	known := &knownTurn{id: turn}
	s.turns = append(s.turns, known)
	return known
}

// live returns one of the newest turns whose end no client has seen, or nil.
func (s *accountState) live(random *rand.Rand) *knownTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest []*knownTurn
	for i := len(s.turns) - 1; i >= 0 && len(newest) < newestTurns; i-- {
		if !s.turns[i].over {
			newest = append(newest, s.turns[i])
		}
	}
	if len(newest) == 0 {
		return nil
	}
	return newest[random.IntN(len(newest))]
}

// anyTurn returns one of all turns, and a position in it that a client has reached.
func (s *accountState) anyTurn(random *rand.Rand) (turn *knownTurn, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		return nil, 0
	}
	from := 0
	if random.IntN(2) == 0 {
		from = max(0, len(s.turns)-newestTurns)
	}
	turn = s.turns[from+random.IntN(len(s.turns)-from)]
	return turn, random.Int64N(turn.last + 1)
}

func (s *accountState) version(kind, conversation string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, known := s.versions[kind+conversation]
	return v, known
}

func (s *accountState) learnVersion(kind, conversation string, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[kind+conversation] = max(s.versions[kind+conversation], version)
}

// client is a user at one device: it performs one action after another until ctx ends.
type client struct {
	name    string
	user    *sitetest.User
	account *accountState
	random  *rand.Rand // for the current action only, so that its draws do not change those of the next one
	history *history
	notes   *findings
	clock   func() time.Duration
	ctx     context.Context // of the round
}

// choices are the actions of a client and their weights.
var choices = []struct {
	weight int
	act    func(*client)
}{
	{30, func(c *client) { c.start(false) }},
	{8, func(c *client) { c.start(true) }},
	{14, (*client).steer},
	{6, (*client).cancel},
	{40, (*client).decide},
	{12, (*client).putDraft},
	{12, (*client).putTitle},
	{14, (*client).read},
	{8, (*client).look},
	{3, (*client).create},
	{6, (*client).share},
	{6, (*client).storeFile},
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
		_ = clock.Sleep(c.ctx, wait) // the loop checks ctx
	}
}

func (c *client) token(prefix string) string {
	return fmt.Sprintf("%s%012x", prefix, c.random.Uint64()>>16)
}

func (c *client) conversation() string {
	return c.account.conversations[c.random.IntN(len(c.account.conversations))]
}

// send sends a request and records its outcome in o. It waits for the response even if the round ends.
func (c *client) send(o *operation, method, path string, body any, headers ...string) *sitetest.Response {
	return c.sendAllowing(o, 0, method, path, body, headers...)
}

// sendAllowing is send for a request that may get a status with which other requests would show a violation; 0: none.
func (c *client) sendAllowing(o *operation, allowed int, method, path string, body any, headers ...string) *sitetest.Response {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), requestTimeout)
	defer cancel()
	o.Client, o.Began = c.name, c.clock()
	o.Status, o.Code, o.Unknown, o.Replayed = 0, "", false, false // of the request before, which may have got a response
	response, err := c.user.Request(ctx, method, path, body, headers...)
	o.Ended = c.clock()
	switch {
	case err != nil:
	case response.Status == allowed:
		o.Status = allowed
	default:
		c.recordStatus(o, response)
	}
	return response
}

// recordStatus records the status of a response in o, and reports a violation if no contract allows it.
func (c *client) recordStatus(o *operation, response *sitetest.Response) {
	o.Status = response.Status
	o.Replayed = response.Header.Get("Idempotent-Replayed") == "true"
	if o.acknowledged() {
		return
	}
	problem := response.Problem()
	if problem == nil { // the contract does not allow such a response: reported below
		problem = new(api.Problem)
	}
	o.Code, o.Unknown = string(problem.Code), problem.Detail == protocol.OutcomeUnknown
	switch response.Status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if problem.Code == protocol.CodeSequenceAhead {
			c.notes.violation(notDurable, "%s: %s", response.Request, response.Body)
		}
	case http.StatusNotFound:
		c.notes.violation(lost, "%s: %s", response.Request, response.Body)
	default:
		c.notes.violation(badResponse, "%s: %d %s", response.Request, response.Status, response.Body)
	}
}

// start starts a turn, sometimes by several concurrent requests with the same key.
func (c *client) start(queue bool) {
	conversation := c.conversation()
	if !queue && c.random.IntN(12) == 0 {
		conversation = "" // a new conversation
	}
	token, key := c.token("T"), c.token("K")
	text := fmt.Sprintf("%s words=%d", token, 3+c.random.IntN(24))
	switch c.random.IntN(6) {
	case 0, 1:
		text += fmt.Sprintf(" effect=%d", 1+c.random.IntN(9))
	case 2, 3:
		text += fmt.Sprintf(" asked_effect=%d", 1+c.random.IntN(9))
	}
	body := sitetest.NewChatBody(text)
	if conversation != "" {
		body = body.In(conversation)
	}
	if queue {
		body = body.With("if_busy", "queue")
	}
	copies := 1
	if c.random.IntN(5) == 0 {
		copies = 2 + c.random.IntN(2)
	}
	var all sync.WaitGroup
	for range copies {
		o := operation{Kind: opStart, Conversation: conversation, Key: key, Text: token, Queue: queue}
		limit := c.random.IntN(60)
		all.Go(func() { c.repeatStart(o, body, limit) })
	}
	all.Wait()
	if c.random.IntN(6) == 0 { // a repeat after the requests have finished
		o := operation{Kind: opStart, Conversation: conversation, Key: key, Text: token, Queue: queue}
		c.repeatStart(o, body, 5)
	}
}

func (c *client) repeatStart(o operation, body sitetest.ChatBody, limit int) {
	for range attempts {
		one := o
		again := c.tryStart(&one, body, limit)
		if !again || clock.Sleep(c.ctx, retryPause) != nil {
			return
		}
	}
}

// tryStart sends one request. again reports whether the outcome is unknown or the request may be repeated.
func (c *client) tryStart(o *operation, body sitetest.ChatBody, limit int) (again bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), requestTimeout)
	defer cancel()
	o.Client, o.Began = c.name, c.clock()
	stream, refused, err := c.user.TryChat(ctx, body, "Idempotency-Key", o.Key)
	o.Ended = c.clock()
	defer func() { c.history.add(*o) }()
	switch {
	case err != nil:
		return true
	case refused != nil:
		c.recordStatus(o, refused)
		if refused.Status == http.StatusAccepted {
			var item protocol.FollowUp
			if json.Unmarshal(refused.Body, &item) != nil {
				c.notes.violation(badResponse, "%s: %s", refused.Request, refused.Body)
			}
			o.ID = item.FollowUpID.String()
		}
		return o.repeatable()
	}
	defer stream.Close()
	o.Status, o.ID, o.Replayed = http.StatusOK, stream.Turn, stream.Header.Get("Idempotent-Replayed") == "true"
	known := c.account.addTurn(stream.Turn)
	c.follow(stream, known, limit)
	return false
}

// follow reads at most limit events of a stream.
func (c *client) follow(stream *sitetest.Stream, known *knownTurn, limit int) {
	stop := context.AfterFunc(c.ctx, stream.Close)
	defer stop()
	timeout := time.AfterFunc(streamTimeout, stream.Close)
	defer timeout.Stop()
	for range limit {
		e, err := stream.Next()
		if errors.Is(err, sitetest.ErrBroken) {
			kind, found := badResponse, verify.Finding{}
			if errors.As(err, &found) {
				kind = string(found.Kind)
			}
			c.notes.violation(kind, "%s: %v", stream.Turn, err)
		}
		if err != nil {
			return
		}
		if e.Type == "turn.snapshot" {
			c.sawSnapshot(e)
			continue
		}
		c.history.saw(stream.Turn, e.Sequence, e.Data)
		c.account.mu.Lock()
		known.last = max(known.last, e.Sequence)
		known.over = known.over || e.Type == "turn.finished"
		c.account.mu.Unlock()
		if e.Type == "turn.finished" {
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
		c.notes.violation(badResponse, "%s: %v", e.Data, err)
	}
}

// messages reads a conversation's newest messages.
func (c *client) messages(conversation string) {
	o := operation{Kind: opPage, Conversation: conversation}
	response := c.send(&o, http.MethodGet, "/conversations/"+conversation+"/messages?limit=100", nil)
	if !o.acknowledged() {
		return
	}
	var page protocol.List[protocol.Message]
	err := json.Unmarshal(response.Body, &page)
	for n := range page.Data {
		err = errors.Join(err, c.history.showed("a page", &page.Data[n]))
	}
	if err != nil {
		c.notes.violation(badResponse, "%s: %v: %s", response.Request, err, response.Body)
	}
}

// read resumes a turn at any position that a client has reached, or with a snapshot.
func (c *client) read() {
	turn, after := c.account.anyTurn(c.random)
	if turn == nil {
		return
	}
	query := ""
	if c.random.IntN(8) == 0 {
		query = "?mode=snapshot"
	}
	limit := 1 + c.random.IntN(80)
	ctx, cancel := context.WithTimeout(c.ctx, streamTimeout)
	defer cancel()
	stream, refused, err := c.user.Follow(ctx, turn.id, after, query)
	switch {
	case err != nil:
	case refused != nil:
		c.recordStatus(&operation{}, refused)
	default:
		c.follow(stream, turn, limit)
		stream.Close()
	}
}

// steer sends an input until the service decides it.
func (c *client) steer() {
	turn := c.account.live(c.random)
	if turn == nil {
		return
	}
	id, delivery := c.token("S"), "next_step"
	if c.random.IntN(2) == 0 {
		delivery = "interrupt"
	}
	receipt := c.command(operation{Kind: opSteer, Turn: turn.id, Key: id}, sitetest.SteeringBody(turn.id, id, id, delivery))
	if receipt == nil || delivery == "interrupt" {
		return
	}
	for range c.random.IntN(3) { // a repeat must get the first receipt
		c.command(operation{Kind: opApply, Turn: turn.id, Key: id}, sitetest.ApplyBody(turn.id, receipt.SteeringID.String()))
	}
}

func (c *client) cancel() {
	if turn := c.account.live(c.random); turn != nil {
		c.command(operation{Kind: opCancel, Turn: turn.id}, sitetest.CancelBody(turn.id))
	}
}

// decisions are the decisions of clients. An edit of one note is the same whoever makes it.
var decisions = []protocol.Decision{protocol.ApproveOnce, protocol.ApproveOnce, protocol.ApproveWithEdits, protocol.RejectCall}

// decide decides up to decidedAtOnce approvals that wait, each sometimes again and in another way.
func (c *client) decide() {
	all := c.pendingApprovals()
	c.random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for n := range min(len(all), decidedAtOnce) {
		c.decideOn(&all[n])
	}
}

// pendingApprovals returns approvals of the account that wait; none if they cannot be read.
func (c *client) pendingApprovals() []protocol.Approval {
	o := operation{Kind: opLook}
	response := c.send(&o, http.MethodGet, "/approvals", nil)
	var page protocol.List[protocol.Approval]
	if o.acknowledged() && json.Unmarshal(response.Body, &page) != nil {
		c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
	}
	return page.Data
}

func (c *client) decideOn(a *protocol.Approval) {
	for range 1 + c.random.IntN(3) {
		decision := decisions[c.random.IntN(len(decisions))]
		body := map[string]any{"type": "approval", "turn_id": a.TurnID, "approval_id": a.ApprovalID, "decision": decision, "input_digest": a.InputDigest}
		if decision == protocol.ApproveWithEdits {
			var input struct {
				Note string `json:"note"`
			}
			_ = json.Unmarshal(a.Input, &input) // the checker finds a note that no log has
			body["edited_input"] = map[string]string{"note": input.Note + "-edited"}
		}
		c.command(operation{Kind: opDecide, Turn: a.TurnID.String(), Key: a.ApprovalID.String(), Text: string(decision)}, body)
	}
}

// command sends a command until the service decides it. It returns the receipt, or nil if there is none.
func (c *client) command(o operation, body map[string]any) *protocol.SteeringReceipt {
	for range attempts {
		one := o
		response := c.send(&one, http.MethodPost, "/chat/steering", body)
		if one.Status == http.StatusAccepted {
			var receipt protocol.SteeringReceipt
			if json.Unmarshal(response.Body, &receipt) != nil {
				c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
			}
			one.Sequence, one.Replayed = receipt.Sequence, receipt.Replayed
			c.history.add(one)
			return &receipt
		}
		c.history.add(one)
		if one.Status != 0 && one.Status != http.StatusServiceUnavailable || clock.Sleep(c.ctx, retryPause) != nil {
			return nil
		}
	}
	return nil
}

// putDraft writes a draft. Half of the writes are conditional on the known version.
func (c *client) putDraft() {
	o := operation{Kind: opDraft, Conversation: c.conversation(), Text: c.token("D")}
	body := map[string]any{"content": o.Text}
	c.conditional(&o, body)
	response := c.send(&o, http.MethodPut, "/conversations/"+o.Conversation+"/draft", body)
	var draft protocol.Draft
	if c.currentValue(&o, response, &draft) {
		o.Draft, o.DraftVersion = draft.Content, draft.Version
		c.account.learnVersion(opDraft, o.Conversation, draft.Version)
	}
	c.history.add(o)
}

func (c *client) putTitle() {
	o := operation{Kind: opTitle, Conversation: c.conversation(), Text: c.token("D")}
	body := map[string]any{"title": o.Text}
	c.conditional(&o, body)
	response := c.send(&o, http.MethodPut, "/conversations/"+o.Conversation+"/title", body)
	var current protocol.Conversation
	if c.currentValue(&o, response, &current) {
		o.Title, o.TitleVersion = current.Title, current.Version
		c.account.learnVersion(opTitle, o.Conversation, current.Version)
	}
	c.history.add(o)
}

func (c *client) conditional(o *operation, body map[string]any) {
	if version, known := c.account.version(o.Kind, o.Conversation); known && c.random.IntN(2) == 0 {
		o.IfMatch, body["version"] = &version, version
	}
}

// currentValue decodes the current value from the response to a write: the written one, or the newer one that a stale
// version reports. It returns false if the response has none.
func (c *client) currentValue(o *operation, response *sitetest.Response, into any) bool {
	text := []byte(nil)
	switch {
	case o.acknowledged():
		text = response.Body
	case o.Code == string(protocol.CodeStaleVersion):
		text = response.Problem().Current
	default:
		return false
	}
	if err := json.Unmarshal(text, into); err != nil {
		c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
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

// lookAt reads a conversation's page. It returns nil if there is no page.
func (c *client) lookAt(conversation string) *protocol.ConversationPage {
	o := operation{Kind: opLook, Conversation: conversation}
	response := c.send(&o, http.MethodGet, "/conversations/"+o.Conversation, nil)
	if !o.acknowledged() {
		return nil
	}
	var page protocol.ConversationPage
	if err := json.Unmarshal(response.Body, &page); err != nil {
		c.notes.violation(badResponse, "%s: %s", response.Request, response.Body)
		return nil
	}
	o.Draft, o.DraftVersion = page.Draft.Content, page.Draft.Version
	o.Title, o.TitleVersion = page.Conversation.Title, page.Conversation.Version
	c.account.learnVersion(opDraft, o.Conversation, o.DraftVersion)
	c.account.learnVersion(opTitle, o.Conversation, o.TitleVersion)
	c.history.add(o)
	return &page
}

// flood writes faster than its limit allows, with pauses in between.
func (c *client) flood() {
	for clock.Sleep(c.ctx, floodPause) == nil {
		var all sync.WaitGroup
		for range floodWorkers {
			all.Go(func() {
				for i := 0; i < floodRequests && c.ctx.Err() == nil; i++ {
					o := operation{Kind: opFlood}
					c.send(&o, http.MethodPut, "/conversations/"+c.account.conversations[0]+"/draft", map[string]any{"content": "more"})
					c.history.add(o)
				}
			})
		}
		all.Wait()
	}
}
