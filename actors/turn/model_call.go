package turn

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/modelinput"
	"turnstone/actors/observe"
	"turnstone/actors/retry"
	"turnstone/actors/routing"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// textWait is the time until a turn starts without the text of a file that was not read yet.
const textWait = time.Minute

// modelCalls makes the model calls of all turns of a node.
type modelCalls struct {
	model    llm.Model
	metered  *metering.Model
	routes   routing.Routes
	contexts routing.Contexts
	breakers routing.Breakers
	requests modelinput.Builder
	grants   Approvals
	slots    storeSlots
	observer observe.Observer
	log      *zap.Logger
}

// run makes one model call and streams the answer into output. If the profile has several routes and the turn
// has no output yet, it calls the next route when one fails, and leaves out routes that failed before.
func (c *modelCalls) run(ctx context.Context, p machine.CallInput, output *modelOutput) error {
	routes := c.routes[p.Spec.Routing.Profile]
	current := min(max(1, p.Route), len(routes)) - 1 // a node with another configuration may have begun the turn
	if p.Answering || len(routes) == 1 {
		return c.callRoute(ctx, p, routes[current], false, output)
	}
	at := c.breakers.Choose(routes, current, p.Spec.AccountID, time.Now())
	if at < 0 {
		at = current
	}
	for {
		if at != current {
			current = at
			c.log.Info("another route is used", zap.Stringer("turn", p.Spec.TurnID), zap.String("model", routes[at].Model))
			if err := output.put(ctx, outputItem{route: at + 1}); err != nil {
				return err
			}
		}
		err := c.callRoute(ctx, p, routes[at], at+1 < len(routes), output)
		if c.noteRoute(routes[at], p.Spec.AccountID, err) {
			at = c.breakers.Choose(routes, at+1, p.Spec.AccountID, time.Now())
		}
		if err == nil || ctx.Err() != nil || at == current || at < 0 {
			return err
		}
	}
}

// noteRoute notes in the route's breaker how a call ended. It reports whether another route may succeed.
func (c *modelCalls) noteRoute(route routing.Route, account protocol.AccountID, err error) (next bool) {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		if err == nil {
			c.breakers.Succeeded(route, account)
		}
		return false
	}
	switch failure.Code {
	case protocol.ModelUnavailable, protocol.ModelRateLimited, protocol.ModelProtocol:
		if !failure.Unusable {
			c.breakers.Failed(route, account, false, time.Now())
		}
	case protocol.ModelUnauthorized, protocol.ModelCreditUsedUp, protocol.ModelRejected, protocol.ModelContextExceeded:
		if failure.Lasting { // otherwise the request may be the cause, and requests of others succeed
			c.breakers.Failed(route, account, true, time.Now())
		}
	default:
		return false
	}
	return !failure.Cut
}

// routing returns what turn.routing reports when a turn is answered by another route than the first. number counts from 1.
func (c *modelCalls) routing(spec *turnlog.Spec, number int) protocol.TurnRouting {
	routing := spec.Routing
	routing.Route, routing.ModelID = number, c.routes[spec.Routing.Profile][number-1].Model
	routing.Reason = "The model of this profile does not answer at the moment, so another one answers."
	if number == 1 {
		routing.Reason = spec.Routing.Reason
	}
	return routing
}

// callRoute makes one model call with a route. A request that is longer than the model's context is made shorter and
// repeated once. With fallback, another route follows, so a provider that is busy is waited for only a short time.
func (c *modelCalls) callRoute(ctx context.Context, p machine.CallInput, route routing.Route, fallback bool, output *modelOutput) error {
	route.Fallback = fallback
	limited := c.contexts.Limit(route)
	err := c.callModel(ctx, p, limited, output)
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Code != protocol.ModelContextExceeded || failure.Cut {
		return err
	}
	shorter := limited.Shorter()
	if c.contexts.Learn(route, failure.Limit) {
		shorter = c.contexts.Limit(route)
		c.log.Warn("the context of the model is smaller than configured", zap.String("model", route.Model), zap.Int("count", shorter.ContextTokens))
	}
	return c.callModel(ctx, p, shorter, output)
}

// callModel calls the model once and puts what it returns into output.
func (c *modelCalls) callModel(ctx context.Context, p machine.CallInput, route routing.Route, output *modelOutput) error {
	request, err := c.buildRequestInGoroutine(ctx, p, route)
	if err != nil {
		return err
	}
	output.trimmed = request.Trimmed && p.Step == 1
	if err := output.put(ctx, outputItem{hint: llm.EstimateInput(&request.Request), files: request.Files, reading: request.Reading}); err != nil {
		return err
	}
	granted := false
	ctx, call := c.observer.StartModelCall(ctx, c.model.Family(), p.Step)
	_, err = c.metered.Stream(ctx, p.Spec.AccountID, request.Request, func(chunk llm.Chunk) error {
		call.Chunk()
		if chunk.Kind == llm.ChunkToolCall && !granted {
			granted = true
			c.readGrants(ctx, p, output)
		}
		if err := failpoint.Before(failpoint.TurnAfterModelFirstByte); err != nil {
			return err
		}
		if chunk.Kind == llm.ChunkCitation {
			chunk.Text, chunk.Address = foreign.Storable(chunk.Text), foreign.Storable(chunk.Address)
		}
		if chunk.Kind == llm.ChunkOpaque {
			chunk.Opaque = json.RawMessage(foreign.Storable(string(chunk.Opaque)))
			if chunk.Owner == "" {
				chunk.Owner = c.model.Family()
			}
		}
		return failpoint.After(failpoint.TurnAfterModelFirstByte, output.emit(ctx, chunk))
	})
	call.End(err)
	if err != nil && ctx.Err() == nil {
		level := zap.WarnLevel
		if codeOf(err) == protocol.ModelCreditUsedUp { // the client logs it, once a minute
			level = zap.DebugLevel
		}
		c.log.Log(level, "model call failed", zap.Stringer("turn", p.Spec.TurnID), zap.Int("step", p.Step), zap.String("model", route.Model), zap.Error(err))
	}
	return err
}

// readGrants puts the grants of the conversation into output, before the first call of a tool. Without them, more is asked.
func (c *modelCalls) readGrants(ctx context.Context, p machine.CallInput, output *modelOutput) {
	grants, err := c.grants.Grants(ctx, p.Spec.AccountID, p.Spec.ConversationID)
	if err != nil {
		c.log.Warn("reading the grants of a conversation failed", zap.Stringer("turn", p.Spec.TurnID), zap.Error(err))
		return
	}
	if len(grants) > 0 {
		_ = output.put(ctx, outputItem{grants: &grants}) // fails when the call was stopped
	}
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
func (c *modelCalls) buildRequestInGoroutine(ctx context.Context, p machine.CallInput, route routing.Route) (request *modelinput.Request, err error) {
	built := make(chan struct{})
	go func() {
		defer close(built)
		request, err = c.buildRequestWithRetry(ctx, p, route)
	}()
	<-built
	return request, err
}

// buildRequestWithRetry builds the request of one model call. It retries while the store is unavailable, and for textWait
// while the text of a file was not read yet; the turn waits meanwhile.
func (c *modelCalls) buildRequestWithRetry(ctx context.Context, p machine.CallInput, route routing.Route) (request *modelinput.Request, err error) {
	began := time.Now()
	judge := func(err error) retry.Verdict {
		if errors.Is(err, modelinput.ErrPending) {
			return retry.Wait
		}
		return retry.Unavailable(err)
	}
	failed := func(err error) {
		c.log.Warn("reading the conversation failed, will retry", zap.Stringer("turn", p.Spec.TurnID), zap.Error(err))
	}
	err = c.slots.retry(ctx, judge, failed, func() (failed error) {
		request, failed = c.requests.Build(ctx, p, route, time.Since(began) < textWait)
		return failed
	})
	return request, err
}
