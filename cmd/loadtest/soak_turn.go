package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// soakTurn is one turn and everybody around it: who starts it and reads it, comes and goes, steers, cancels and queues,
// and writes drafts and titles meanwhile.
type soakTurn struct {
	k       *soak
	n       int
	random  *rand.Rand // of the reader's goroutine
	account *account
	id      string
	due     int64 // when its start was
	seen    *sight
	first   bool  // its first event came
	back    int64 // since when its reader is there again
	leaves  []int64

	errands sync.WaitGroup
	over    chan struct{} // closed when its last event came

	mu        sync.Mutex
	steered   []string // guarded by mu: inputs that were accepted
	cancelled bool     // guarded by mu: a cancel was accepted
	used      bool     // guarded by mu: its conversation is not idle when it is over
}

const (
	startWithin = 2 * time.Minute  // a start that nobody takes so long is lost
	turnWithin  = 15 * time.Minute // so is a turn that has no end
	retryAfter  = 150 * time.Millisecond
	mostAway    = 8 * time.Second
	// A conversation is used again until it has so many turns.
	mostTurns = 5
)

// drawTokens is the length of an answer: many short ones, few long ones.
func drawTokens(random *rand.Rand) int {
	switch drawn := random.Float64(); {
	case drawn < 0.70:
		return 100 + random.IntN(500)
	case drawn < 0.95:
		return 600 + random.IntN(900)
	default:
		return 1500 + random.IntN(3000)
	}
}

// meanTokens is what drawTokens draws in the middle.
const meanTokens = 0.70*350 + 0.25*1050 + 0.05*3000

// live is the whole life of turn n, which has its place until it has ended.
func (k *soak) live(ctx context.Context, n int) {
	leave := sync.OnceFunc(func() { <-k.alive })
	defer leave()
	random := rand.New(rand.NewPCG(k.command.Seed, uint64(n)+2))
	a := k.site.accounts[random.IntN(len(k.site.accounts))]
	t := &soakTurn{
		k: k, n: n, random: random, account: a, due: monotonic(), seen: newSight(), over: make(chan struct{}),
	}
	tokens := drawTokens(random)
	text := script{Tokens: tokens, First: time.Duration(random.IntN(150)) * time.Millisecond, Interval: tokenInterval}.String()
	place := place{}
	if random.IntN(2) == 0 {
		place = k.places.take(a)
	}
	lifetime := time.Duration(tokens) * tokenInterval
	t.planLeaves(tokens)
	conn, answer := t.start(ctx, a.chatRequest(text, place.conversation))
	if answer == nil {
		return
	}
	k.acks.starts.Add(1)
	t.planErrands(ctx, lifetime)
	ended := t.follow(ctx, conn, answer)
	leave()
	close(t.over)
	t.errands.Wait()
	if !ended {
		return
	}
	t.judge()
	t.mu.Lock()
	used := t.used
	t.mu.Unlock()
	if place.turns++; !used && place.turns < mostTurns && t.seen.conversation != "" {
		place.conversation = t.seen.conversation
		k.places.give(a, place)
	}
	t.lookAgain(ctx)
}

// start asks until the turn is there. A nil answer says that it never was.
func (t *soakTurn) start(ctx context.Context, request []byte) (net.Conn, *answerOf) {
	for ctx.Err() == nil {
		asked := monotonic()
		conn, answer, err := t.k.lines.open(ctx, t.k.site.public, request)
		switch {
		case err != nil:
			t.k.broken(asked, "starting", err)
		case answer.status == http.StatusOK:
			t.id = answer.turn
			return conn, answer
		default:
			t.k.lines.drop(conn)
			if !t.k.again(asked, "POST /chat", answer.status, answer.body) {
				return nil, nil
			}
		}
		if monotonic()-t.due > int64(startWithin) {
			t.k.breach(lostKind, "no start within %s", startWithin)
			return nil, nil
		}
		if t.pause(ctx) != nil {
			return nil, nil
		}
	}
	return nil, nil
}

func (t *soakTurn) pause(ctx context.Context) error {
	return wait(ctx, retryAfter+time.Duration(t.random.Int64N(int64(retryAfter))))
}

// planLeaves says after which events the reader goes for a while.
func (t *soakTurn) planLeaves(tokens int) {
	if t.random.IntN(3) != 0 {
		return
	}
	for at := 1 + t.random.Int64N(int64(tokens)); at < int64(tokens) && len(t.leaves) < 4; at += 1 + t.random.Int64N(int64(tokens)) {
		t.leaves = append(t.leaves, at)
	}
}

func (t *soakTurn) token(due int64) {
	t.k.meter.token(t.n, monotonic()-due, t.k.windows.calm(due), due < t.back)
}

// event notes one and tells whether the reader goes now.
func (t *soakTurn) event() (leave bool) {
	t.k.meter.event(t.n)
	if !t.first {
		t.first = true
		t.k.timed(t.n, firstTime, anyFirst, t.due)
	}
	if len(t.leaves) > 0 && t.seen.sequence >= t.leaves[0] && !t.seen.over {
		t.leaves = t.leaves[1:]
		return true
	}
	return false
}

// follow reads the turn to its end, over as many connections as that takes. false says that it has none.
func (t *soakTurn) follow(ctx context.Context, conn net.Conn, answer *answerOf) bool {
	for {
		asked := monotonic()
		err := t.seen.read(answer.lines, t.token, t.event)
		t.k.lines.drop(conn)
		switch {
		case t.seen.over:
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errLeft):
			if wait(ctx, time.Duration(t.random.Int64N(int64(mostAway)))) != nil {
				return false
			}
			t.back = monotonic()
			t.k.acks.returns.Add(1)
		default:
			t.k.broken(max(asked, monotonic()-int64(time.Second)), "reading", err)
		}
		if conn, answer = t.resume(ctx); answer == nil {
			return false
		}
	}
}

// resume asks for what follows the last event. A nil answer says that there is none, which is a breach.
func (t *soakTurn) resume(ctx context.Context) (net.Conn, *answerOf) {
	for ctx.Err() == nil {
		asked := monotonic()
		conn, answer, err := t.k.lines.open(ctx, t.k.site.public, t.account.eventsRequest(t.id, t.seen.sequence))
		if err == nil && answer.status == http.StatusOK {
			return conn, answer
		}
		if err != nil {
			t.k.broken(asked, "resuming", err)
		} else {
			t.k.lines.drop(conn)
			switch {
			case answer.status == http.StatusNoContent:
				t.k.breach(lostKind, "turn %s is over and we have not seen its end: %s", t.id, t.seen)
				return nil, nil
			case strings.Contains(answer.body, "sequence_ahead"):
				t.k.breach(notDurableKind, "turn %s: %s: %s", t.id, t.seen, answer.body)
				return nil, nil
			case !t.k.again(asked, "GET /chat/turns/…/events", answer.status, answer.body):
				return nil, nil
			}
		}
		if monotonic()-t.due > int64(turnWithin) {
			t.k.breach(lostKind, "turn %s does not end: %s", t.id, t.seen)
			return nil, nil
		}
		if t.pause(ctx) != nil {
			return nil, nil
		}
	}
	return nil, nil
}

// judge holds what was seen against what was promised.
func (t *soakTurn) judge() {
	k, v := t.k, t.seen
	k.acks.ends.Add(1)
	k.ended(v.status)
	if missing := v.gaps + v.broken + v.tally.broken; missing > 0 {
		k.breachTimes(missing, gapKind, "turn %s: %d events and %d tokens", t.id, v.gaps, v.broken+v.tally.broken)
	}
	if v.doubles > 0 {
		k.breachTimes(v.doubles, doubleKind, "turn %s: events behind its end", t.id)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range t.steered {
		switch times := v.steered[id]; {
		case times == 0:
			k.breach(lostKind, "turn %s: input %s was accepted, and neither applied nor returned", t.id, id)
		case times > 1:
			k.breach(doubleKind, "turn %s: input %s was applied or returned %d times", t.id, id, times)
		}
	}
	if t.cancelled && v.status != "cancelled" {
		k.breach(lostKind, "turn %s: a cancel was accepted, and it ended %s", t.id, v.status)
	}
}

// rereadOneIn is how many turns are read once more from their beginning: one in so many, some time later.
const (
	rereadOneIn = 10
	rereadAfter = 45 * time.Second
)

func (t *soakTurn) lookAgain(ctx context.Context) {
	memory := memory{account: t.account, turn: t.id, sequence: t.seen.sequence, hash: t.seen.hash}
	t.k.remember(memory)
	if t.random.IntN(rereadOneIn) != 0 {
		return
	}
	select { // a run that ends is no reason not to look
	case <-t.k.draining:
	case <-ctx.Done():
		return
	case <-time.After(time.Duration(t.random.Int64N(int64(rereadAfter)))):
	}
	t.k.reread(ctx, memory)
}

// memory is what a turn was.
type memory struct {
	account  *account
	turn     string
	sequence int64
	hash     uint64
}

// reread reads a finished turn from its beginning and compares.
func (k *soak) reread(ctx context.Context, m memory) {
	for begun := monotonic(); monotonic()-begun < int64(startWithin) && ctx.Err() == nil; {
		asked := monotonic()
		conn, answer, err := k.lines.open(ctx, k.site.public, m.account.eventsRequest(m.turn, 0))
		v := newSight()
		switch {
		case err != nil:
			k.broken(asked, "reading again", err)
		case answer.status == http.StatusOK:
			err = v.read(answer.lines, func(int64) {}, func() bool { return false })
			k.lines.drop(conn)
			if errors.Is(err, io.EOF) && v.over {
				k.acks.rereads.Add(1)
				if v.hash != m.hash || v.sequence != m.sequence {
					k.breach(changedKind, "turn %s: seen %d events with hash %x, later %s", m.turn, m.sequence, m.hash, v)
				}
				return
			}
		default:
			k.lines.drop(conn)
			if !k.again(asked, "GET /chat/turns/…/events", answer.status, answer.body) {
				return
			}
		}
		if wait(ctx, retryAfter) != nil {
			return
		}
	}
	if ctx.Err() == nil {
		k.breach(lostKind, "turn %s could not be read again within %s", m.turn, startWithin)
	}
}
