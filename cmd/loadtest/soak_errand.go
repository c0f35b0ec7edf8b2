package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// errand is something that happens beside a turn, to one in so many.
type errand struct {
	oneIn int
	do    func(*soakTurn, context.Context, *rand.Rand)
}

var errands = []errand{
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

// planErrands begins what happens beside the turn, each at its time, whether or not anything else is slow.
func (t *soakTurn) planErrands(ctx context.Context, lifetime time.Duration) {
	for i, each := range errands {
		random := rand.New(rand.NewPCG(t.random.Uint64(), uint64(i)))
		if random.IntN(each.oneIn) != 0 {
			continue
		}
		at := time.Duration(random.Int64N(int64(lifetime)))
		t.errands.Go(func() {
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

// ask insists on an answer that decides. ok is false when the run ends, or the answer was one that is not allowed;
// allowed are the statuses beside 2xx that are.
func (t *soakTurn) ask(ctx context.Context, what int, method, path string, body any, allowed ...int) (status int, answer []byte, ok bool) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, false
	}
	name := method + " " + strings.SplitN(path, "/", 3)[1]
	for begun := monotonic(); ctx.Err() == nil; {
		asked := monotonic()
		status, answer, err = t.k.once(ctx, t.account, method, path, text)
		switch {
		case err != nil:
			t.k.broken(asked, name, err)
		case status/100 == 2:
			t.k.timed(t.n, what, -1, asked)
			return status, answer, true
		default:
			for _, one := range allowed {
				if status == one {
					return status, answer, true
				}
			}
			if !t.k.again(asked, name, status, string(answer)) {
				return status, answer, false
			}
		}
		if monotonic()-begun > int64(startWithin) {
			t.k.breach(lostKind, "%s: no answer within %s", name, startWithin)
			return 0, nil, false
		}
		if wait(ctx, retryAfter) != nil {
			break
		}
	}
	return 0, nil, false
}

// once is one request and its whole answer.
func (k *soak) once(ctx context.Context, a *account, method, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+k.site.public+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Cookie", a.cookie)
	request.Header.Set("X-CSRF-Token", a.csrf)
	response, err := k.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

func textInput(text string) []map[string]string {
	return []map[string]string{{"type": "text", "text": text}}
}

func (t *soakTurn) steer(ctx context.Context, random *rand.Rand) {
	delivery := "next_step"
	if random.IntN(2) == 0 {
		delivery = "interrupt"
	}
	_, answer, ok := t.ask(ctx, appendTime, http.MethodPost, "/chat/steering", map[string]any{
		"type": "input", "turn_id": t.id, "client_steering_id": "steer-" + strconv.Itoa(t.n), "delivery": delivery,
		"input": textInput(script{Tokens: 30 + random.IntN(120), Interval: tokenInterval}.String()),
	}, http.StatusConflict)
	id := field(answer, steeringName)
	if !ok || len(id) == 0 { // the turn was over
		return
	}
	t.k.acks.steers.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steered = append(t.steered, string(id))
	t.used = true // one that is returned stands in the queue
}

func (t *soakTurn) cancel(ctx context.Context, _ *rand.Rand) {
	status, _, ok := t.ask(ctx, appendTime, http.MethodPost, "/chat/steering", map[string]any{"type": "cancel", "turn_id": t.id}, http.StatusConflict)
	if ok && status == http.StatusAccepted {
		t.k.acks.cancels.Add(1)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.cancelled = true
	}
}

// where is the conversation, once it is known: a reader may be behind, so it is asked for.
func (t *soakTurn) where(ctx context.Context) (string, bool) {
	_, answer, ok := t.ask(ctx, readTime, http.MethodGet, "/chat/turns/"+t.id, nil)
	return string(field(answer, conversationName)), ok
}

// queue puts an item behind the turn, or begins another one if it is over meanwhile.
func (t *soakTurn) queue(ctx context.Context, random *rand.Rand) {
	conversation, ok := t.where(ctx)
	if !ok {
		return
	}
	t.mu.Lock()
	t.used = true
	t.mu.Unlock()
	other := &soakTurn{k: t.k, n: t.n, random: random, account: t.account, due: monotonic(), seen: newSight(), first: true}
	request := t.account.queueRequest(script{Tokens: 30 + random.IntN(120), Interval: tokenInterval}.String(), conversation)
	for begun := monotonic(); ctx.Err() == nil && monotonic()-begun < int64(startWithin); {
		asked := monotonic()
		conn, answer, err := t.k.lines.open(ctx, t.k.site.public, request)
		switch {
		case err != nil:
			t.k.broken(asked, "queueing", err)
		case answer.status == http.StatusOK:
			other.id = answer.turn
			t.k.acks.starts.Add(1)
			if other.follow(ctx, conn, answer) {
				other.judge()
			}
			return
		default:
			t.k.lines.drop(conn)
			if answer.status == http.StatusAccepted {
				t.k.acks.queued.Add(1)
				return
			}
			if !t.k.again(asked, "POST /chat to the queue", answer.status, answer.body) {
				return
			}
		}
		if wait(ctx, retryAfter) != nil {
			return
		}
	}
}

// queueRequest is POST /chat that waits its turn.
func (a *account) queueRequest(text, conversation string) []byte {
	return a.chat(fmt.Sprintf(`{"input":[{"type":"text","text":%q}],"conversation_id":%q,"if_busy":"queue"}`, text, conversation))
}

// draft writes one and reads it again: nobody else writes in this conversation.
func (t *soakTurn) draft(ctx context.Context, _ *rand.Rand) {
	conversation, ok := t.where(ctx)
	if !ok {
		return
	}
	text := "draft " + strconv.Itoa(t.n)
	if _, _, ok = t.ask(ctx, writeTime, http.MethodPut, "/conversations/"+conversation+"/draft", map[string]string{"content": text}); !ok {
		return
	}
	t.k.acks.writes.Add(1)
	t.standsIn(ctx, conversation, "draft", func(p *soakPage) string { return p.Draft.Content }, text)
}

func (t *soakTurn) title(ctx context.Context, _ *rand.Rand) {
	conversation, ok := t.where(ctx)
	if !ok {
		return
	}
	text := "title " + strconv.Itoa(t.n)
	if _, _, ok = t.ask(ctx, writeTime, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": text}); !ok {
		return
	}
	t.k.acks.writes.Add(1)
	t.standsIn(ctx, conversation, "title", func(p *soakPage) string { return p.Title }, text)
}

// soakPage is what is looked at in a conversation's page.
type soakPage struct {
	Title string `json:"title"`
	Draft struct {
		Content string `json:"content"`
	} `json:"draft"`
}

func (t *soakTurn) standsIn(ctx context.Context, conversation, what string, of func(*soakPage) string, want string) {
	_, answer, ok := t.ask(ctx, readTime, http.MethodGet, "/conversations/"+conversation, nil)
	if !ok {
		return
	}
	var page soakPage
	if err := json.Unmarshal(answer, &page); err != nil || of(&page) != want {
		t.k.breach(lostKind, "the %s of %s was written as %q and reads %q", what, conversation, want, of(&page))
	}
}

func (t *soakTurn) page(ctx context.Context, _ *rand.Rand) {
	if conversation, ok := t.where(ctx); ok {
		t.ask(ctx, readTime, http.MethodGet, "/conversations/"+conversation, nil)
	}
}

func (t *soakTurn) messages(ctx context.Context, _ *rand.Rand) {
	if conversation, ok := t.where(ctx); ok {
		t.ask(ctx, readTime, http.MethodGet, "/conversations/"+conversation+"/messages?limit=20", nil)
	}
}

func (t *soakTurn) list(ctx context.Context, _ *rand.Rand) {
	t.ask(ctx, readTime, http.MethodGet, "/conversations?limit=20", nil)
}

// watch is a second reader, who begins at the beginning and goes before the end.
func (t *soakTurn) watch(ctx context.Context, random *rand.Rand) {
	asked := monotonic()
	conn, answer, err := t.k.lines.open(ctx, t.k.site.public, t.account.eventsRequest(t.id, 0))
	if err != nil {
		t.k.broken(asked, "watching", err)
		return
	}
	defer t.k.lines.drop(conn)
	if answer.status != http.StatusOK {
		t.k.again(asked, "GET /chat/turns/…/events", answer.status, answer.body)
		return
	}
	v, left := newSight(), 1+random.IntN(1000)
	_ = v.read(answer.lines, func(int64) {}, func() bool { left--; return left == 0 }) // it may be cut: the reader comes again
	if v.gaps+v.tally.broken+v.broken > 0 {
		t.k.breach(gapKind, "turn %s, a second reader: %s", t.id, v)
	}
}

// places are conversations that are idle, of each account.
type places struct {
	mu  sync.Mutex
	all map[*account][]place // guarded by mu
}

type place struct {
	conversation string
	turns        int
}

const mostPlaces = 20

func (p *places) take(a *account) (one place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if list := p.all[a]; len(list) > 0 {
		one, p.all[a] = list[0], list[1:]
	}
	return one
}

func (p *places) give(a *account, one place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all[a]) < mostPlaces {
		p.all[a] = append(p.all[a], one)
	}
}
