package promises

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clock"
)

// The load of departures.
const (
	liveTurns    = 201 // live turns, of which a node starts a third
	textInterval = 50 * time.Millisecond
	calm         = time.Second // of undisturbed reading, which gives the baseline
	followPause  = 50 * time.Millisecond
)

// departures measures how long the turns of a node pause for their readers when the node is drained, and when it is
// killed. Each round drains one node, starts it again and kills the next one, which runs its own turns and some that it
// took over.
func (r *run) departures(ctx context.Context) error {
	for round := range r.pick(8, 1) {
		live, err := r.startFollowed(ctx, r.pick(liveTurns, 2*nodes))
		if err != nil {
			return err
		}
		err = r.depart(ctx, live, round%nodes, goals.DrainLimit, (*site.Child).Stop)
		if err == nil {
			err = r.depart(ctx, live, (round+1)%nodes, goals.TakeoverLimit, func(c *site.Child) error { c.Kill(); return nil })
		}
		if err = errors.Join(err, live.end(ctx, r.site)); err != nil {
			return err
		}
	}
	return nil
}

// depart ends a node, waits until each of its turns has continued on another one, and starts it again.
func (r *run) depart(ctx context.Context, live *followed, leaving int, limit string, end func(*site.Child) error) error {
	live.mark()
	if err := clock.Sleep(ctx, calm); err != nil {
		return err
	}
	for _, t := range live.turns {
		r.addIdle(limit, t.longest())
	}
	owners, err := r.owners(ctx)
	if err != nil {
		return err
	}
	left, ok := live.ownerOf(leaving, owners)
	if !ok {
		return fmt.Errorf("%s: no live turn was started by node %d", limit, leaving+1)
	}
	live.away.Store(int32(leaving))
	defer live.away.Store(noNode)
	var expected []*followedTurn
	for _, t := range live.turns {
		if owners[t.id] == left {
			expected = append(expected, t)
		}
	}
	live.mark()
	node := r.cluster.Nodes[leaving]
	if err := end(node.Child); err != nil {
		return err
	}
	for _, t := range expected {
		pause, err := t.awaitTakeover(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", limit, err)
		}
		r.add(limit, map[string]string{goals.DrainLimit: "SIGTERM", goals.TakeoverLimit: "kill -9"}[limit], pause)
	}
	load.Transport.CloseIdleConnections() // those to the node are broken
	return r.cluster.Start(ctx, node)
}

// owners returns the owner of each live turn.
func (r *run) owners(ctx context.Context) (map[uuid.UUID]string, error) {
	text, err := r.site.SQL(ctx, `select turn_id, owner from turns where not terminal`)
	if err != nil {
		return nil, err
	}
	owners := map[uuid.UUID]string{}
	for line := range strings.Lines(text) {
		turn, owner, _ := strings.Cut(strings.TrimSpace(line), "|")
		id, err := uuid.Parse(turn)
		if err != nil {
			return nil, err
		}
		owners[id] = owner
	}
	return owners, nil
}

// followed are live turns with their readers.
type followed struct {
	turns   []*followedTurn
	away    atomic.Int32 // the node to which readers do not connect, as a load balancer ensures; noNode: none
	readers errgroup.Group
	stop    context.CancelFunc // ends the readers
}

const noNode = -1

// followedTurn is a live turn with one reader, which changes the node when its stream ends.
type followedTurn struct {
	id        uuid.UUID
	turn      string
	startedBy int                // index of the node
	first     chan struct{}      // closed at the first text
	ended     chan struct{}      // closed at the end of the turn
	paused    chan time.Duration // one for each takeover: from the last text before it to the first text after it
	text      atomic.Int64       // when the last text arrived, in the time of load.Monotonic; 0: none yet
	gap       atomic.Int64       // the longest time between two texts since mark, without takeovers
}

// maxTakeovers is how often a round takes a turn over.
const maxTakeovers = 2

// startFollowed starts turns through all nodes in turn. Their readers are spread over the nodes independently of that.
func (r *run) startFollowed(ctx context.Context, turns int) (*followed, error) {
	reading, stop := context.WithCancel(ctx)
	live := &followed{stop: stop}
	live.away.Store(noNode)
	script := load.Script{Tokens: load.Endless, Interval: textInterval}.String()
	for i := range turns {
		via := r.via[i%len(r.via)]
		t := &followedTurn{
			startedBy: i % nodes, first: make(chan struct{}), ended: make(chan struct{}), paused: make(chan time.Duration, maxTakeovers),
		}
		stream, response, err := via[t.startedBy].OpenStream(ctx, client.Request{
			Method: http.MethodPost, Path: "/chat", Body: client.ChatRequest{Input: client.Text(script)}, IdempotencyKey: client.NewKey(),
		}, 0)
		if err == nil && stream == nil {
			err = fmt.Errorf("starting a turn: %d %s", response.Status, response.Body)
		}
		if err != nil {
			return nil, errors.Join(err, live.end(ctx, r.site))
		}
		stream.Close()
		var id protocol.TurnID
		if err := id.UnmarshalText([]byte(stream.Turn)); err != nil {
			return nil, errors.Join(err, live.end(ctx, r.site))
		}
		t.id, t.turn = uuid.UUID(id), stream.Turn
		live.turns = append(live.turns, t)
		live.readers.Go(func() error { return t.follow(reading, via, (i+i/nodes)%nodes, &live.away) })
	}
	for _, t := range live.turns {
		if err := t.await(ctx, t.first); err != nil {
			return nil, errors.Join(err, live.end(ctx, r.site))
		}
	}
	return live, nil
}

// end makes the model end the turns, and waits until their readers have read the end. It returns an error if a turn was
// taken over that no fault had hit.
func (f *followed) end(ctx context.Context, s *site.Site) error {
	err := s.EndTurns(ctx)
	defer f.stop()
	defer time.AfterFunc(load.EndWithin, f.stop).Stop()
	err = errors.Join(err, f.readers.Wait())
	for _, t := range f.turns {
		if len(t.paused) > 0 {
			err = errors.Join(err, fmt.Errorf("%s was taken over without a fault", t.turn))
		}
	}
	return err
}

func (f *followed) mark() {
	for _, t := range f.turns {
		t.gap.Store(0)
	}
}

// ownerOf returns the owner of the turns that a node started and still runs.
func (f *followed) ownerOf(node int, owners map[uuid.UUID]string) (owner string, ok bool) {
	i := slices.IndexFunc(f.turns, func(t *followedTurn) bool { return t.startedBy == node && owners[t.id] != "" })
	if i < 0 {
		return "", false
	}
	return owners[f.turns[i].id], true
}

// longest returns the longest time without text since mark.
func (t *followedTurn) longest() time.Duration {
	return time.Duration(max(t.gap.Load(), load.Monotonic()-t.text.Load()))
}

// await waits until a channel is closed.
func (t *followedTurn) await(ctx context.Context, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s has no text: %w", t.turn, ctx.Err())
	}
}

// awaitTakeover returns the pause of the next takeover that awaitTakeover has not returned yet.
func (t *followedTurn) awaitTakeover(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case pause := <-t.paused:
		return pause, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s has not continued: %w", t.turn, ctx.Err())
	}
}

// follow reads the turn to its end. When a stream ends early, the reader connects to the next node after the reconnection
// time that the service requested, as a browser does.
func (t *followedTurn) follow(ctx context.Context, via []*client.Client, node int, away *atomic.Int32) error {
	var after int64
	recovering := false
	for ; ; node = (node + 1) % len(via) {
		if int(away.Load()) == node {
			continue
		}
		stream, refused, err := via[node].OpenEvents(ctx, t.turn, after, "")
		if refused != nil && refused.Status != http.StatusServiceUnavailable {
			return fmt.Errorf("following %s: %d %s", t.turn, refused.Status, refused.Body)
		}
		wait := followPause
		if err == nil && stream != nil {
			after, err = t.read(stream, &recovering)
			wait = max(wait, stream.Retry())
			stream.Close()
			switch {
			case errors.Is(err, client.ErrBroken):
				return err
			case stream.Finished():
				close(t.ended)
				return nil
			}
		}
		if clock.Sleep(ctx, wait) != nil {
			return fmt.Errorf("following %s: %w", t.turn, errors.Join(ctx.Err(), err))
		}
	}
}

// read reads a stream to its end. It returns the sequence number of the last event.
func (t *followedTurn) read(stream *client.Stream, recovering *bool) (after int64, err error) {
	for {
		event, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return stream.After(), nil
		}
		if err != nil {
			return stream.After(), err
		}
		switch event.Type {
		case (*protocol.TurnRecoveringEvent)(nil).EventType():
			*recovering = true
		case (*protocol.AnswerDelta)(nil).EventType():
			if err := t.arrived(recovering); err != nil {
				return stream.After(), err
			}
		}
	}
}

// arrived notes that text has arrived. It returns an error if the turn was taken over more often than a round does.
func (t *followedTurn) arrived(recovering *bool) error {
	now := load.Monotonic()
	before := t.text.Swap(now)
	switch {
	case before == 0:
		close(t.first)
	case *recovering:
		*recovering = false
		select {
		case t.paused <- time.Duration(now - before):
		default:
			return client.Broken("%s was taken over without a fault", t.turn)
		}
	default:
		t.gap.Store(max(t.gap.Load(), now-before))
	}
	return nil
}

// cancels measures how long turns last after their cancel while the process of the model is frozen, so that it reacts to
// nothing. The baseline is a model that runs.
func (r *run) cancels(ctx context.Context) error {
	for _, frozen := range []bool{false, true} {
		live, err := r.startFollowed(ctx, r.pick(leastEvents+1, nodes))
		if err != nil {
			return err
		}
		if frozen {
			err = syscall.Kill(r.site.Model.PID(), syscall.SIGSTOP)
		}
		if err == nil {
			err = r.cancelAll(ctx, live, func(took time.Duration) {
				if frozen {
					r.add(goals.CancelLimit, "the model is frozen", took)
				} else {
					r.addIdle(goals.CancelLimit, took)
				}
			})
		}
		if err = errors.Join(err, syscall.Kill(r.site.Model.PID(), syscall.SIGCONT), live.end(ctx, r.site)); err != nil {
			return err
		}
	}
	return nil
}

// cancelAll cancels turns one after the other, each through a node that does not run it, and adds the time until its
// reader has the end.
func (r *run) cancelAll(ctx context.Context, live *followed, add func(time.Duration)) error {
	for i, t := range live.turns {
		began := time.Now()
		if _, err := r.via[i%len(r.via)][(t.startedBy+1)%nodes].Cancel(ctx, t.turn, protocol.CancelTurn); err != nil {
			return fmt.Errorf("cancelling %s: %w", t.turn, err)
		}
		if err := t.await(ctx, t.ended); err != nil {
			return err
		}
		add(time.Since(began))
	}
	return nil
}
