package actors

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/attachment"
	"turnstone/actors/llm"
	"turnstone/actors/routing"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

const (
	finishAttempts = 5 // refusals of a turn's end by the store, not counting outages, before the actor gives up
	storePause     = 50 * time.Millisecond
	maxStorePause  = time.Second // between two tries while the store is unavailable
	textWait       = time.Minute // until a turn starts without the text of a file that was not read yet
	// maxStoreSlots limits the number of turns that read from the store or end at the same time. They then use half of
	// the database connections that requests also use. When connections to a model break, or a node fails, hundreds of
	// turns read or end at the same moment, and a request waits only one second for a connection.
	maxStoreSlots = 8
)

// storeSlots is a semaphore with a slot for each turn that reads from the store or ends.
type storeSlots chan struct{}

// use runs do once a slot is free. It returns ctx's error when ctx ends first.
func (s storeSlots) use(ctx context.Context, do func() error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runModelCall makes one model call and streams the answer into the feed. If the profile has several routes and the turn
// has no output yet, it calls the next route when one fails, and leaves out routes that failed before.
func (n *Node) runModelCall(ctx context.Context, p turn.Prompt, feed *modelFeed) error {
	routes := n.routes[p.Spec.Routing.Profile]
	current := min(max(1, p.Route), len(routes)) - 1 // a node with another configuration may have begun the turn
	if p.Answering || len(routes) == 1 {
		return n.callRoute(ctx, p, routes[current], false, feed)
	}
	at := n.breakers.Choose(routes, current, p.Spec.AccountID, time.Now())
	if at < 0 {
		at = current
	}
	for {
		if at != current {
			current = at
			n.log.Info("another route is used", zap.Stringer("turn", p.Spec.TurnID), zap.String("model", routes[at].Model))
			if err := feed.put(ctx, feedItem{route: at + 1}); err != nil {
				return err
			}
		}
		err := n.callRoute(ctx, p, routes[at], at+1 < len(routes), feed)
		if n.noteRoute(routes[at], p.Spec.AccountID, err) {
			at = n.breakers.Choose(routes, at+1, p.Spec.AccountID, time.Now())
		}
		if err == nil || ctx.Err() != nil || at == current || at < 0 {
			return err
		}
	}
}

// noteRoute notes in the route's breaker how a call ended. It reports whether another route may succeed.
func (n *Node) noteRoute(route routing.Route, account protocol.AccountID, err error) (next bool) {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		if err == nil {
			n.breakers.Succeeded(route, account)
		}
		return false
	}
	switch failure.Code {
	case protocol.ModelUnavailable, protocol.ModelRateLimited, protocol.ModelProtocol:
		if !failure.Unusable {
			n.breakers.Failed(route, account, false, time.Now())
		}
	case protocol.ModelUnauthorized, protocol.ModelCreditUsedUp, protocol.ModelRejected, protocol.ModelContextExceeded:
		if failure.Lasting { // otherwise the request may be the cause, and requests of others succeed
			n.breakers.Failed(route, account, true, time.Now())
		}
	default:
		return false
	}
	return !failure.Cut
}

// routing returns what turn.routing reports when a turn is answered by another route than the first. number counts from 1.
func (n *Node) routing(spec *turnlog.Spec, number int) protocol.TurnRouting {
	routing := spec.Routing
	routing.Route, routing.ModelID = number, n.routes[spec.Routing.Profile][number-1].Model
	routing.Reason = "The model of this profile does not answer at the moment, so another one answers."
	if number == 1 {
		routing.Reason = spec.Routing.Reason
	}
	return routing
}

// callRoute makes one model call with a route. A request that is longer than the model's context is made shorter and
// repeated once. With fallback, another route follows, so a provider that is busy is waited for only a short time.
func (n *Node) callRoute(ctx context.Context, p turn.Prompt, route routing.Route, fallback bool, feed *modelFeed) error {
	route.Fallback = fallback
	limited := n.contexts.Limit(route)
	err := feed.callModel(ctx, n, p, limited)
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Code != protocol.ModelContextExceeded || failure.Cut {
		return err
	}
	shorter := limited.Shorter()
	if n.contexts.Learn(route, failure.Limit) {
		shorter = n.contexts.Limit(route)
		n.log.Warn("the context of the model is smaller than configured", zap.String("model", route.Model), zap.Int("count", shorter.ContextTokens))
	}
	return feed.callModel(ctx, n, p, shorter)
}

// callModel calls the model once and puts its output into the feed.
func (f *modelFeed) callModel(ctx context.Context, n *Node, p turn.Prompt, route routing.Route) error {
	request, err := n.buildRequestInGoroutine(ctx, p, route)
	if err != nil {
		return err
	}
	f.trimmed = request.trimmed && p.Step == 1
	if err := f.put(ctx, feedItem{hint: llm.EstimateInput(&request.Request), files: request.files}); err != nil {
		return err
	}
	ctx, call := n.observer.StartModelCall(ctx, n.model.Family(), p.Step)
	_, err = n.metered.Stream(ctx, p.Spec.AccountID, request.Request, func(chunk llm.Chunk) error {
		call.Chunk()
		if err := failpoint.Before(failpoint.TurnAfterModelFirstByte); err != nil {
			return err
		}
		if chunk.Kind == llm.ChunkCitation {
			chunk.Text, chunk.Address = turnlog.Storable(chunk.Text), turnlog.Storable(chunk.Address)
		}
		if chunk.Kind == llm.ChunkOpaque {
			chunk.Opaque = json.RawMessage(turnlog.Storable(string(chunk.Opaque)))
			if chunk.Owner == "" {
				chunk.Owner = n.model.Family()
			}
		}
		return failpoint.After(failpoint.TurnAfterModelFirstByte, f.emit(ctx, chunk))
	})
	call.End(err)
	if err != nil && ctx.Err() == nil {
		level := zap.WarnLevel
		if codeOf(err) == protocol.ModelCreditUsedUp { // the client logs it, once a minute
			level = zap.DebugLevel
		}
		n.log.Log(level, "model call failed", zap.Stringer("turn", p.Spec.TurnID), zap.Int("step", p.Step), zap.String("model", route.Model), zap.Error(err))
	}
	return err
}

// codeOf returns the code of a failed model call; empty for any other error.
func codeOf(err error) protocol.TurnErrorCode {
	var failure *llm.Error
	if errors.As(err, &failure) {
		return failure.Code
	}
	return ""
}

// buildRequestInGoroutine builds the request in a separate goroutine, because reading from the store grows a
// goroutine's stack. The goroutine of the call mostly waits for the model, and should keep a small stack.
func (n *Node) buildRequestInGoroutine(ctx context.Context, p turn.Prompt, route routing.Route) (request *modelRequest, err error) {
	built := make(chan struct{})
	go func() {
		defer close(built)
		request, err = n.buildRequestWithRetry(ctx, p, route)
	}()
	<-built
	return request, err
}

// buildRequestWithRetry builds the request of one model call. It retries while the store is unavailable, and for textWait
// while the text of a file was not read yet; the turn waits meanwhile.
func (n *Node) buildRequestWithRetry(ctx context.Context, p turn.Prompt, route routing.Route) (request *modelRequest, err error) {
	began := time.Now()
	for wait := storePause; ; wait = min(2*wait, maxStorePause) {
		err = n.storeSlots.use(ctx, func() (failed error) {
			request, failed = n.requests.build(ctx, p, route, time.Since(began) < textWait)
			return failed
		})
		switch {
		case errors.Is(err, attachment.ErrPending):
		case err == nil || protocol.CodeOf(err) != protocol.CodeUnavailable:
			return request, err
		default:
			n.log.Warn("reading the conversation failed, will retry", zap.Stringer("turn", p.Spec.TurnID), zap.Error(err))
		}
		if stopped := clock.Sleep(ctx, wait); stopped != nil {
			return nil, stopped
		}
	}
}

// finish stores the end of a turn. It retries until the end is stored, the turn is fenced, the node stops, or the store
// has refused the end finishAttempts times. It runs in a separate goroutine, because the end is a transaction.
func (n *Node) finish(m *turn.Machine, batch *turnlog.Append, end *turn.End, done func(error)) {
	spec := m.Spec()
	f := &turnlog.Finish{
		Append: *batch, Spec: spec, StopReason: end.Reason, Usage: end.Usage, Error: end.Err,
		ModelID: m.Routing().ModelID, Parts: m.Parts(), Status: end.MessageStatus(), Parked: end.Parked,
		PauseQueue: end.State != protocol.TurnCompleted, DropQueue: end.CancelQueue, Repaired: end.Repaired,
		At: time.Now(), MaxLiveTurns: n.maxLiveTurns, Begin: n.Begin,
	}
	if end.WithoutParts {
		f.Parts = nil
	}
	n.startGoroutine(func() {
		pause, refusals := storePause, 0
		for {
			var next *turnlog.Started
			err := n.storeSlots.use(n.ctx, func() (failed error) {
				next, failed = n.store.FinishTurn(n.ctx, f)
				return failed
			})
			if err == nil {
				n.finishedTurn(next)
				done(nil)
				return
			}
			if protocol.CodeOf(err) != protocol.CodeUnavailable {
				refusals++ // not an outage: after finishAttempts the actor gives up, and the turn is claimed again
			}
			if errors.Is(err, turnlog.ErrFenced) || n.ctx.Err() != nil || refusals == finishAttempts {
				done(err)
				return
			}
			n.log.Warn("storing the end of a turn failed, will retry", zap.Stringer("turn", spec.TurnID), zap.Error(err))
			_ = clock.Sleep(n.ctx, pause)
			pause = min(2*pause, maxStorePause)
		}
	})
}
