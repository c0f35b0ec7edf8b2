package soak

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

// soakTurn is one turn with its clients, which start it, read it, disconnect and resume, steer it, cancel it, queue
// follow-ups, and write drafts and titles in the meantime.
type soakTurn struct {
	k         *soak
	n         int
	random    *rand.Rand // of the reader's goroutine
	account   *load.Account
	id        string
	due       int64 // when its start was due
	seen      *readerState
	first     bool  // its first event was read
	resumedAt int64 // when its reader last came back after leaving
	leaves    []int64

	operations sync.WaitGroup
	over       chan struct{} // closed when its reader is done

	mu   sync.Mutex
	told []verify.Command // guarded by mu: commands that were accepted
	used bool             // guarded by mu: its conversation may not be idle when it is over, and is not used again
}

const (
	startWithin = 2 * time.Minute  // a request without a final response for this long is lost
	turnWithin  = 15 * time.Minute // a turn without an end for this long is lost
	retryAfter  = 150 * time.Millisecond
	maxAway     = 8 * time.Second
	// A conversation is used again until it has maxTurns turns.
	maxTurns = 5
)

// drawTokens draws the number of tokens of an answer: many answers are short, few are long.
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

// meanTokens is the mean of what drawTokens draws.
const meanTokens = 0.70*350 + 0.25*1050 + 0.05*3000

// runTurn runs turn n with its clients and checks. The turn has its slot until its reader is done.
func (k *soak) runTurn(ctx context.Context, n int) {
	freeSlot := sync.OnceFunc(func() { <-k.slots })
	defer freeSlot()
	random := rand.New(rand.NewPCG(k.command.Seed, uint64(n)+2))
	a := k.site.Accounts[random.IntN(len(k.site.Accounts))]
	t := &soakTurn{
		k: k, n: n, random: random, account: a, due: load.Monotonic(), seen: newReaderState(), over: make(chan struct{}),
	}
	tokens := drawTokens(random)
	text := load.Script{Tokens: tokens, First: time.Duration(random.IntN(150)) * time.Millisecond, Interval: load.TokenInterval}.String()
	reused := idleConversation{}
	if random.IntN(2) == 0 {
		reused = k.idle.take(a)
	}
	lifetime := time.Duration(tokens) * load.TokenInterval
	t.planLeaves(tokens)
	conn, response := t.start(ctx, a.ChatRequest(text, reused.conversation))
	if response == nil {
		return
	}
	k.acks.starts.Add(1)
	t.planOperations(ctx, lifetime)
	ended := t.follow(ctx, conn, response)
	freeSlot()
	close(t.over)
	t.operations.Wait()
	if !ended {
		return
	}
	t.judge()
	t.mu.Lock()
	used := t.used
	t.mu.Unlock()
	if reused.turns++; !used && reused.turns < maxTurns && !t.seen.ConversationID.IsZero() {
		reused.conversation = t.seen.ConversationID.String()
		k.idle.give(a, reused)
	}
	t.maybeReread(ctx)
}

// start sends the request until the turn has started. A nil response means that it did not start.
func (t *soakTurn) start(ctx context.Context, request []byte) (net.Conn, *streamResponse) {
	for ctx.Err() == nil {
		sentAt := load.Monotonic()
		conn, response, err := t.k.connections.open(ctx, t.k.site.Public, request)
		switch {
		case err != nil:
			t.k.noteBrokenConnection(sentAt, "starting", err)
		case response.status == http.StatusOK:
			t.id = response.turn
			return conn, response
		default:
			t.k.connections.drop(conn)
			if !t.k.shouldRetry(sentAt, "POST /chat", response.status, response.body) {
				return nil, nil
			}
		}
		if load.Monotonic()-t.due > int64(startWithin) {
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
	return clock.Sleep(ctx, retryAfter+time.Duration(t.random.Int64N(int64(retryAfter))))
}

// planLeaves draws the events after which the reader disconnects for a while.
func (t *soakTurn) planLeaves(tokens int) {
	if t.random.IntN(3) != 0 {
		return
	}
	for at := 1 + t.random.Int64N(int64(tokens)); at < int64(tokens) && len(t.leaves) < 4; at += 1 + t.random.Int64N(int64(tokens)) {
		t.leaves = append(t.leaves, at)
	}
}

func (t *soakTurn) token(due int64) {
	t.k.meter.token(t.n, load.Monotonic()-due, t.k.faultWindows.calm(due), due < t.resumedAt)
}

// event counts an event and reports whether the reader leaves now.
func (t *soakTurn) event() (leave bool) {
	t.k.meter.event(t.n)
	if !t.first {
		t.first = true
		t.k.timed(t.n, firstTime, anyFirst, t.due)
	}
	if len(t.leaves) > 0 && t.seen.Last >= t.leaves[0] && !t.seen.Ended {
		t.leaves = t.leaves[1:]
		return true
	}
	return false
}

// follow reads the turn to its end, over as many connections as that takes. It returns false if it did not reach the
// end.
func (t *soakTurn) follow(ctx context.Context, conn net.Conn, response *streamResponse) bool {
	for {
		sentAt := load.Monotonic()
		err := t.seen.read(response.frames, t.token, t.event)
		t.k.connections.drop(conn)
		switch {
		case t.seen.Ended:
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errLeft):
			if clock.Sleep(ctx, time.Duration(t.random.Int64N(int64(maxAway)))) != nil {
				return false
			}
			t.resumedAt = load.Monotonic()
			t.k.acks.returns.Add(1)
		default:
			t.k.noteBrokenConnection(max(sentAt, load.Monotonic()-int64(time.Second)), "reading", err)
		}
		if conn, response = t.resume(ctx); response == nil {
			return false
		}
	}
}

// resume requests the events that follow the last one. A nil response means that the turn cannot be resumed, which is a
// breach, or that the run ended.
func (t *soakTurn) resume(ctx context.Context) (net.Conn, *streamResponse) {
	for ctx.Err() == nil {
		sentAt := load.Monotonic()
		conn, response, err := t.k.connections.open(ctx, t.k.site.Public, t.account.EventsRequest(t.id, t.seen.Last))
		if err == nil && response.status == http.StatusOK {
			return conn, response
		}
		if err != nil {
			t.k.noteBrokenConnection(sentAt, "resuming", err)
		} else {
			t.k.connections.drop(conn)
			switch {
			case response.status == http.StatusNoContent:
				t.k.breach(lostKind, "turn %s is over, but its end was not read: %s", t.id, t.seen)
				return nil, nil
			case strings.Contains(response.body, "sequence_ahead"):
				t.k.breach(notDurableKind, "turn %s: %s: %s", t.id, t.seen, response.body)
				return nil, nil
			case !t.k.shouldRetry(sentAt, "GET /chat/turns/…/events", response.status, response.body):
				return nil, nil
			}
		}
		if load.Monotonic()-t.due > int64(turnWithin) {
			t.k.breach(lostKind, "turn %s does not end: %s", t.id, t.seen)
			return nil, nil
		}
		if t.pause(ctx) != nil {
			return nil, nil
		}
	}
	return nil, nil
}

// judge checks what the reader saw against what the service promised.
func (t *soakTurn) judge() {
	k, v := t.k, t.seen
	k.acks.ends.Add(1)
	if v.End != nil {
		k.ended(string(v.End.Status))
	}
	if missing := v.missing(); missing > 0 {
		k.breachTimes(missing, gapKind, "turn %s: gaps at %d tokens", t.id, missing)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, found := range slices.Concat(v.Findings, v.CheckCommands(t.told)) {
		k.breach(breachKind(found.Kind), "turn %s: %s", t.id, found.Text)
	}
}

// One turn in rereadOneIn is read again from its first event, after a random time of up to rereadAfter.
const (
	rereadOneIn = 10
	rereadAfter = 45 * time.Second
)

// maybeReread records the turn and, for some turns, reads it again.
func (t *soakTurn) maybeReread(ctx context.Context) {
	record := turnRecord{account: t.account, turn: t.id, sequence: t.seen.Last, hash: t.seen.Digest}
	t.k.sampleTurn(record)
	if t.random.IntN(rereadOneIn) != 0 {
		return
	}
	select { // while the run drains, the turn is read again without a wait
	case <-t.k.draining:
	case <-ctx.Done():
		return
	case <-time.After(time.Duration(t.random.Int64N(int64(rereadAfter)))):
	}
	t.k.reread(ctx, record)
}

// turnRecord identifies a finished turn and what its reader saw of it.
type turnRecord struct {
	account  *load.Account
	turn     string
	sequence int64
	hash     verify.Digest
}

// reread reads a finished turn from its first event and compares it with what its reader saw.
func (k *soak) reread(ctx context.Context, m turnRecord) {
	for begun := load.Monotonic(); load.Monotonic()-begun < int64(startWithin) && ctx.Err() == nil; {
		sentAt := load.Monotonic()
		conn, response, err := k.connections.open(ctx, k.site.Public, m.account.EventsRequest(m.turn, 0))
		v := newReaderState()
		switch {
		case err != nil:
			k.noteBrokenConnection(sentAt, "reading again", err)
		case response.status == http.StatusOK:
			err = v.read(response.frames, func(int64) {}, func() bool { return false })
			k.connections.drop(conn)
			if errors.Is(err, io.EOF) && v.Ended {
				k.acks.rereads.Add(1)
				if v.Digest != m.hash || v.Last != m.sequence {
					k.breach(changedKind, "turn %s: seen %d events with hash %x, later %s", m.turn, m.sequence, m.hash, v)
				}
				return
			}
		default:
			k.connections.drop(conn)
			if !k.shouldRetry(sentAt, "GET /chat/turns/…/events", response.status, response.body) {
				return
			}
		}
		if clock.Sleep(ctx, retryAfter) != nil {
			return
		}
	}
	if ctx.Err() == nil {
		k.breach(lostKind, "turn %s could not be read again within %s", m.turn, startWithin)
	}
}
