package turn

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/observe"
	"turnstone/actors/policy"
	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

const (
	waitNoticeInterval = 10 * time.Second // at which readers are notified that the model has not answered yet
	// parkDelay is how long a turn that waits for an approval keeps its actor, so that a command that has woken it, or an
	// approval that the user decides at once, finds it.
	parkDelay   = 2 * time.Second
	cancelGrace = 4 * time.Second // then calls and tools that still run are abandoned: with its commits, cancelling lasts at most 5 s
	// maxToolsAtOnce limits how many tools of a turn run at the same time. A step can have 50 calls, and each tool needs memory.
	maxToolsAtOnce = 8
)

// turnActor is the behavior of a turn's actor: it passes messages to the machine as triggers, encodes and publishes what
// the machine decides, and performs its effects.
//
// Output of the model comes through a modelOutput, which merges it while the actor lags. On a busy node, more text of an open
// part waits there for the pacer; everything else is decided at once, together with the text that waits.
type turnActor struct {
	// Set by the node.
	host    *Host
	shell   *shell.Shell
	machine *machine.Machine
	epoch   int32
	stream  *tail.Stream
	log     *zap.Logger

	// Owned by the shell's Receive.
	batch    *machine.Batch     // nil: nothing was decided since the last step
	requests []string           // request IDs of the commands in the batch
	deferred bool               // the text of the batch has waited for its slot, together with other turns
	decided  time.Time          // time of the last batch
	logged   protocol.TurnState // state after the last step with events
	output   *modelOutput
	stopCall context.CancelFunc
	toolCtx  context.Context
	stopTool context.CancelFunc
	toolSlot chan struct{} // a call puts a value in while its tool runs
	observed observe.Turn
	parking  bool // parkDue comes
}

// Messages to a turn's actor, in addition to those of every actor and to paced.
type (
	proceed struct{ from trace.SpanContext } // from is the span of the sender
	adopt   struct {
		cause protocol.RecoveryCause
		from  trace.SpanContext
	}
	outputReady struct{}
	// giveUp and forceCancel end a turn that was taken over only for that.
	giveUp      struct{ withoutParts bool }
	forceCancel struct{}
	toolChecked struct {
		id      protocol.ToolID
		failure *protocol.ToolError // nil: nothing speaks against the call
	}
	toolDone struct {
		id      protocol.ToolID
		result  toolbox.Ran
		failure *protocol.ToolError
		took    time.Duration
		// unstarted means that the turn ended before the tool ran.
		unstarted bool
	}
	toolProgress struct {
		id       protocol.ToolID
		label    string
		progress *protocol.Progress
	}
	wake           struct{ from trace.SpanContext } // the turn waited for an approval without an actor
	parkDue        struct{}
	waitNotice     struct{ call int }
	deadlinePassed struct{}
	gracePassed    struct{}
)

// errNotHere means that the turn is not, or no longer, decided here, by this actor or on the node that was asked. The command may
// have taken effect: the caller must look it up in the log, or send it to the turn's next actor.
var errNotHere = errors.New("the turn is not decided here")

// Decide implements shell.Behavior. Output of the model that waits is decided before any other message.
func (r *turnActor) Decide(message any, status shell.Status) func(error) {
	if status == shell.Active && !r.decideWaiting(message) {
		return nil
	}
	if command, ok := message.(commandMessage); ok {
		return r.decideCommand(command, status)
	}
	if status != shell.Active {
		return nil
	}
	b := r.newBatch()
	switch message := message.(type) {
	case proceed:
		r.observed.Begin(&r.host.observer, message.from, r.machine.Spec(), r.epoch, r.machine.Spec().CreatedAt)
		b.Proceed()
	case adopt:
		r.observed.Begin(&r.host.observer, message.from, r.machine.Spec(), r.epoch, time.Time{})
		b.Adopt(message.cause)
	case giveUp:
		b.GiveUp(message.withoutParts)
	case forceCancel:
		b.ForceCancel(protocol.NewSteeringID())
	case toolDone:
		b.ToolEnded(message.id, machine.ToolResult{
			Output: message.result.Output, Whole: message.result.Whole, Bytes: message.result.Bytes, Empty: message.result.Empty,
			Sources: message.result.Sources, Events: message.result.Events, Unstarted: message.unstarted,
		}, message.failure, message.took)
	case toolChecked:
		b.ToolChecked(message.id, message.failure)
	case toolProgress:
		b.ToolProgressed(message.id, message.label, message.progress)
	case wake:
		r.observed.Begin(&r.host.observer, message.from, r.machine.Spec(), r.epoch, time.Time{})
		b.Wake()
	case parkDue:
		r.parking = false
		if until, parks := r.machine.Parks(); parks {
			r.park(until)
		}
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

// decideWaiting decides on the output of the model that waits. It returns false for a message that says only that there is
// some, but which waits or was taken before.
func (r *turnActor) decideWaiting(message any) bool {
	deferred := false
	switch message := message.(type) {
	case outputReady:
		if r.output == nil || !r.output.awaited() {
			return false
		}
	case paced:
		if r.output == nil || !r.output.served(message.request) {
			return false
		}
		deferred = r.batch == nil
	}
	r.deferred = deferred
	if r.output != nil {
		r.decideOutput(r.output.call, r.output.take(), r.newBatch())
	}
	return true
}

func (r *turnActor) newBatch() *machine.Batch {
	if r.batch == nil {
		r.batch = r.machine.NewBatch()
		r.batch.Now = time.Now()
	}
	return r.batch
}

// decideCommand decides on a command and returns the function that replies to its caller.
func (r *turnActor) decideCommand(message commandMessage, status shell.Status) func(error) {
	if status == shell.Lost {
		return func(error) { message.reply(commandReply{err: errNotHere}) }
	}
	r.requests = append(r.requests, message.command.RequestID)
	span := r.host.observer.StartCommand(message.from, message.command.Kind.String(), message.command.RequestID)
	receipt, refusal := r.newBatch().Command(message.command)
	return func(err error) {
		observe.End(span, errors.Join(err, refusal))
		switch {
		case err != nil: // not stored by this actor; the caller checks whether it was stored at all
			message.reply(commandReply{err: errNotHere})
		case refusal != nil:
			message.reply(commandReply{err: refusal})
		default:
			message.reply(commandReply{receipt: receipt})
		}
	}
}

// Refuse implements shell.Behavior.
func (r *turnActor) Refuse(message any) {
	if command, ok := message.(commandMessage); ok {
		command.reply(commandReply{err: errNotHere})
	}
}

// decideOutput passes the output of a model call to the machine.
func (r *turnActor) decideOutput(call int, output []outputItem, b *machine.Batch) {
	for _, item := range output {
		if item.trim {
			b.ContextTrimmed(call)
		}
		switch {
		case item.route > 0:
			b.RouteChanged(call, r.host.calls.routing(b.Spec(), item.route))
		case item.hint > 0:
			b.RequestBuilt(item.hint, item.files, item.reading)
		case item.grants != nil:
			b.GrantsRead(*item.grants)
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
func (r *turnActor) Step(replies []func(error)) shell.Step {
	s := shell.Step{Replies: replies}
	b, requests := r.batch, r.requests
	r.batch, r.requests = nil, nil
	if b == nil {
		return s
	}
	_, parks := r.machine.Parks()
	if len(b.Effects) > 0 || parks {
		s.Perform = func() {
			r.perform(b.Effects)
			if parks {
				r.parkLater()
			}
		}
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
	if r.output != nil {
		r.output.hold(r.machine.OpenKind(), r.decided)
	}
	s.Point, s.Last = failpoint.DeltaAfterCommitBeforeSend, b.End != nil
	s.Show = func() {
		r.stream.Publish(batch.First, batch.Last, batch.Frames, b.End != nil)
		r.logTransition(batch, before, requests)
		if firstText {
			r.observed.FirstTextShown()
		}
		if r.output != nil {
			r.output.release()
		}
	}
	if b.End == nil {
		s.Store = r.observed.Commit(b.OnlyText(), batch, func(done func(error)) { r.host.store.Append(batch, done) })
		return s
	}
	r.endWith(&s, b, batch)
	return s
}

// endWith makes a step the last one of its turn. The next turn of the queue, which the store starts together with the end,
// gets its actor as an effect of the step: after readers see the end, and before the host counts this actor as ended,
// so that a drain sees one of the two at any time. If the actor is lost meanwhile, the next turn is adopted.
func (r *turnActor) endWith(s *shell.Step, b *machine.Batch, batch *turnlog.Append) {
	var next *turnlog.Started // set before done
	s.Point = failpoint.EndAfterCommitBeforeSend
	s.Store = r.observed.Commit(false, batch, func(done func(error)) {
		r.stream.Finishing()
		r.host.finish(r.machine, batch, b.End, func(started *turnlog.Started, err error) {
			next = started
			done(err)
		})
	})
	s.Perform = func() {
		r.perform(b.Effects)
		if next != nil {
			r.host.begin(r.host.Context(), *next)
		}
	}
}

// encode encodes the decided events. The log, every reader and every replay get these bytes.
func (r *turnActor) encode(b *machine.Batch) (*turnlog.Append, error) {
	spec := b.Spec()
	state, accepts := b.State()
	batch := &turnlog.Append{
		AccountID: spec.AccountID, TurnID: spec.TurnID, Owner: r.host.node.ID, Epoch: r.epoch,
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
func (r *turnActor) logTransition(b *turnlog.Append, before protocol.TurnState, requests []string) {
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
func (r *turnActor) perform(effects []machine.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case machine.CallModel:
			r.startCall()
		case machine.StopModel:
			if r.stopCall != nil {
				r.stopCall()
			}
		case machine.RunTool:
			r.startTool(e)
		case machine.CheckTool:
			r.checkTool(e)
		case machine.StopTools:
			r.stopTool()
		case machine.StartGrace:
			r.shell.After(cancelGrace, gracePassed{})
		}
	}
}

// startCall calls the model in a separate goroutine, which writes to a new modelOutput.
func (r *turnActor) startCall() {
	if r.stopCall != nil {
		r.stopCall()
	}
	ctx, cancel := context.WithCancel(r.observed.Context(r.host.Context()))
	r.stopCall = cancel
	output := newModelOutput(r.host, r.shell.Self(), r.machine.Call())
	r.output = output
	r.shell.After(waitNoticeInterval, waitNotice{output.call})
	input := r.machine.CallInput()
	r.host.Go(func() {
		defer cancel()
		err := r.host.modelCallSlots.use(ctx, input.Spec.AccountID, func() error { return r.host.calls.run(ctx, input, output) })
		_ = output.put(ctx, outputItem{over: true, err: err}) // an end never waits, so it does not fail
	})
}

// startTool runs a tool call in a separate goroutine, which sends toolDone. The time of the call begins when it has a slot.
func (r *turnActor) startTool(call machine.RunTool) {
	ctx, post := r.observed.Context(r.toolCtx), r.shell.Post()
	var tool toolbox.Tool
	if call.Name == policy.ReadMore {
		tool = toolbox.ReadOn{Consents: r.host.calls.requests.Consents, Source: call.Consent, Output: call.Output}
	} else {
		tool = r.host.tools.Find(call.Name).Tool
	}
	progress := &progressGate{send: func(label string, progress *protocol.Progress) { post(toolProgress{call.ID, label, progress}) }}
	of := r.callOf(call.ID, call.Input)
	of.FirstSource, of.Progress = call.FirstSource, progress.report
	r.host.Go(func() {
		select {
		case r.toolSlot <- struct{}{}:
			defer func() { <-r.toolSlot }()
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			post(toolDone{id: call.ID, unstarted: true, failure: &protocol.ToolError{Code: protocol.ToolCallCancelled, Detail: "The answer ended first."}})
			return
		}
		began := time.Now()
		ctx, span := r.host.observer.StartToolCall(ctx, call.Name)
		result, failure := toolbox.Run(ctx, tool, of)
		progress.close()
		observe.EndToolCall(span, failure)
		done := toolDone{id: call.ID, result: result, failure: failure, took: time.Since(began)}
		post(done)
		if err := failpoint.After(failpoint.ToolAfterEffect, nil); err != nil {
			done.result, done.failure = toolbox.Ran{}, &protocol.ToolError{Code: protocol.ToolCallFailed, Detail: err.Error()}
			post(done)
		}
	})
}

// callOf returns a call of the turn for its tool.
func (r *turnActor) callOf(id protocol.ToolID, input json.RawMessage) *toolbox.Call {
	spec := r.machine.Spec()
	return &toolbox.Call{
		Scope:  turnlog.Scope{AccountID: spec.AccountID, ConversationID: spec.ConversationID, ProjectID: spec.ProjectID},
		TurnID: spec.TurnID, ToolID: id, Input: input,
	}
}

// checkTool checks a call in a separate goroutine, which sends toolChecked.
func (r *turnActor) checkTool(call machine.CheckTool) {
	ctx, post := r.observed.Context(r.toolCtx), r.shell.Post()
	spec, of := &r.host.tools.Find(call.Name).Spec, r.callOf(call.ID, call.Input)
	r.host.Go(func() { post(toolChecked{call.ID, toolbox.Check(ctx, spec, of)}) })
}

// parkLater gives up the ownership of the turn after parkDelay, if it then still waits for an approval.
func (r *turnActor) parkLater() {
	if !r.parking {
		r.parking = true
		r.shell.After(parkDelay, parkDue{})
	}
}

// park gives up the ownership of a turn that does nothing until an approval is decided or expires. The actor ends when that is
// stored; a command that was decided in between keeps it.
func (r *turnActor) park(until time.Time) {
	spec, sequence, post := r.machine.Spec(), r.machine.Sequence(), r.shell.Post()
	r.host.Go(func() {
		err := r.host.ownership.Park(r.host.Context(), r.host.node.ID, spec.AccountID, spec.TurnID, r.epoch, sequence, until)
		switch {
		case err == nil:
			post(shell.Release{})
		case !errors.Is(err, ownership.ErrFenced): // the actor waits instead, and parks after its next step
			r.log.Warn("a turn that waits for an approval keeps its actor", zap.Error(err))
		}
	})
}

// End implements shell.Behavior: it stops the model call and the tools of the turn.
func (r *turnActor) End(status shell.Status) {
	if status == shell.Lost {
		r.stream.Abandon()
	}
	if r.stopCall != nil {
		r.stopCall()
	}
	r.stopTool()
	r.output = nil
	r.observed.End(r.machine.Sequence(), r.logged, status == shell.Lost)
}

var (
	_ shell.Behavior = (*turnActor)(nil)
	_ actor.Actor    = (*shell.Shell)(nil)
)
