package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

const (
	silenceShown = 10 * time.Second // of a model, then the reader is told that it is still waited for
	cancelGrace  = 4 * time.Second  // what is still out after this is closed without its answer: cancelling lasts 5 s, its commits included
	linger       = 2 * time.Second  // an actor that is done answers for this long, so that no command falls into a hole
)

// turnActor is the shell around one turn's machine: it takes messages, lets the machine decide, and performs what was
// decided in the order of commit. While a batch is being stored it decides nothing; what arrives gathers and becomes the
// next batch, so the log's chunks grow with the load and a quiet service shows each token after one commit.
type turnActor struct {
	// Set by the node.
	node    *Node
	machine *turnMachine
	epoch   int32
	stream  *stream
	log     *zap.Logger
	done    chan struct{}

	// Owned by Receive.
	self     *actor.PID
	waiting  []any // messages that the machine has not seen
	seen     []any // room of messages that it has seen, for the next ones
	post     func(any)
	requests []string // that brought the commands of the step being decided
	inFlight bool
	patient  bool      // what this decision is about has waited, with those of other turns
	decided  time.Time // when the last batch was
	fate     fate
	logged   protocol.TurnState // of the last step
	feed     *modelFeed
	stopCall context.CancelFunc
	toolCtx  context.Context
	stopTool context.CancelFunc
	timers   []*time.Timer
}

// fate is what an actor that takes no more decisions answers.
type fate uint8

const (
	alive    fate = iota
	finished      // the turn's end is durable: the machine still answers commands, without events
	lost          // fenced, released or broken: the turn is somebody else's, or will be taken up again
)

// Messages to a turn's actor, beside stored.
type (
	proceedTurn struct{}
	adoptTurn   struct{ cause string }
	feedReady   struct{}
	// giveUpTurn and forceCancelTurn end a turn that was taken over for nothing else.
	giveUpTurn      struct{ bare bool }
	forceCancelTurn struct{}
	toolDone        struct {
		id      protocol.ToolID
		output  string
		failure *protocol.ToolError
		took    time.Duration
	}
	silence        struct{ call int }
	deadlineIn     struct{ left time.Duration }
	deadlinePassed struct{}
	abandonTurn    struct{}
	gracePassed    struct{}
	lingerPassed   struct{}
	releaseTurn    struct{}
	ask            struct {
		command *Command
		reply   chan answer // buffered: the actor never waits
	}
)

type answer struct {
	receipt protocol.SteeringReceipt
	err     error
}

// errGone says that this actor cannot answer for the turn any more: look the command up, or ask its new owner.
var errGone = errors.New("the turn's actor is gone")

// Receive takes one message. It never blocks, and a panic of ours ends this turn's actor, not the node: the turn is
// taken up again, from its log, under a new epoch.
func (a *turnActor) Receive(c actor.Context) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("turn actor broke", zap.String("kind", fmt.Sprintf("%T", p)), zap.ByteString("stack", debug.Stack()))
			a.node.stats.broken.Add(1)
			a.lose()
		}
	}()
	a.patient = false
	switch message := c.Message().(type) {
	case *actor.Started:
		a.self = c.Self()
		a.post = a.poster()
	case *actor.Stopping:
		a.self = nil // nothing is posted to it any more
		a.lose()
	case stored:
		a.inFlight = false
		if message.err == nil {
			message.err = failpoint.Before(a.sendPoint())
		}
		settle(message)
		if message.err = failpoint.After(a.sendPoint(), message.err); message.err != nil {
			a.log.Warn("turn given up", zap.Error(message.err))
			a.lose()
		}
		if a.feed != nil && a.feed.release() {
			a.waiting = append(a.waiting, feedReady{})
		}
	case lingerPassed:
		a.node.forget(a)
		c.Stop(c.Self())
		return
	case deadlineIn:
		a.after(message.left, deadlinePassed{})
	case abandonTurn:
		a.lose()
	case paced:
		if a.feed != nil && a.feed.served(message.place) {
			a.waiting = append(a.waiting, feedReady{})
			a.patient = true
		}
	case *actor.Stopped:
		close(a.done)
		return
	default:
		a.wake() // what happens to a turn takes along the text that waits
		a.waiting = append(a.waiting, message)
	}
	if !a.patient && a.rests() {
		return
	}
	for !a.inFlight && len(a.waiting) > 0 {
		a.advance()
	}
	a.awaitFeed()
}

// awaitFeed says what the feed does with text that comes before the next message.
func (a *turnActor) awaitFeed() {
	switch {
	case a.feed == nil:
	case a.inFlight:
		a.feed.hold()
	case a.machine.showing():
		a.feed.mayWait(a.machine.openKind(), a.decided)
	}
}

// rests says whether all there is to decide about is text that may wait until the node's other turns decide too.
func (a *turnActor) rests() bool {
	if a.inFlight || a.feed == nil || len(a.waiting) != 1 || a.fate != alive {
		return false
	}
	if _, only := a.waiting[0].(feedReady); !only || !a.machine.showing() || !a.feed.rests(a.machine.openKind(), a.decided) {
		return false
	}
	a.waiting = a.waiting[:0]
	return true
}

// wake ends a rest, and lets the machine see the text first.
func (a *turnActor) wake() {
	if !a.inFlight && a.feed != nil && a.feed.release() {
		a.waiting = append(a.waiting, feedReady{})
	}
}

// sendPoint tells the end of a turn from what comes before it.
func (a *turnActor) sendPoint() failpoint.Point {
	if a.machine.ended {
		return failpoint.EndAfterCommitBeforeSend
	}
	return failpoint.DeltaAfterCommitBeforeSend
}

// poster sends to the actor from any goroutine. The store may answer after the actor has stopped; what it says is a dead
// letter then.
func (a *turnActor) poster() func(message any) {
	root, self := a.node.system.Root, a.self
	return func(message any) { root.Send(self, message) }
}

func (a *turnActor) after(d time.Duration, message any) {
	self := a.self
	a.timers = append(a.timers, time.AfterFunc(d, func() { a.node.system.Root.Send(self, message) }))
}

// advance lets the machine decide on all that waits, and commits it as one step.
func (a *turnActor) advance() {
	waiting := a.waiting
	a.waiting, a.seen, a.requests = a.seen[:0], nil, nil
	var answers []func(error)
	for i, message := range waiting {
		if _, release := message.(releaseTurn); release && a.fate == alive {
			if len(a.machine.d.events) == 0 { // at a persisted boundary
				a.settleAnswers(answers, nil)
				a.waiting = waiting[i+1:]
				a.lose()
				return
			}
			a.waiting = append(a.waiting, waiting[i:]...) // after the commit of what was decided so far
			break
		}
		if reply := a.decide(message); reply != nil {
			answers = append(answers, reply)
		}
	}
	clear(waiting)
	a.seen = waiting[:0]
	d := a.machine.take()
	if a.fate != alive {
		a.settleAnswers(answers, nil)
		return
	}
	a.inFlight = commit(a.step(d, answers), a.post)
}

func (a *turnActor) settleAnswers(answers []func(error), err error) {
	for _, reply := range answers {
		reply(err)
	}
}

// decide shows the machine one message. It returns how to answer the caller, if there is one.
func (a *turnActor) decide(message any) func(error) {
	m := a.machine
	if question, ok := message.(ask); ok {
		return a.question(question)
	}
	if a.fate != alive {
		return nil
	}
	switch message := message.(type) {
	case proceedTurn:
		m.proceed()
	case adoptTurn:
		m.adopt(message.cause)
	case giveUpTurn:
		m.giveUp()
		m.d.ending.bare = message.bare
	case forceCancelTurn:
		m.forceCancel(protocol.NewSteeringID())
	case feedReady:
		a.decideFeed()
	case toolDone:
		m.toolEnded(message.id, message.output, message.failure, message.took)
	case silence:
		if m.stillWaiting(message.call) {
			a.after(silenceShown, message)
		}
	case deadlinePassed:
		m.deadline()
	case gracePassed:
		m.graceOver()
	}
	return nil
}

func (a *turnActor) question(question ask) func(error) {
	if a.fate == lost {
		return func(error) { question.reply <- answer{err: errGone} }
	}
	a.requests = append(a.requests, question.command.RequestID)
	receipt, refusal := a.machine.command(question.command)
	return func(err error) {
		switch {
		case err != nil: // not stored by us; whoever asks looks whether it was stored at all
			question.reply <- answer{err: errGone}
		case refusal != nil:
			question.reply <- answer{err: refusal}
		default:
			question.reply <- answer{receipt: receipt}
		}
	}
}

func (a *turnActor) decideFeed() {
	feed, m := a.feed, a.machine
	if feed == nil {
		return
	}
	for _, item := range feed.take() {
		if item.trim {
			m.contextTrimmed(feed.call)
		}
		switch {
		case item.hint > 0:
			m.asked(item.hint)
		case item.over:
			var failure *ModelError
			if errors.As(item.err, &failure) {
				m.modelFailed(feed.call, failure)
			} else if item.err != nil {
				m.modelFailed(feed.call, &ModelError{Code: "model_unavailable", Retryable: true, Err: item.err})
			} else { // after ChunkStop this is late and changes nothing
				m.modelFailed(feed.call, &ModelError{Code: "model_protocol", Retryable: true})
			}
		case item.kind == ChunkText:
			m.modelText(feed.call, item.words())
		case item.kind == ChunkReasoning:
			m.modelReasoning(feed.call, item.words())
		case item.kind == ChunkStop:
			m.modelStopped(feed.call, item.chunk.Stop)
		default:
			m.modelNotes(feed.call, item.chunk)
		}
	}
}

// step turns a decision into what commit runs.
func (a *turnActor) step(d *decision, answers []func(error)) step {
	s := step{answer: func(error) {}}
	if len(answers) > 0 {
		s.answer = func(err error) { a.settleAnswers(answers, err) }
	}
	if len(d.effects) > 0 {
		s.perform = func() { a.perform(d.effects) }
	}
	if len(d.events) == 0 {
		return s
	}
	batch, err := a.batch(d)
	if err != nil {
		panic(err)
	}
	before, requests := a.logged, a.requests
	a.logged = batch.State
	s.show = func() {
		a.stream.publish(batch.First, batch.Last, batch.Frames, d.ending != nil)
		a.logTransition(batch, before, requests)
	}
	if d.ending == nil {
		s.store = func(done func(error)) { a.node.store.Append(batch, done) }
		return s
	}
	s.store = func(done func(error)) {
		a.stream.finishing()
		a.node.finish(a, batch, d.ending, done)
	}
	s.perform = func() {
		a.perform(d.effects)
		if a.fate == alive {
			a.end(finished)
		}
	}
	return s
}

// batch encodes the decided events: the bytes that the log, every reader and every replay will have.
func (a *turnActor) batch(d *decision) (*protocol.TurnAppend, error) {
	m := a.machine
	b := &protocol.TurnAppend{
		AccountID: m.spec.AccountID, TurnID: m.spec.TurnID, Owner: a.node.id, Epoch: a.epoch,
		First: m.sequence - int64(len(d.events)) + 1, Last: m.sequence,
		State: m.state, Accepts: m.accepts, Records: d.records, Patient: a.patient && onlyText(d),
	}
	a.decided = time.Now()
	frames, err := encodeEvents(m.spec.TurnID, b.First, a.decided, d.events)
	b.Frames = frames
	m.logged += len(frames)
	return b, err
}

func encodeEvents(turn protocol.TurnID, first int64, at time.Time, events []protocol.Payload) ([]byte, error) {
	frames := make([]byte, 0, 256*len(events))
	var err error
	for i, payload := range events {
		if frames, err = protocol.AppendEvent(frames, turn, first+int64(i), at, payload); err != nil {
			return nil, err
		}
		frames = append(frames, '\n')
	}
	return frames, nil
}

// logTransition writes one line for a move, or for what requests brought about; a mere delta is worth one only when
// somebody debugs.
func (a *turnActor) logTransition(b *protocol.TurnAppend, before protocol.TurnState, requests []string) {
	level := zap.InfoLevel
	if b.State == before && len(requests) == 0 {
		level = zap.DebugLevel
	}
	if entry := a.log.Check(level, "turn appended"); entry != nil {
		entry.Write(zap.Int64("sequence", b.Last), zap.String("state", string(b.State)), zap.Int("bytes", len(b.Frames)),
			zap.Strings("request_ids", requests))
	}
}

// perform starts effects; their results come back as messages.
func (a *turnActor) perform(effects []effect) {
	if a.fate != alive { // stored after all, but the turn is not ours to act for any more
		return
	}
	for _, e := range effects {
		switch e := e.(type) {
		case callModel:
			a.startCall()
		case stopModel:
			if a.stopCall != nil {
				a.stopCall()
			}
		case runTool:
			a.startTool(e.call)
		case stopTools:
			a.stopTool()
		case startGrace:
			a.after(cancelGrace, gracePassed{})
		}
	}
}

// startCall asks the model in a goroutine of its own.
func (a *turnActor) startCall() {
	if a.stopCall != nil {
		a.stopCall()
	}
	ctx, cancel := context.WithCancel(a.node.ctx)
	a.stopCall = cancel
	m := a.machine
	feed := newModelFeed(a.node, a.self, m.call)
	a.feed = feed
	a.after(silenceShown, silence{m.call})
	c := m.context()
	route := a.node.routes[m.spec.Routing.Profile]
	a.node.goes(func() {
		defer cancel()
		err := a.node.ask(ctx, c, route, feed)
		_ = feed.put(ctx, feedItem{over: true, err: err})
	})
}

func (a *turnActor) startTool(call *toolCall) {
	id, input, tool, ctx, self := call.id, call.input, a.node.tools[call.name], a.toolCtx, a.self
	began := time.Now()
	a.node.goes(func() {
		output, failure := runBounded(ctx, tool, input)
		done := toolDone{id: id, output: output, failure: failure, took: time.Since(began)}
		a.node.system.Root.Send(self, done)
		if err := failpoint.After(failpoint.ToolAfterEffect, nil); err != nil {
			done.output, done.failure = "", &protocol.ToolError{Code: "tool_error", Detail: err.Error()}
			a.node.system.Root.Send(self, done)
		}
	})
}

// lose ends the actor without an end of the turn.
func (a *turnActor) lose() {
	if a.fate == alive {
		a.stream.abandon()
		a.end(lost)
	}
	for _, message := range a.waiting {
		if question, ok := message.(ask); ok {
			question.reply <- answer{err: errGone}
		}
	}
	a.waiting = nil
}

// end stops all that runs for the turn and lets the actor linger.
func (a *turnActor) end(f fate) {
	a.fate = f
	for _, timer := range a.timers {
		timer.Stop()
	}
	a.timers = nil
	if a.stopCall != nil {
		a.stopCall()
	}
	a.stopTool()
	a.feed = nil
	a.node.ended(a)
	if a.self != nil { // else it is stopping already
		a.after(linger, lingerPassed{})
	}
}
