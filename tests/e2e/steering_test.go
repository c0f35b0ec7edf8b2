package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

const (
	races                = 1000
	racers               = 12 // concurrent clients, each with an account
	racesPerConversation = 20
	racesTime            = 4 * time.Minute
	delayStep            = 1500 * time.Microsecond // largest change of the delay after a race
	leastOnEachSide      = races / 20
)

// ending is one way in which a turn ends while a client steers it.
type ending struct {
	name     string
	share    int // in tenths of the races
	text     string
	from     string // the event type from which the delay counts
	delivery string
	cancels  bool
	ends     []protocol.TurnState
}

var endings = []ending{
	{
		name: "the answer ends", share: 4, from: "turn.started", delivery: "next_step",
		text: "[[script tokens=4 ttft=10ms interval=3ms]]", ends: []protocol.TurnState{protocol.TurnCompleted},
	},
	{
		name: "the answer ends, interrupted", share: 2, from: "turn.started", delivery: "interrupt",
		text: "[[script tokens=4 ttft=10ms interval=3ms]]", ends: []protocol.TurnState{protocol.TurnCompleted},
	},
	{
		name: "the model fails", share: 3, from: "turn.started", delivery: "next_step",
		text: "[[script tokens=4 ttft=8ms fail=0]]", ends: []protocol.TurnState{protocol.TurnFailed},
	},
	{
		name: "the turn is cancelled", share: 1, // an account has ten cancels a minute
		from: "answer.started", delivery: "next_step", cancels: true,
		text: "[[script tokens=5000 ttft=0 interval=5ms]]", ends: []protocol.TurnState{protocol.TurnCancelled},
	},
}

// TestSteeringAtTheEndIsAppliedOrReturnedOnceOrRefused sends inputs around the end of a turn. Such an input is either
// refused and never used, or accepted and then in exactly one place: in a model step of this turn, or returned to the
// user as a held follow-up.
func TestSteeringAtTheEndIsAppliedOrReturnedOnceOrRefused(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	ctx := sitetest.Within(t, racesTime)
	seed := testSeed(t)
	var next atomic.Int64
	var tally tally
	var running sync.WaitGroup
	began := time.Now()
	for i := range racers {
		u := sitetest.NewUser(t, s.Base)
		running.Go(func() {
			r := &steeringClient{u: u, random: rand.New(rand.NewPCG(seed, uint64(i))), delays: map[string]time.Duration{}}
			for next.Load() < races && ctx.Err() == nil {
				if err := r.runConversation(ctx, &next, &tally); err != nil {
					tally.fail(err)
				}
			}
		})
	}
	running.Wait()
	t.Logf("%d races in %s: %v", tally.total(), time.Since(began).Round(time.Millisecond), tally.counts)
	for _, err := range tally.failures[:min(len(tally.failures), 10)] {
		t.Error(err)
	}
	if tally.total() < races {
		t.Errorf("%d races, want %d", tally.total(), races)
	}
	for _, side := range []string{"applied", "returned", "refused"} {
		if tally.counts[side] < leastOnEachSide {
			t.Errorf("only %d inputs were %s: the races do not hit the end of the turn", tally.counts[side], side)
		}
	}
}

// tally counts the outcomes of the races.
type tally struct {
	mu       sync.Mutex
	counts   map[string]int // guarded by mu
	failures []error        // guarded by mu
}

func (t *tally) add(outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[outcome]++
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, err)
}

func (t *tally) total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts["applied"] + t.counts["returned"] + t.counts["refused"]
}

// steeringClient runs one race after another. It keeps its delay close to the end of the turn: it increases the delay
// after an accepted input and decreases it after a refused one.
type steeringClient struct {
	u      *sitetest.User
	random *rand.Rand
	delays map[string]time.Duration
}

// runConversation runs some races in one conversation, then checks that the queue of the conversation contains the
// returned inputs and nothing else.
func (r *steeringClient) runConversation(ctx context.Context, next *atomic.Int64, tally *tally) error {
	a, err := r.u.RequestAgain(ctx, http.MethodPost, "/conversations", map[string]string{"title": "Races"})
	if err != nil {
		return err
	}
	var conversation protocol.Conversation
	if err := a.Decode(http.StatusCreated, &conversation); err != nil {
		return err
	}
	var returned []verify.Input
	for i := range racesPerConversation {
		number := next.Add(1)
		if number > races {
			break
		}
		f, err := r.race(ctx, conversation.ConversationID.String(), endingOf(i), number)
		if err != nil {
			return fmt.Errorf("race %d: %w", number, err)
		}
		switch {
		case f.Applied == 1:
			tally.add("applied")
		case f.Returned == 1:
			tally.add("returned")
			returned = append(returned, f)
		default:
			tally.add("refused")
		}
	}
	return r.checkQueue(ctx, conversation.ConversationID.String(), returned)
}

func (r *steeringClient) checkQueue(ctx context.Context, conversation string, returned []verify.Input) error {
	a, err := r.u.RequestAgain(ctx, http.MethodGet, "/conversations/"+conversation, nil)
	if err != nil {
		return err
	}
	var page protocol.ConversationPage
	if err := a.Decode(http.StatusOK, &page); err != nil {
		return err
	}
	if len(page.FollowUps) != len(returned) {
		return fmt.Errorf("%d inputs were returned, the queue has %d items", len(returned), len(page.FollowUps))
	}
	for _, f := range returned {
		if err := checkReturned(page.FollowUps, &f); err != nil {
			return err
		}
	}
	return nil
}

// endingOf returns the ending of the i-th race, according to the shares.
func endingOf(i int) ending {
	at := i % 10
	for _, c := range endings {
		if at -= c.share; at < 0 {
			return c
		}
	}
	panic("the shares add up to less than ten")
}

// race runs one turn and steers it near its end.
func (r *steeringClient) race(ctx context.Context, conversation string, c ending, number int64) (verify.Input, error) {
	s, refused, err := r.u.ChatAgain(ctx, sitetest.NewChatBody(c.text).In(conversation))
	if err != nil || refused != nil {
		return verify.Input{}, fmt.Errorf("%s: POST /chat: %w, %+v", c.name, err, refused)
	}
	defer s.Close()
	var events []sitetest.Event
	for {
		e, err := s.Next()
		if err != nil {
			return verify.Input{}, fmt.Errorf("%s: before %s: %w", c.name, c.from, err)
		}
		if events = append(events, e); string(e.Type) == c.from {
			break
		}
	}
	sent := r.sendCommands(ctx, c, s.Turn, number)
	later, err := s.Rest()
	got := <-sent
	if err := errors.Join(err, got.err); err != nil {
		return verify.Input{}, fmt.Errorf("%s: %w", c.name, err)
	}
	events = append(events, later...)
	if got.receipt.Status == http.StatusAccepted {
		r.delays[c.name] += time.Duration(r.random.Int64N(int64(delayStep)))
	} else {
		r.delays[c.name] -= time.Duration(r.random.Int64N(int64(delayStep)))
	}
	f, err := c.check(s.Turn, events, got, clientID(number))
	if err != nil {
		return f, fmt.Errorf("%s, delay %s: %w", c.name, r.delays[c.name], err)
	}
	return f, nil
}

func clientID(number int64) string { return fmt.Sprintf("race-%d", number) }

type commandResult struct {
	receipt   sitetest.Receipt
	cancelled sitetest.Receipt
	err       error
}

// sendCommands sends the input after the client's delay and, if the ending needs one, the cancel concurrently. A
// negative delay postpones the cancel instead of the input.
func (r *steeringClient) sendCommands(ctx context.Context, c ending, turn string, number int64) <-chan commandResult {
	done := make(chan commandResult, 1)
	delay := r.delays[c.name]
	go func() {
		var got commandResult
		var both sync.WaitGroup
		var cancelErr error
		if c.cancels {
			both.Go(func() {
				if cancelErr = clock.Sleep(ctx, max(0, -delay)); cancelErr == nil {
					got.cancelled, cancelErr = sitetest.SendUntilDecided(ctx, r.u, sitetest.CancelBody(turn))
				}
			})
		}
		err := clock.Sleep(ctx, max(0, delay))
		if err == nil {
			got.receipt, err = sitetest.SendUntilDecided(ctx, r.u, sitetest.SteeringBody(turn, clientID(number), "steer "+clientID(number)+".", c.delivery))
		}
		both.Wait()
		got.err = errors.Join(err, cancelErr)
		done <- got
	}()
	return done
}

// check compares the log of the turn with the responses that the client got. The input is empty if it is not in the log.
func (c ending) check(turn string, events []sitetest.Event, got commandResult, id string) (verify.Input, error) {
	log := make([]verify.Event, len(events))
	for i, e := range events {
		log[i] = e.Event
	}
	read, told := verify.ReadTurn(turn, log), []verify.Command{got.receipt.Of(id)}
	if c.cancels {
		told = append(told, got.cancelled.Of(""))
	}
	input := verify.Input{}
	if logged := read.Inputs[id]; logged != nil {
		input = *logged
	}
	if err := slices.Concat(read.Findings, read.CheckCommands(told)).Err(); err != nil {
		return input, err
	}
	said := strings.Join(sitetest.Texts(read.Parts), "")
	switch named := strings.Contains(said, id+"."); {
	case read.End == nil || !slices.Contains(c.ends, read.End.Status):
		return input, fmt.Errorf("the turn ended %+v after %d events", read.End, len(events))
	case c.cancels && got.cancelled.Status != http.StatusAccepted:
		return input, fmt.Errorf("the cancel returned %d", got.cancelled.Status)
	case read.End.Status == protocol.TurnCompleted && named != (input.Applied == 1):
		return input, fmt.Errorf("the log says %+v, but the answer is %q", input, said)
	}
	return input, nil
}
