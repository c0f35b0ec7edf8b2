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

	accounts = 4
	// silence is how long a reader waits for the next event before it reconnects to another node. A client without such
	// a limit would wait for a paused node until the connection breaks.
	silence = 3 * time.Second
	pause   = 50 * time.Millisecond // between two attempts of a client
)

// requestTimeout is how long a client waits for one response. A command may take 8 s.
var requestTimeout = timelimit.Of(10 * time.Second)

// load is a steady load of live turns.
type load struct {
	site    *site
	users   []*user
	turns   int // live at the same time
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	live    map[string]*record // guarded by mu
	all     []*record          // guarded by mu
	failed  []string           // guarded by mu
	changed chan struct{}      // guarded by mu: closed at the next event of any turn
}

// user is an account, signed in; via has it at each node.
type user struct {
	via [nodeCount]*sitetest.User
}

// record is what clients know of a turn.
type record struct {
	turn    string
	random  *rand.Rand
	user    *user
	told    []verify.Command // the commands that were decided
	counted int              // events that the first reader got
	end     *protocol.TurnFinished

	// Guarded by load.mu.
	last int64     // newest event that any reader got
	at   time.Time // when the first reader got its newest event
	gap  time.Duration
}

func startLoad(t *testing.T, s *site, turns int) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{site: s, turns: turns, stop: stop, live: map[string]*record{}, changed: make(chan struct{})}
	for range accounts {
		u := &user{}
		first := sitetest.NewUser(t, s.nodes[0].base)
		for i, n := range s.nodes {
			u.via[i] = first.Via(t, n.base)
		}
		l.users = append(l.users, u)
	}
	for i := range turns {
		l.running.Go(func() { l.work(ctx, l.users[i%len(l.users)], rand.New(rand.NewPCG(uint64(i), 1))) })
	}
	return l
}

// work runs one turn after another until ctx ends.
func (l *load) work(ctx context.Context, u *user, random *rand.Rand) {
	for ctx.Err() == nil {
		if err := l.turn(u, random); err != nil {
			l.mu.Lock()
			l.failed = append(l.failed, err.Error())
			l.mu.Unlock()
			return
		}
	}
}

// finish lets the live turns end and waits for them.
func (l *load) finish() {
	l.stop()
	l.running.Wait()
}

// turn starts a turn, follows it with two readers on different nodes, and steers or cancels it.
func (l *load) turn(u *user, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), sitetest.HangGuard)
	defer cancel()
	r := &record{user: u, random: random}
	first, at, err := l.begin(ctx, r)
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
	var second, commanded error
	choice, node, seed := random.IntN(6), l.site.pick(random, at), random.Uint64()
	others.Go(func() { second = l.read(ctx, r, nil, node, rand.New(rand.NewPCG(seed, 2)), nil) })
	others.Go(func() { commanded = l.command(ctx, r, choice, rand.New(rand.NewPCG(seed, 3))) })
	err = l.read(ctx, r, first, at, random, func(e sitetest.Event) { l.seen(r, e) })
	others.Wait()
	if err := errors.Join(err, second, commanded); err != nil {
		return fmt.Errorf("%s: %w", r.turn, err)
	}
	return l.check(r)
}

// begin starts a turn. A request that fails is repeated on another node, with the same key.
func (l *load) begin(ctx context.Context, r *record) (*sitetest.Stream, int, error) {
	key := uuid.NewString()
	for {
		at := l.site.pick(r.random, -1)
		stream, refused, err := r.user.via[at].TryChat(ctx, sitetest.NewChatBody(script), "Idempotency-Key", key)
		switch {
		case stream != nil:
			r.turn = stream.Turn
			return stream, at, nil
		case err == nil && refused.Status != http.StatusServiceUnavailable:
			return nil, 0, fmt.Errorf("POST /chat: %d %s", refused.Status, refused.Body)
		case clock.Sleep(ctx, pause) != nil:
			return nil, 0, fmt.Errorf("starting a turn: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// read follows a turn to its end, and reconnects to any node. open is a stream that is open already, or nil.
func (l *load) read(ctx context.Context, r *record, open *sitetest.Stream, at int, random *rand.Rand, seen func(sitetest.Event)) error {
	var after int64
	for {
		attempt, stop := context.WithCancel(ctx)
		if open == nil {
			stream, refused, err := r.user.via[at].Follow(attempt, r.turn, after, "")
			if err == nil && refused != nil && refused.Status != http.StatusServiceUnavailable {
				stop()
				return fmt.Errorf("following after %d: %d %s", after, refused.Status, refused.Body)
			}
			open = stream
		}
		if open != nil {
			ended, err := l.drain(open, stop, &after, seen)
			if err != nil || ended {
				stop()
				return err
			}
			open = nil
		}
		stop()
		if clock.Sleep(ctx, pause) != nil {
			return fmt.Errorf("following: no end after event %d", after)
		}
		at = l.site.pick(random, -1)
	}
}

// drain reads a stream until it ends, or is silent for too long.
func (l *load) drain(s *sitetest.Stream, stop func(), after *int64, seen func(sitetest.Event)) (ended bool, err error) {
	defer s.Close()
	quiet := time.AfterFunc(silence, func() { stop(); s.Close() })
	defer quiet.Stop()
	for {
		e, err := s.Next()
		switch {
		case errors.Is(err, sitetest.ErrBroken):
			return false, err
		case errors.Is(err, io.EOF) && s.Finished():
			return true, nil
		case err != nil:
			return false, nil // the connection was cut: the caller reconnects
		}
		quiet.Reset(silence)
		*after = e.Sequence
		if seen != nil {
			seen(e)
		}
	}
}

// seen notes an event that the first reader of a turn got.
func (l *load) seen(r *record, e sitetest.Event) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.counted++
	if !r.at.IsZero() {
		r.gap = max(r.gap, now.Sub(r.at))
	}
	r.at, r.last = now, e.Sequence
	if end, is := e.Payload().(*protocol.TurnFinished); is {
		r.end = end
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// command steers a turn in half of the cases, cancels it in a sixth of them, and otherwise does nothing. It sends each
// command to any node, until it is decided.
func (l *load) command(ctx context.Context, r *record, choice int, random *rand.Rand) error {
	when := 10 + random.Int64N(60)
	if choice > 3 || l.await(ctx, func() bool { return r.last > when || r.end != nil }) != nil {
		return nil
	}
	body, input := sitetest.CancelBody(r.turn), ""
	if choice > 0 {
		input = uuid.NewString()
		body = sitetest.SteeringBody(r.turn, input, "and shorter", "next_step")
	}
	for {
		attempt, stop := context.WithTimeout(ctx, requestTimeout)
		answer, err := r.user.via[l.site.pick(random, -1)].Request(attempt, http.MethodPost, "/chat/steering", body)
		stop()
		if err == nil && answer.Status != http.StatusServiceUnavailable {
			receipt, err := sitetest.ReadReceipt(answer)
			if err == nil {
				r.told = append(r.told, receipt.Of(input))
			}
			return err
		}
		if clock.Sleep(ctx, pause) != nil {
			return fmt.Errorf("a command was not decided: %w", errors.Join(ctx.Err(), err))
		}
	}
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
