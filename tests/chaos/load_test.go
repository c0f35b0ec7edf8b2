package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/timelimit"
	"turnstone/protocol/verify"
)

const (
	// A turn takes about ten seconds, so most faults hit it in the middle.
	script = "[[script tokens=160 interval=60ms]]"
	// An item of a queue becomes a short turn.
	queuedScript = "[[script tokens=5]]"

	accounts = 4
	// silence is how long the second reader of a turn waits for the next event before it reconnects to another node, as the
	// app does. The first one reconnects only when its connection has ended, as an EventSource does.
	silence = 3 * time.Second
	pause   = 50 * time.Millisecond // between two attempts of a client
	// Of the requests that may be repeated, one in giveUpOnce has a client that does not wait for the response, but cuts the
	// connection within giveUpAfter, and one in loseOnce has a client that loses the response. Both repeat it on any node.
	giveUpOnce  = 8
	giveUpAfter = 8 // doublings of a millisecond
	loseOnce    = 8
)

// requestTimeout is how long a client waits for one response. A command may take 8 s.
var requestTimeout = timelimit.Of(10 * time.Second)

// load is a steady load of live turns and of writes.
type load struct {
	site    *site
	users   []*user
	writers []*writer
	turns   int // live at the same time
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	live    map[string]*record         // guarded by mu
	all     []*record                  // guarded by mu
	starts  []verify.Write             // guarded by mu: the turns, and the items of queues, by the token of their text
	took    map[string][]time.Duration // guarded by mu: requests to nodes without a planned fault, by kind
	slow    []string                   // guarded by mu: those that took longer than outcomeWithin
	failed  []string                   // guarded by mu
	changed chan struct{}              // guarded by mu: closed at the next event of any turn
}

// user is an account, signed in. via has it at each node, commanding with the ledger of the node's commands.
type user struct {
	via, commanding [nodeCount]*sitetest.User
}

// record is what clients know of a turn.
type record struct {
	turn, conversation string
	random             *rand.Rand
	user               *user
	told               []verify.Command  // the commands that were decided
	decided            []verify.Decision // the decisions on its approval
	counted            int               // events that the first reader got
	end                *protocol.TurnFinished

	// Guarded by load.mu.
	last     int64     // newest event that any reader got
	at       time.Time // when a reader got its newest event
	gap      time.Duration
	approval *protocol.ApprovalRequest
}

func startLoad(t *testing.T, s *site, turns int, seed uint64) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{
		site: s, turns: turns, stop: stop,
		live: map[string]*record{}, took: map[string][]time.Duration{}, changed: make(chan struct{}),
	}
	for i := range accounts {
		u := &user{}
		first := sitetest.NewUser(t, s.nodes[0].base)
		for k, n := range s.nodes {
			u.via[k], u.commanding[k] = first.ViaLedger(t, n.base, n.others), first.ViaLedger(t, n.base, n.commands)
		}
		l.users = append(l.users, u)
		w := newWriter(t, l, u, rand.New(rand.NewPCG(seed, uint64(1000+i))))
		l.writers = append(l.writers, w)
		w.follow(t)
		l.running.Go(func() { l.repeat(ctx, w.write) })
	}
	for i := range turns {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		l.running.Go(func() { l.repeat(ctx, func(context.Context) error { return l.turn(l.users[i%len(l.users)], random) }) })
	}
	return l
}

// repeat performs an action again and again until ctx ends or the action fails.
func (l *load) repeat(ctx context.Context, act func(context.Context) error) {
	for ctx.Err() == nil {
		if err := act(ctx); err != nil {
			l.fail(err)
			return
		}
	}
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, err.Error())
}

// finish lets the live turns end and waits for them.
func (l *load) finish() {
	l.stop()
	l.running.Wait()
}

// try sends a request to one node after another until it has an outcome other than a refusal for the moment, and returns the
// node. send reports whether it has one. The time from the first attempt on, or from the first one after the last attempt at a node
// with a planned fault, is recorded.
func (l *load) try(ctx context.Context, kind string, random *rand.Rand, ledger func(*node) *sitetest.Ledger, send func(ctx context.Context, at int) (bool, error)) (at int, err error) {
	var since time.Time // zero: the last attempt met a planned fault, or had its outcome
	lost := false       // the response to an earlier attempt
	for {
		at = l.site.pick(random, -1)
		attempt, stop := context.WithTimeout(ctx, patience(kind, random))
		began := time.Now()
		if since.IsZero() {
			since = began
		}
		done, err := send(attempt, at)
		stop()
		if planned := ledger(l.site.nodes[at]).Planned(began); planned {
			since = time.Time{}
		} else if done && err == nil {
			l.note(kind, l.site.nodes[at], since)
		}
		if done && err == nil && !lost && repeatable(kind) && random.IntN(loseOnce) == 0 {
			lost, since = true, time.Time{}
			continue
		}
		if done {
			return at, err
		}
		if clock.Sleep(ctx, pause) != nil {
			return at, fmt.Errorf("%s has no outcome: %w", kind, errors.Join(ctx.Err(), err))
		}
	}
}

// repeatable reports whether a request of a kind may be repeated after another one. A write without a key or version may not: it could be
// executed after a later one.
func repeatable(kind string) bool { return kind == "start" || kind == "create" || kind == "command" }

// patience returns how long a client waits for one response.
func patience(kind string, random *rand.Rand) time.Duration {
	if repeatable(kind) && random.IntN(giveUpOnce) == 0 {
		return time.Millisecond << random.IntN(giveUpAfter+1)
	}
	return requestTimeout
}

// note records how long a request to a node without a fault took.
func (l *load) note(kind string, n *node, began time.Time) {
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[kind] = append(l.took[kind], took)
	if took > outcomeWithin {
		l.slow = append(l.slow, fmt.Sprintf("a %s from %s on had its outcome after %s, from %s", kind, began.Format(time.StampMilli), took.Round(time.Millisecond), n.name))
	}
}

// again reports whether a request is repeated: it got no response, was refused for the moment, or another attempt of it still runs.
func again(response *sitetest.Response, err error) bool {
	if err != nil || response.Status == http.StatusServiceUnavailable {
		return true
	}
	p := response.Problem()
	return p != nil && p.Code == protocol.CodeIdempotencyBusy
}

func ofCommands(n *node) *sitetest.Ledger { return n.commands }
func ofOthers(n *node) *sitetest.Ledger   { return n.others }

// turn starts a turn, follows it with two readers, and steers it, cancels it, decides its approval or queues another one.
func (l *load) turn(u *user, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), sitetest.HangGuard)
	defer cancel()
	r := &record{user: u, random: random}
	act := actions[random.IntN(len(actions))]
	first, at, err := l.begin(ctx, r, act.script)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.live[r.turn], l.all = r, append(l.all, r)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.live, r.turn)
		l.mu.Unlock()
	}()
	var others sync.WaitGroup
	var second, acted error
	node, seed := l.site.pick(random, at), random.Uint64()
	others.Go(func() {
		second = l.read(ctx, r, nil, node, silence, rand.New(rand.NewPCG(seed, 2)), func(e sitetest.Event) { l.seen(r, e, false) })
	})
	if act.do != nil {
		others.Go(func() { acted = act.do(l, ctx, r, rand.New(rand.NewPCG(seed, 3))) })
	}
	err = l.read(ctx, r, first, at, sitetest.HangGuard, random, func(e sitetest.Event) { l.seen(r, e, true) })
	others.Wait()
	if err := errors.Join(err, second, acted); err != nil {
		return fmt.Errorf("%s: %w", r.turn, err)
	}
	return l.check(r)
}

// actions are what clients do while a turn runs, each as likely as the others.
var actions = []struct {
	script string
	do     func(*load, context.Context, *record, *rand.Rand) error
}{
	{script, (*load).cancel},
	{script, (*load).steer},
	{script, (*load).steer},
	{script, (*load).queue},
	{"[[script tokens=100 interval=60ms approval=low:reversible]]", (*load).decide},
	{script, nil},
}

// begin starts a turn. A request that fails is repeated on another node, with the same key.
func (l *load) begin(ctx context.Context, r *record, script string) (stream *sitetest.Stream, at int, err error) {
	key, token := uuid.NewString(), uuid.NewString()
	body := sitetest.NewChatBody(token + " " + script)
	at, err = l.try(ctx, "start", r.random, ofOthers, func(attempt context.Context, at int) (bool, error) {
		if stream != nil { // lost
			stream.Close()
			stream = nil
		}
		open, end := context.WithCancel(ctx) // it lasts longer than the attempt
		context.AfterFunc(ctx, end)
		given := context.AfterFunc(attempt, end)
		opened, refused, err := r.user.via[at].TryChat(open, body, "Idempotency-Key", key)
		switch {
		case !given(): // given up
			if opened != nil {
				opened.Close()
			}
			return false, err
		case opened != nil:
			stream, r.turn = opened, opened.Turn
			l.started(verify.Write{What: token, ID: r.turn, Outcome: verify.Acknowledged})
			return true, nil
		case again(refused, err):
			return false, err
		}
		return true, fmt.Errorf("POST /chat: %d %s", refused.Status, refused.Body)
	})
	return stream, at, err
}

func (l *load) started(w verify.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts = append(l.starts, w)
}

// read follows a turn to its end, over any nodes. open is a stream that is open already, or nil. It reconnects when the
// connection ends, or after patience without an event.
func (l *load) read(ctx context.Context, r *record, open *sitetest.Stream, at int, patience time.Duration, random *rand.Rand, seen func(sitetest.Event)) error {
	var after int64
	for {
		ended, err := l.connect(ctx, r, open, at, patience, &after, seen)
		if err != nil || ended {
			return err
		}
		open = nil
		if clock.Sleep(ctx, pause) != nil {
			return fmt.Errorf("following: no end after event %d", after)
		}
		at = l.site.pick(random, -1)
	}
}

// connect reads one stream of a turn until the turn ends, the stream ends or it is silent for too long. A node that ends it before
// the turn has ended has failed.
func (l *load) connect(ctx context.Context, r *record, open *sitetest.Stream, at int, patience time.Duration, after *int64, seen func(sitetest.Event)) (ended bool, err error) {
	attempt, stop := context.WithCancel(ctx)
	defer stop()
	quiet := time.AfterFunc(patience, stop)
	defer quiet.Stop()
	began := time.Now()
	if open == nil {
		stream, refused, err := r.user.via[at].Follow(attempt, r.turn, *after, "")
		if err == nil && refused != nil && refused.Status != http.StatusServiceUnavailable {
			return false, fmt.Errorf("following after %d: %d %s", *after, refused.Status, refused.Body)
		}
		if stream == nil {
			return false, nil // the ledger of the node has it
		}
		if n := l.site.nodes[at]; !n.others.Planned(began) {
			l.note("read", n, began)
		}
		open = stream
	}
	defer context.AfterFunc(attempt, open.Close)()
	defer open.Close()
	for {
		e, err := open.Next()
		switch {
		case errors.Is(err, sitetest.ErrBroken):
			return false, err
		case errors.Is(err, io.EOF) && open.Finished():
			return true, nil
		case err != nil:
			if attempt.Err() == nil {
				l.site.nodes[at].others.Count("a stream of "+r.turn, began, 0, err)
			}
			return false, nil
		}
		quiet.Reset(patience)
		*after = e.Sequence
		seen(e)
	}
}

// seen notes an event that a reader of a turn got.
func (l *load) seen(r *record, e sitetest.Event, first bool) {
	payload := e.Payload()
	l.mu.Lock()
	defer l.mu.Unlock()
	if first {
		r.counted++
		if end, is := payload.(*protocol.TurnFinished); is {
			r.end = end
		}
	}
	if e.Sequence <= r.last {
		return // another reader was faster
	}
	now := time.Now()
	if !r.at.IsZero() {
		r.gap = max(r.gap, now.Sub(r.at))
	}
	r.at, r.last = now, e.Sequence
	switch p := payload.(type) {
	case *protocol.TurnStarted:
		r.conversation = p.ConversationID.String()
	case *protocol.ApprovalRequested:
		r.approval = &p.Approval
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// reaches waits until the turn has got to a random event. It returns false if the turn ended before.
func (l *load) reaches(ctx context.Context, r *record, random *rand.Rand) bool {
	when := 10 + random.Int64N(60)
	return l.await(ctx, func() bool { return r.last > when || r.end != nil }) == nil
}

func (l *load) cancel(ctx context.Context, r *record, random *rand.Rand) error {
	if !l.reaches(ctx, r, random) {
		return nil
	}
	return l.command(ctx, r, sitetest.CancelBody(r.turn), "", random)
}

func (l *load) steer(ctx context.Context, r *record, random *rand.Rand) error {
	if !l.reaches(ctx, r, random) {
		return nil
	}
	input, delivery := uuid.NewString(), []string{"next_step", "interrupt"}[random.IntN(2)]
	return l.command(ctx, r, sitetest.SteeringBody(r.turn, input, "and shorter "+queuedScript, delivery), input, random)
}

// command sends a command to any node until it is decided.
func (l *load) command(ctx context.Context, r *record, body map[string]any, input string, random *rand.Rand) error {
	_, err := l.try(ctx, "command", random, ofCommands, func(attempt context.Context, at int) (bool, error) {
		response, err := r.user.commanding[at].Request(attempt, http.MethodPost, "/chat/steering", body)
		if again(response, err) {
			return false, err
		}
		receipt, err := sitetest.ReadReceipt(response)
		if err == nil {
			r.told = append(r.told, receipt.Of(input))
		}
		return true, err
	})
	return err
}

// queue queues a turn behind this one.
func (l *load) queue(ctx context.Context, r *record, random *rand.Rand) error {
	if !l.reaches(ctx, r, random) || r.end != nil {
		return nil
	}
	key, token := uuid.NewString(), uuid.NewString()
	body := sitetest.NewChatBody(token+" "+queuedScript).In(r.conversation).With("if_busy", "queue")
	_, err := l.try(ctx, "start", random, ofOthers, func(attempt context.Context, at int) (bool, error) {
		stream, response, err := r.user.via[at].TryChat(attempt, body, "Idempotency-Key", key)
		switch {
		case stream != nil: // the turn had ended: the message started one at once
			stream.Close()
			l.started(verify.Write{What: token, ID: stream.Turn, Outcome: verify.Acknowledged})
			return true, nil
		case again(response, err):
			return false, err
		}
		l.started(verify.Write{What: token, Outcome: verify.Acknowledged})
		return true, response.Decode(http.StatusAccepted, nil)
	})
	return err
}

// decide decides the approval of a turn twice at the same time, in two ways. The first one counts for both.
func (l *load) decide(ctx context.Context, r *record, random *rand.Rand) error {
	if l.await(ctx, func() bool { return r.approval != nil || r.end != nil }) != nil || r.approval == nil {
		return nil
	}
	var both sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for i, decision := range []protocol.Decision{protocol.ApproveOnce, protocol.RejectCall} {
		own := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		both.Go(func() {
			body := map[string]any{
				"type": "approval", "turn_id": r.turn, "approval_id": r.approval.ApprovalID, "decision": decision, "input_digest": r.approval.InputDigest,
			}
			_, err := l.try(ctx, "command", own, ofCommands, func(attempt context.Context, at int) (bool, error) {
				response, err := r.user.commanding[at].Request(attempt, http.MethodPost, "/chat/steering", body)
				if again(response, err) {
					return false, err
				}
				one, err := decisionOf(r.approval.ApprovalID.String(), decision, response)
				mu.Lock()
				defer mu.Unlock()
				r.decided = append(r.decided, one)
				return true, err
			})
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	both.Wait()
	return failed
}

// decisionOf returns what a client knows of its decision on an approval.
func decisionOf(approval string, decision protocol.Decision, response *sitetest.Response) (verify.Decision, error) {
	one := verify.Decision{Approval: approval, Decision: decision, Outcome: verify.Acknowledged}
	if p := response.Problem(); p != nil && (p.Code == protocol.CodeApprovalDecided || p.Code == protocol.CodeSteeringClosed) {
		one.Outcome = verify.Closed
		return one, nil
	}
	var receipt protocol.SteeringReceipt
	err := response.Decode(http.StatusAccepted, &receipt)
	one.Sequence = receipt.Sequence
	return one, err
}

// await waits until a condition on what the readers have seen holds. The condition is evaluated under mu.
func (l *load) await(ctx context.Context, holds func() bool) error {
	for {
		l.mu.Lock()
		done, changed := holds(), l.changed
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // turns may have ended without another event
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// check checks how a turn ended. At the end of the run, its log is compared with what its clients were told.
func (l *load) check(r *record) error {
	want := protocol.TurnCompleted
	if slices.ContainsFunc(r.told, func(c verify.Command) bool { return c.Input == "" && c.Outcome == verify.Acknowledged }) {
		want = protocol.TurnCancelled
	}
	switch {
	case r.end == nil:
		return fmt.Errorf("%s has no end", r.turn)
	case r.end.Status != want:
		return fmt.Errorf("%s ended %s (%+v), want %s", r.turn, r.end.Status, r.end.Error, want)
	}
	return nil
}

// failures returns what went wrong so far.
func (l *load) failures() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failed)
}
