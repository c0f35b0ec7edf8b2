package soak

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/cmd/loadtest/load"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

// operation is an operation that clients perform during a turn, for one turn in oneIn.
type operation struct {
	oneIn int
	do    func(*soakTurn, context.Context, *rand.Rand)
}

var operations = []operation{
	{7, (*soakTurn).steer},
	{12, (*soakTurn).cancel},
	{16, (*soakTurn).queue},
	{5, (*soakTurn).draft},
	{10, (*soakTurn).title},
	{5, (*soakTurn).page},
	{5, (*soakTurn).list},
	{10, (*soakTurn).messages},
	{20, (*soakTurn).watch},
}

// planOperations draws the operations of the turn and schedules each at a random time, whether or not others are slow.
// An operation that is not due before the turn is over is skipped.
func (t *soakTurn) planOperations(ctx context.Context, lifetime time.Duration) {
	for i, each := range operations {
		random := rand.New(rand.NewPCG(t.random.Uint64(), uint64(i)))
		if random.IntN(each.oneIn) != 0 {
			continue
		}
		at := time.Duration(random.Int64N(int64(lifetime)))
		t.operations.Go(func() {
			timer := time.NewTimer(at)
			defer timer.Stop()
			select {
			case <-timer.C:
				each.do(t, ctx, random)
			case <-t.over:
			case <-ctx.Done():
			}
		})
	}
}

// request sends a request, and sends it again until the response is final. allowed lists the statuses that are final in
// addition to 2xx. ok is false if the run ends or the response is not allowed. The delay of a 2xx response is recorded
// under the kind what.
func (t *soakTurn) request(ctx context.Context, what int, method, path string, body any, allowed ...int) (status int, reply []byte, ok bool) {
	name := method + " " + strings.SplitN(path, "/", 3)[1]
	for begun := load.Monotonic(); ctx.Err() == nil; {
		sentAt := load.Monotonic()
		response, err := t.account.API.Send(ctx, client.Request{Method: method, Path: path, Body: body})
		if err == nil {
			status, reply = response.Status, response.Body
		}
		switch {
		case err != nil:
			t.k.noteBrokenConnection(sentAt, name, err)
		case status/100 == 2:
			t.k.timed(t.n, what, -1, sentAt)
			return status, reply, true
		default:
			for _, one := range allowed {
				if status == one {
					return status, reply, true
				}
			}
			if !t.k.shouldRetry(sentAt, name, status, string(reply)) {
				return status, reply, false
			}
		}
		if load.Monotonic()-begun > int64(startWithin) {
			t.k.breach(lostKind, "%s: no response within %s", name, startWithin)
			return 0, nil, false
		}
		if clock.Sleep(ctx, retryAfter) != nil {
			break
		}
	}
	return 0, nil, false
}

func (t *soakTurn) steer(ctx context.Context, random *rand.Rand) {
	delivery := "next_step"
	if random.IntN(2) == 0 {
		delivery = "interrupt"
	}
	input := "steer-" + strconv.Itoa(t.n)
	t.command(ctx, input, &t.k.acks.steers, map[string]any{
		"type": "input", "turn_id": t.id, "client_steering_id": input, "delivery": delivery,
		"input": client.Text(load.Script{Tokens: 30 + random.IntN(120), Interval: load.TokenInterval}.String()),
	})
}

func (t *soakTurn) cancel(ctx context.Context, _ *rand.Rand) {
	t.command(ctx, "", &t.k.acks.cancels, map[string]any{"type": "cancel", "turn_id": t.id})
}

// command sends a command: an input, or a cancel if input is "".
func (t *soakTurn) command(ctx context.Context, input string, acknowledged *atomic.Int64, body map[string]any) {
	status, reply, ok := t.request(ctx, appendTime, http.MethodPost, "/chat/steering", body, http.StatusConflict)
	if !ok || status != http.StatusAccepted { // the turn was over already
		return
	}
	var receipt protocol.SteeringReceipt
	if err := json.Unmarshal(reply, &receipt); err != nil {
		t.k.breach(unexpectedKind, "turn %s: %v: %s", t.id, err, reply)
	}
	acknowledged.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = append(t.told, verify.Command{Input: input, Outcome: verify.Acknowledged, Sequence: receipt.Sequence})
	t.used = t.used || input != "" // an input that is returned becomes a follow-up
}

// conversationID returns the turn's conversation. It queries the service, because the reader may not have read it yet.
func (t *soakTurn) conversationID(ctx context.Context) (string, bool) {
	_, reply, ok := t.request(ctx, readTime, http.MethodGet, "/chat/turns/"+t.id, nil)
	return string(field(reply, conversationName)), ok
}

// queue submits a follow-up for the turn's conversation. If the turn has ended in the meantime, that starts another
// turn.
func (t *soakTurn) queue(ctx context.Context, random *rand.Rand) {
	conversation, ok := t.conversationID(ctx)
	if !ok {
		return
	}
	t.mu.Lock()
	t.used = true
	t.mu.Unlock()
	other := &soakTurn{k: t.k, n: t.n, random: random, account: t.account, due: load.Monotonic(), seen: newReaderState(), first: true}
	request := t.account.QueueRequest(load.Script{Tokens: 30 + random.IntN(120), Interval: load.TokenInterval}.String(), conversation)
	for begun := load.Monotonic(); ctx.Err() == nil && load.Monotonic()-begun < int64(startWithin); {
		sentAt := load.Monotonic()
		conn, response, err := t.k.connections.open(ctx, t.k.site.Public, request)
		switch {
		case err != nil:
			t.k.noteBrokenConnection(sentAt, "queueing", err)
		case response.status == http.StatusOK:
			other.id = response.turn
			t.k.acks.starts.Add(1)
			if other.follow(ctx, conn, response) {
				other.judge()
			}
			return
		default:
			t.k.connections.drop(conn)
			if response.status == http.StatusAccepted {
				t.k.acks.queued.Add(1)
				return
			}
			if !t.k.shouldRetry(sentAt, "POST /chat to the queue", response.status, response.body) {
				return
			}
		}
		if clock.Sleep(ctx, retryAfter) != nil {
			return
		}
	}
}

// draft writes the conversation's draft and reads it again. No other client writes it.
func (t *soakTurn) draft(ctx context.Context, _ *rand.Rand) {
	t.writeAndCheck(ctx, "draft", "content", func(p *soakPage) string { return p.Draft.Content })
}

// title does the same with the title.
func (t *soakTurn) title(ctx context.Context, _ *rand.Rand) {
	t.writeAndCheck(ctx, "title", "title", func(p *soakPage) string { return p.Title })
}

// writeAndCheck sends a new text to a part of the conversation, in the named field of the body, and reads it again.
func (t *soakTurn) writeAndCheck(ctx context.Context, part, field string, read func(*soakPage) string) {
	conversation, ok := t.conversationID(ctx)
	if !ok {
		return
	}
	text := part + " " + strconv.Itoa(t.n)
	if _, _, ok = t.request(ctx, writeTime, http.MethodPut, "/conversations/"+conversation+"/"+part, map[string]string{field: text}); !ok {
		return
	}
	t.k.acks.writes.Add(1)
	t.checkPage(ctx, conversation, part, read, text)
}

// soakPage is the part of a conversation's page that is checked.
type soakPage struct {
	Title string `json:"title"`
	Draft struct {
		Content string `json:"content"`
	} `json:"draft"`
}

// checkPage checks that the conversation's page has a text that was written.
func (t *soakTurn) checkPage(ctx context.Context, conversation, what string, of func(*soakPage) string, want string) {
	_, reply, ok := t.request(ctx, readTime, http.MethodGet, "/conversations/"+conversation, nil)
	if !ok {
		return
	}
	var page soakPage
	if err := json.Unmarshal(reply, &page); err != nil || of(&page) != want {
		t.k.breach(lostKind, "the %s of %s was written as %q and reads %q", what, conversation, want, of(&page))
	}
}

func (t *soakTurn) page(ctx context.Context, _ *rand.Rand) {
	if conversation, ok := t.conversationID(ctx); ok {
		t.request(ctx, readTime, http.MethodGet, "/conversations/"+conversation, nil)
	}
}

func (t *soakTurn) messages(ctx context.Context, _ *rand.Rand) {
	if conversation, ok := t.conversationID(ctx); ok {
		t.request(ctx, readTime, http.MethodGet, "/conversations/"+conversation+"/messages?limit=20", nil)
	}
}

func (t *soakTurn) list(ctx context.Context, _ *rand.Rand) {
	t.request(ctx, readTime, http.MethodGet, "/conversations?limit=20", nil)
}

// watch is a second reader, which starts at the first event and may leave before the end.
func (t *soakTurn) watch(ctx context.Context, random *rand.Rand) {
	sentAt := load.Monotonic()
	conn, response, err := t.k.connections.open(ctx, t.k.site.Public, t.account.EventsRequest(t.id, 0))
	if err != nil {
		t.k.noteBrokenConnection(sentAt, "watching", err)
		return
	}
	defer t.k.connections.drop(conn)
	if response.status != http.StatusOK {
		t.k.shouldRetry(sentAt, "GET /chat/turns/…/events", response.status, response.body)
		return
	}
	v, left := newReaderState(), 1+random.IntN(1000)
	_ = v.read(response.frames, func(int64) {}, func() bool { left--; return left == 0 }) // may be cut; the main reader resumes
	if len(v.Findings) > 0 || v.missing() > 0 {
		t.k.breach(gapKind, "turn %s, a second reader: %s, %v", t.id, v, v.Findings)
	}
}

// idleConversations holds the idle conversations of each account, so that later turns use them again.
type idleConversations struct {
	mu  sync.Mutex
	all map[*load.Account][]idleConversation // guarded by mu
}

type idleConversation struct {
	conversation string
	turns        int
}

const maxIdleConversations = 20

func (p *idleConversations) take(a *load.Account) (one idleConversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if list := p.all[a]; len(list) > 0 {
		one, p.all[a] = list[0], list[1:]
	}
	return one
}

func (p *idleConversations) give(a *load.Account, one idleConversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all[a]) < maxIdleConversations {
		p.all[a] = append(p.all[a], one)
	}
}
