package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

const (
	races           = 1000
	racers          = 12 // at once, each with an account
	racesInOneTalk  = 20
	racesTime       = 4 * time.Minute
	aimStep         = 1500 * time.Microsecond // at most, towards the edge
	leastOnEachSide = races / 20
)

// course is one way for a turn to end while somebody steers it.
type course struct {
	name     string
	share    int // of ten
	text     string
	from     string // the event from which the aim counts
	delivery string
	cancels  bool
	ends     []protocol.TurnState
}

var courses = []course{
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

// An input that comes around the end of a turn is either refused, and then never used, or accepted, and then in exactly
// one place: in a model step of this turn, or back in the user's hands as a held follow-up.
func TestSteeringAtTheEndIsAppliedOrReturnedOnceOrRefused(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Up()
	ctx := sitetest.Within(t, racesTime)
	seed := testSeed(t)
	var next atomic.Int64
	var tally tally
	var running sync.WaitGroup
	began := time.Now()
	for i := range racers {
		u := sitetest.NewUser(t, s.Base)
		running.Go(func() {
			r := &racer{u: u, random: rand.New(rand.NewPCG(seed, uint64(i))), aims: map[string]time.Duration{}}
			for next.Load() < races && ctx.Err() == nil {
				if err := r.talk(ctx, &next, &tally); err != nil {
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
			t.Errorf("only %d were %s: the races do not meet the edge", tally.counts[side], side)
		}
	}
}

// tally counts what came of the races.
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

// racer runs one race after the other and keeps its aim at the edge: later after it was accepted, earlier after it was
// refused.
type racer struct {
	u      *sitetest.User
	random *rand.Rand
	aims   map[string]time.Duration
}

// talk is some races in one conversation, whose queue has to hold what was returned and nothing else.
func (r *racer) talk(ctx context.Context, next *atomic.Int64, tally *tally) error {
	a, err := r.u.AskAgain(ctx, http.MethodPost, "/conversations", map[string]string{"title": "Races"})
	if err != nil {
		return err
	}
	var conversation protocol.Conversation
	if err := a.Decode(http.StatusCreated, &conversation); err != nil {
		return err
	}
	var fates []fate
	for i := range racesInOneTalk {
		number := next.Add(1)
		if number > races {
			break
		}
		f, err := r.race(ctx, conversation.ConversationID.String(), courseOf(i), number)
		if err != nil {
			return fmt.Errorf("race %d: %w", number, err)
		}
		switch {
		case f.applied == 1:
			tally.add("applied")
		case f.returned == 1:
			tally.add("returned")
			fates = append(fates, f)
		default:
			tally.add("refused")
		}
	}
	return r.checkQueue(ctx, conversation.ConversationID.String(), fates)
}

func (r *racer) checkQueue(ctx context.Context, conversation string, returned []fate) error {
	a, err := r.u.AskAgain(ctx, http.MethodGet, "/conversations/"+conversation, nil)
	if err != nil {
		return err
	}
	var page protocol.ConversationPage
	if err := a.Decode(http.StatusOK, &page); err != nil {
		return err
	}
	if len(page.FollowUps) != len(returned) {
		return fmt.Errorf("%d inputs were returned, the queue holds %d", len(returned), len(page.FollowUps))
	}
	for _, f := range returned {
		if err := checkParked(page.FollowUps, f); err != nil {
			return err
		}
	}
	return nil
}

// courseOf deals the courses by their shares.
func courseOf(i int) course {
	at := i % 10
	for _, c := range courses {
		if at -= c.share; at < 0 {
			return c
		}
	}
	panic("the shares are less than ten")
}

// race runs one turn and steers it near its end.
func (r *racer) race(ctx context.Context, conversation string, c course, number int64) (fate, error) {
	s, refused, err := r.u.ChatAgain(ctx, sitetest.Saying(c.text).In(conversation))
	if err != nil || refused != nil {
		return fate{}, fmt.Errorf("%s: POST /chat: %w, %+v", c.name, err, refused)
	}
	defer s.Close()
	var events []sitetest.Event
	for {
		e, err := s.Next()
		if err != nil {
			return fate{}, fmt.Errorf("%s: before %s: %w", c.name, c.from, err)
		}
		if events = append(events, e); e.Kind == c.from {
			break
		}
	}
	shot := r.shoot(ctx, c, s.Turn, number)
	later, err := s.Rest()
	got := <-shot
	if err := errors.Join(err, got.err); err != nil {
		return fate{}, fmt.Errorf("%s: %w", c.name, err)
	}
	events = append(events, later...)
	if got.receipt.Status == http.StatusAccepted {
		r.aims[c.name] += time.Duration(r.random.Int64N(int64(aimStep)))
	} else {
		r.aims[c.name] -= time.Duration(r.random.Int64N(int64(aimStep)))
	}
	f, err := c.judge(events, got, clientID(number))
	if err != nil {
		return f, fmt.Errorf("%s, aim %s: %w", c.name, r.aims[c.name], err)
	}
	return f, nil
}

func clientID(number int64) string { return fmt.Sprintf("race-%d", number) }

type shot struct {
	receipt   sitetest.Receipt
	cancelled sitetest.Receipt
	err       error
}

// shoot sends the input when the aim says so, and the cancel beside it. A negative aim holds the cancel back instead.
func (r *racer) shoot(ctx context.Context, c course, turn string, number int64) <-chan shot {
	done := make(chan shot, 1)
	aim := r.aims[c.name]
	go func() {
		var got shot
		var both sync.WaitGroup
		var cancelErr error
		if c.cancels {
			both.Go(func() {
				if cancelErr = sitetest.Pause(ctx, max(0, -aim)); cancelErr == nil {
					got.cancelled, cancelErr = sitetest.Insist(ctx, r.u, sitetest.Cancelling(turn))
				}
			})
		}
		err := sitetest.Pause(ctx, max(0, aim))
		if err == nil {
			got.receipt, err = sitetest.Insist(ctx, r.u, sitetest.Steering(turn, clientID(number), "steer "+clientID(number)+".", c.delivery))
		}
		both.Wait()
		got.err = errors.Join(err, cancelErr)
		done <- got
	}()
	return done
}

// judge holds the log of the turn against what the client was told.
func (c course) judge(events []sitetest.Event, got shot, id string) (fate, error) {
	f := fateOf(events, id)
	end := events[len(events)-1].Payload().(*protocol.TurnFinished)
	ended := false
	for _, state := range c.ends {
		ended = ended || end.Status == state
	}
	said := strings.Join(sitetest.Texts(sitetest.Fold(events)), "")
	named := strings.Contains(said, id+".")
	switch {
	case !ended || end.LastSequence != int64(len(events)):
		return f, fmt.Errorf("the turn ended %+v after %d events", end, len(events))
	case c.cancels && got.cancelled.Status != http.StatusAccepted:
		return f, fmt.Errorf("the cancel was answered %d", got.cancelled.Status)
	case got.receipt.Status == http.StatusAccepted && (f.accepted != 1 || f.sequence != got.receipt.Sequence || f.applied+f.returned != 1):
		return f, fmt.Errorf("accepted as event %d, and the log says %+v", got.receipt.Sequence, f)
	case got.receipt.Status == http.StatusConflict && (f.accepted != 0 || f.applied+f.returned != 0):
		return f, fmt.Errorf("refused, and the log says %+v", f)
	case f.returned == 1 && f.followUp == nil:
		return f, fmt.Errorf("returned to nowhere: %+v", f)
	case end.Status == protocol.TurnCompleted && named != (f.applied == 1):
		return f, fmt.Errorf("the log says %+v, and the answer %q", f, said)
	}
	return f, nil
}
