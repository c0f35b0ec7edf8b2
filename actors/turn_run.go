package actors

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/observe"
	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/actors/tools"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

const (
	waitNoticeInterval = 10 * time.Second // at which readers are notified that the model has not answered yet
	cancelGrace        = 4 * time.Second  // then calls and tools that still run are abandoned: with its commits, cancelling lasts at most 5 s
)

// turnRun is the behavior of a turn's actor: it passes messages to the machine as triggers, encodes and publishes what
// the machine decides, and performs its effects.
//
// Output of the model comes through a feed, which merges it while the actor lags. On a busy node, more text of an open
// part waits in the feed for the pacer; everything else is decided at once, together with the text that waits.
type turnRun struct {
	// Set by the node.
	node    *Node
	shell   *shell.Shell
	machine *turn.Machine
	epoch   int32
	stream  *tail.Stream
	log     *zap.Logger

	// Owned by the shell's Receive.
	batch    *turn.Batch        // nil: nothing was decided since the last step
	requests []string           // request IDs of the commands in the batch
	deferred bool               // the text of the batch has waited for its slot, together with other turns
	decided  time.Time          // time of the last batch
	logged   protocol.TurnState // state after the last step with events
	feed     *modelFeed
	stopCall context.CancelFunc
	toolCtx  context.Context
	stopTool context.CancelFunc
	observed observe.Turn
}

// Messages to a turn's actor, in addition to those of every actor and to paced.
type (
	proceedTurn struct{ from trace.SpanContext } // from is the span of the sender
	adoptTurn   struct {
		cause protocol.RecoveryCause
		from  trace.SpanContext
	}
	feedReady struct{}
	// giveUpTurn and forceCancelTurn end a turn that was taken over only for that.
	giveUpTurn      struct{ withoutParts bool }
	forceCancelTurn struct{}
	toolDone        struct {
		id      protocol.ToolID
		result  tools.Result
		failure *protocol.ToolError
		took    time.Duration
	}
	waitNotice     struct{ call int }
	deadlinePassed struct{}
	gracePassed    struct{}
	commandMessage struct {
		command *turn.Command
		from    trace.SpanContext
		reply   func(commandReply) // is called once, and does not block
	}
)

type commandReply struct {
	receipt protocol.SteeringReceipt
	err     error
}

// errGone means that this actor can no longer decide for the turn: the caller must look the command up in the log, or
// send it to the turn's next actor.
var errGone = errors.New("the turn's actor is gone")

// Arrive implements shell.Behavior. Text that waits in the feed is decided before any other message.
func (r *turnRun) Arrive(message any, waiting []any) []any {
	slot, is := message.(paced)
	if !is {
		if _, wake := message.(feedReady); wake && r.feed != nil && r.feed.stale() {
			return waiting
		}
		return append(r.takeFeed(waiting), message)
	}
	if r.deferred = r.feed != nil && r.feed.served(slot.request); r.deferred {
		waiting = append(waiting, feedReady{})
	}
	return waiting
}

// takeFeed ends a wait in the feed. It appends feedReady if the feed has output for which the actor was not woken.
func (r *turnRun) takeFeed(waiting []any) []any {
	r.deferred = false
	if !r.shell.Storing() && r.feed != nil && r.feed.release() {
		waiting = append(waiting, feedReady{})
	}
	return waiting
}

// Settled implements shell.Behavior.
func (r *turnRun) Settled(waiting []any) []any { return r.takeFeed(waiting) }

// Postpone implements shell.Behavior: it lets text that nothing else accompanies wait for other turns of the node.
func (r *turnRun) Postpone(waiting []any) bool {
	if r.deferred || r.feed == nil || len(waiting) != 1 {
		return false
	}
	if _, only := waiting[0].(feedReady); !only {
		return false
	}
	kind := r.machine.OpenKind()
	return kind != 0 && r.feed.defers(kind, r.decided)
}

// Idle implements shell.Behavior. While a step is being stored, the feed does not wake the actor. Otherwise more text
// of the open part may wait.
func (r *turnRun) Idle(storing bool) {
	switch {
	case r.feed == nil:
	case storing:
		r.feed.hold()
	default:
		if kind := r.machine.OpenKind(); kind != 0 {
			r.feed.mayWait(kind, r.decided)
		}
	}
}

// Decide implements shell.Behavior.
func (r *turnRun) Decide(message any, status shell.Status) func(error) {
	if command, ok := message.(commandMessage); ok {
		return r.decideCommand(command, status)
	}
	if status != shell.Active {
		return nil
	}
	b := r.newBatch()
	switch message := message.(type) {
	case proceedTurn:
		r.observed.Begin(&r.node.observer, message.from, r.machine.Spec(), r.epoch, r.machine.Spec().CreatedAt)
		b.Proceed()
	case adoptTurn:
		r.observed.Begin(&r.node.observer, message.from, r.machine.Spec(), r.epoch, time.Time{})
		b.Adopt(message.cause)
	case giveUpTurn:
		b.GiveUp(message.withoutParts)
	case forceCancelTurn:
		b.ForceCancel(protocol.NewSteeringID())
	case feedReady:
		r.decideFeed(b)
	case toolDone:
		b.ToolEnded(message.id, message.result.Output, message.result.Sources, message.failure, message.took)
	case waitNotice:
		if b.StillWaiting(message.call) {
			r.shell.After(waitNoticeInterval, message)
		}
	case deadlinePassed:
		b.Deadline()
	case gracePassed:
		b.GraceOver()
	}
	return nil
}

func (r *turnRun) newBatch() *turn.Batch {
	if r.batch == nil {
		r.batch = r.machine.NewBatch()
	}
	return r.batch
}

// Undecided implements shell.Behavior.
func (r *turnRun) Undecided() bool { return r.batch == nil || len(r.batch.Events) == 0 }

// decideCommand decides on a command and returns the function that replies to its caller.
func (r *turnRun) decideCommand(message commandMessage, status shell.Status) func(error) {
	if status == shell.Lost {
		return func(error) { message.reply(commandReply{err: errGone}) }
	}
	r.requests = append(r.requests, message.command.RequestID)
	span := r.node.observer.StartCommand(message.from, message.command.Kind.String(), message.command.RequestID)
	receipt, refusal := r.newBatch().Command(message.command)
	return func(err error) {
		observe.End(span, errors.Join(err, refusal))
		switch {
		case err != nil: // not stored by this actor; the caller checks whether it was stored at all
			message.reply(commandReply{err: errGone})
		case refusal != nil:
			message.reply(commandReply{err: refusal})
		default:
			message.reply(commandReply{receipt: receipt})
		}
	}
}

// Refuse implements shell.Behavior.
func (r *turnRun) Refuse(message any) {
	if command, ok := message.(commandMessage); ok {
		command.reply(commandReply{err: errGone})
	}
}

// decideFeed passes the output of the model call to the machine.
func (r *turnRun) decideFeed(b *turn.Batch) {
	if r.feed == nil {
		return
	}
	call := r.feed.call
	for _, item := range r.feed.take() {
		if item.trim {
			b.ContextTrimmed(call)
		}
		switch {
		case item.route > 0:
			b.RouteChanged(call, r.node.routing(b.Spec(), item.route))
		case item.hint > 0:
			b.RequestBuilt(item.hint, item.files)
		case item.over:
			b.ModelFailed(call, callError(item.err))
		case item.kind == llm.ChunkText:
			b.ModelText(call, item.fullText())
		case item.kind == llm.ChunkReasoning:
			b.ModelReasoning(call, item.fullText())
		case item.kind == llm.ChunkStop:
			b.ModelStopped(call, item.chunk.Stop)
		default:
			b.ModelChunk(call, item.chunk)
		}
	}
}

// callError returns the error of a call that is over. After llm.ChunkStop the machine ignores it.
func callError(err error) *llm.Error {
	var failure *llm.Error
	switch {
	case errors.As(err, &failure):
		return failure
	case err != nil:
		return &llm.Error{Code: protocol.ModelUnavailable, Retryable: true, Err: err}
	}
	return &llm.Error{Code: protocol.ModelProtocol, Retryable: true}
}

// Step implements shell.Behavior.
func (r *turnRun) Step(replies []func(error)) shell.Step {
	s := shell.Step{Replies: replies}
	b, requests := r.batch, r.requests
	r.batch, r.requests = nil, nil
	if b == nil {
		return s
	}
	if len(b.Effects) > 0 {
		s.Perform = func() { r.perform(b.Effects) }
	}
	if len(b.Events) == 0 {
		return s
	}
	batch, err := r.encode(b)
	if err != nil {
		panic(err)
	}
	before := r.logged
	r.logged = batch.State
	firstText := r.observed.FirstText(b.Events)
	s.Point, s.Last = failpoint.DeltaAfterCommitBeforeSend, b.End != nil
	s.Show = func() {
		r.stream.Publish(batch.First, batch.Last, batch.Frames, b.End != nil)
		r.logTransition(batch, before, requests)
		if firstText {
			r.observed.FirstTextShown()
		}
	}
	if b.End == nil {
		s.Store = r.observed.Commit(b.OnlyText(), batch, func(done func(error)) { r.node.store.Append(batch, done) })
		return s
	}
	s.Point = failpoint.EndAfterCommitBeforeSend
	s.Store = r.observed.Commit(false, batch, func(done func(error)) {
		r.stream.Finishing()
		r.node.finish(r.machine, batch, b.End, done)
	})
	return s
}

// encode encodes the decided events. The log, every reader and every replay get these bytes.
func (r *turnRun) encode(b *turn.Batch) (*turnlog.Append, error) {
	spec := b.Spec()
	state, accepts := b.State()
	batch := &turnlog.Append{
		AccountID: spec.AccountID, TurnID: spec.TurnID, Owner: r.node.id, Epoch: r.epoch,
		First: b.Sequence() - int64(len(b.Events)) + 1, Last: b.Sequence(),
		State: state, Accepts: accepts, Records: b.Records, Deferrable: r.deferred && b.OnlyText(),
	}
	r.decided = time.Now()
	frames, err := protocol.AppendEvents(nil, spec.TurnID, batch.First, r.decided, b.Events)
	batch.Frames = frames
	b.CountLogged(len(frames))
	return batch, err
}

// logTransition logs a state transition, or a step that decided commands, at level info. Any other step, mostly a
// delta, is logged at level debug.
func (r *turnRun) logTransition(b *turnlog.Append, before protocol.TurnState, requests []string) {
	level := zap.InfoLevel
	if b.State == before && len(requests) == 0 {
		level = zap.DebugLevel
	}
	if entry := r.log.Check(level, "turn appended"); entry != nil {
		entry.Write(zap.Int64("sequence", b.Last), zap.String("state", string(b.State)), zap.Int("bytes", len(b.Frames)),
			zap.Strings("request_ids", requests))
	}
}

// perform starts effects; their results come back as messages.
func (r *turnRun) perform(effects []turn.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case turn.CallModel:
			r.startCall()
		case turn.StopModel:
			if r.stopCall != nil {
				r.stopCall()
			}
		case turn.RunTool:
			r.startTool(e)
		case turn.StopTools:
			r.stopTool()
		case turn.StartGrace:
			r.shell.After(cancelGrace, gracePassed{})
		}
	}
}

// startCall calls the model in a separate goroutine, which writes to a new feed.
func (r *turnRun) startCall() {
	if r.stopCall != nil {
		r.stopCall()
	}
	ctx, cancel := context.WithCancel(r.observed.Context(r.node.ctx))
	r.stopCall = cancel
	feed := newModelFeed(r.node, r.shell.Self(), r.machine.Call())
	r.feed = feed
	r.shell.After(waitNoticeInterval, waitNotice{feed.call})
	prompt := r.machine.Prompt()
	r.node.startGoroutine(func() {
		defer cancel()
		err := r.node.runModelCall(ctx, prompt, feed)
		_ = feed.put(ctx, feedItem{over: true, err: err}) // fails when the call was stopped
	})
}

// startTool runs a tool call in a separate goroutine, which sends toolDone.
func (r *turnRun) startTool(call turn.RunTool) {
	tool, ctx, post := r.node.tools[call.Name], r.observed.Context(r.toolCtx), r.shell.Post()
	spec, began := r.machine.Spec(), time.Now()
	scope := turnlog.Scope{AccountID: spec.AccountID, ConversationID: spec.ConversationID, ProjectID: spec.ProjectID}
	r.node.startGoroutine(func() {
		ctx, span := r.node.observer.StartToolCall(ctx, call.Name)
		result, failure := tools.Run(ctx, tool, &tools.Call{Scope: scope, Input: call.Input, FirstSource: call.FirstSource})
		observe.EndToolCall(span, failure)
		done := toolDone{id: call.ID, result: result, failure: failure, took: time.Since(began)}
		post(done)
		if err := failpoint.After(failpoint.ToolAfterEffect, nil); err != nil {
			done.result, done.failure = tools.Result{}, &protocol.ToolError{Code: protocol.ToolCallFailed, Detail: err.Error()}
			post(done)
		}
	})
}

// End implements shell.Behavior: it stops the model call and the tools of the turn.
func (r *turnRun) End(status shell.Status) {
	if status == shell.Lost {
		r.stream.Abandon()
	}
	if r.stopCall != nil {
		r.stopCall()
	}
	r.stopTool()
	r.feed = nil
	r.observed.End(r.machine.Sequence(), r.logged, status == shell.Lost)
	r.node.registry.ended(r.machine.Spec().TurnID, r.epoch, status)
}

// Stop implements shell.Behavior.
func (r *turnRun) Stop() { r.node.registry.remove(r.machine.Spec().TurnID, r.epoch) }

var (
	_ shell.Behavior = (*turnRun)(nil)
	_ actor.Actor    = (*shell.Shell)(nil)
)
