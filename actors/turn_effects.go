package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

const (
	defaultToolTimeout = time.Minute
	maxToolOutput      = 64 << 10 // what a tool may say to the model and the reader
	finishAttempts     = 5        // of an end that the store refuses, other than in an outage
	storePause         = 50 * time.Millisecond
	maxStorePause      = time.Second // between two tries while the store is away
	// maxAtStore is how many turns read or end at once: with half of the connections that requests take theirs from. When
	// a model's connections break, or a node dies, hundreds of turns do so at the same moment, and a request waits for a
	// connection for a second only.
	maxAtStore = 8
)

// ask makes one model call: it builds the request and streams the answer into the feed.
func (n *Node) ask(ctx context.Context, c callContext, route Route, feed *modelFeed) error {
	request, trimmed, err := n.requestApart(ctx, c, route)
	if err != nil {
		return err
	}
	feed.trimmed = trimmed && c.step == 1
	if err := feed.put(ctx, feedItem{hint: requestTokens(request)}); err != nil {
		return err
	}
	n.stats.modelCalls.Add(1)
	_, err = n.metered.Stream(ctx, c.spec.AccountID, *request, func(chunk ModelChunk) error {
		if err := failpoint.Before(failpoint.TurnAfterModelFirstByte); err != nil {
			return err
		}
		if chunk.Kind == ChunkOpaque {
			chunk.Opaque, chunk.Owner = json.RawMessage(storable(string(chunk.Opaque))), n.model.Family()
		}
		return failpoint.After(failpoint.TurnAfterModelFirstByte, feed.emit(ctx, chunk))
	})
	if err != nil && ctx.Err() == nil {
		n.stats.modelFailures.Add(1)
		n.log.Warn("model call failed", zap.Stringer("turn", c.spec.TurnID), zap.Int("step", c.step), zap.Error(err))
	}
	return err
}

// requestApart builds the request in a goroutine of its own, whose stack the store makes deep: that of the call waits
// for the model most of its life, and is to be small then.
func (n *Node) requestApart(ctx context.Context, c callContext, route Route) (request *ModelRequest, trimmed bool, err error) {
	request = new(ModelRequest)
	built := make(chan struct{})
	go func() {
		defer close(built)
		*request, trimmed, err = n.request(ctx, c, route)
	}()
	<-built
	return request, trimmed, err
}

// request builds the request of one model call. While the store is away it waits: the turn holds, as its log does.
func (n *Node) request(ctx context.Context, c callContext, route Route) (request ModelRequest, trimmed bool, err error) {
	for wait := storePause; ; wait = min(2*wait, maxStorePause) {
		err = n.atStore(ctx, func() (failed error) {
			request, trimmed, failed = buildRequest(ctx, n.store, c, route, n.toolList)
			return failed
		})
		if protocol.CodeOf(err) != protocol.CodeUnavailable || err == nil {
			return request, trimmed, err
		}
		n.log.Warn("conversation not read yet", zap.Stringer("turn", c.spec.TurnID), zap.Error(err))
		if stopped := sleep(ctx, wait); stopped != nil {
			return request, false, stopped
		}
	}
}

// atStore runs do when there is a place among the turns that read or end.
func (n *Node) atStore(ctx context.Context, do func() error) error {
	select {
	case n.places <- struct{}{}:
		defer func() { <-n.places }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func requestBytes(r *ModelRequest) int { return len(r.System) + messageBytes(r.Messages) }

func messageBytes(messages []ModelMessage) (size int) {
	for i := range messages {
		size += len(messages[i].Text)
	}
	return size
}

// A tool that says itself what failed has a ToolFailure. These say that nobody knows: of a call that has effects the
// outcome is unknown.
const (
	toolTimedOut = "timeout"
	toolBroke    = "tool_error"
)

// runBounded runs a tool within its time and cuts what it says to its bound. A panic of a tool is a failure of the tool.
func runBounded(ctx context.Context, tool Tool, input json.RawMessage) (output string, failure *protocol.ToolError) {
	timeout := tool.Spec().Timeout
	if timeout == 0 {
		timeout = defaultToolTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			output, failure = "", &protocol.ToolError{Code: toolBroke, Detail: "The tool failed."}
		}
	}()
	output, err := callTool(bounded, tool, input)
	if err == nil {
		return cleanOutput(output), nil
	}
	var shown *ToolFailure
	switch {
	case errors.As(err, &shown):
		return "", &protocol.ToolError{Code: shown.Code, Detail: shown.Detail}
	case ctx.Err() != nil:
		return "", &protocol.ToolError{Code: "cancelled", Detail: "The turn ended first."}
	case bounded.Err() != nil:
		return "", &protocol.ToolError{Code: toolTimedOut, Detail: fmt.Sprintf("The tool took longer than %s.", timeout)}
	}
	return "", &protocol.ToolError{Code: toolBroke, Detail: "The tool failed."}
}

func callTool(ctx context.Context, tool Tool, input json.RawMessage) (output string, err error) {
	if err := failpoint.Before(failpoint.ToolAfterIntent); err != nil {
		return "", err
	}
	output, err = tool.Run(ctx, input)
	if err = failpoint.After(failpoint.ToolAfterIntent, err); err != nil {
		return "", err
	}
	return output, failpoint.Before(failpoint.ToolAfterEffect)
}

// cleanOutput bounds a tool's output and drops characters that only hide things from a reader: zero-width, bidi
// overrides and tag characters.
func cleanOutput(output string) string {
	if len(output) > maxToolOutput {
		output = output[:maxToolOutput] + "\n[cut]"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff, r >= 0xe0000 && r <= 0xe007f:
			return -1
		}
		return r
	}, storable(output))
}

// finish stores the end of a turn, again and again until it is stored or the turn is somebody else's. It runs in a
// goroutine of its own, because the end is a transaction.
func (n *Node) finish(a *turnActor, batch *protocol.TurnAppend, end *ending, done func(error)) {
	spec := a.machine.spec
	f := &protocol.TurnFinish{
		TurnAppend: *batch, Spec: spec, StopReason: end.reason, Usage: end.usage, Error: end.err,
		ModelID: spec.Routing.ModelID, Parts: a.machine.fold.Parts(), Status: messageStatus(end.state), Parked: end.parked,
		PauseQueue: end.state != protocol.TurnCompleted, DropQueue: end.drop, Mended: end.mended,
		At: time.Now(), MaxLiveTurns: n.maxLiveTurns, Begin: n.Begin,
	}
	if end.bare {
		f.Parts = nil
	}
	n.goes(func() {
		pause, refusals := storePause, 0
		for {
			var next *protocol.StartedTurn
			err := n.atStore(n.ctx, func() (failed error) {
				next, failed = n.store.FinishTurn(n.ctx, f)
				return failed
			})
			if err == nil {
				n.finishedTurn(end, next)
				done(nil)
				return
			}
			if protocol.CodeOf(err) != protocol.CodeUnavailable {
				refusals++ // not an outage: the actor gives up, and the turn is claimed again
			}
			if errors.Is(err, protocol.ErrFenced) || n.ctx.Err() != nil || refusals == finishAttempts {
				done(err)
				return
			}
			n.log.Warn("end of a turn not stored yet", zap.Stringer("turn", spec.TurnID), zap.Error(err))
			_ = sleep(n.ctx, pause)
			pause = min(2*pause, maxStorePause)
		}
	})
}

// sleep waits, or returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
