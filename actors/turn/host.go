package turn

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/cluster"
	"turnstone/actors/host"
	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/modelinput"
	"turnstone/actors/observe"
	"turnstone/actors/policy"
	"turnstone/actors/routing"
	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// queueRounds is the number of rounds from one check for stalled queues to the next: about 5 s.
const queueRounds = 7

// Config is the configuration and the dependencies of a Host.
type Config struct {
	Node      host.Node
	Link      *cluster.Link // nil: the node cannot reach others
	Store     Store
	FollowUps FollowUpStore
	Log       Log
	Ownership Ownership
	Files     modelinput.Store // nil: no message has files
	Model     llm.Model
	Budget    metering.Budget // nil: no limit
	Routes    routing.Routes
	Tools     *toolbox.Catalogue
	Approvals Approvals
	Consents  modelinput.Consents // nil: no account consents to anything
	// ApprovalLifetime is the time after which an approval of a new turn expires; 0: a day.
	ApprovalLifetime time.Duration
	MaxLiveTurns     int // per account
	Capacity         int // live turns up to which the node accepts new ones; 0: no limit
	Logger           *zap.Logger
	Observer         observe.Observer
}

// Host runs the turns of a node. It starts turns, finds their actors, adopts turns of nodes that have ended, and releases its
// turns when the node drains. Its methods may be called from any goroutine.
type Host struct {
	*host.Host[protocol.TurnID, turnlog.Claim, *live]

	// Set by New.
	node           host.Node
	store          Store
	followUps      FollowUpStore
	turnLog        Log
	ownership      Ownership
	calls          modelCalls
	tools          *toolbox.Catalogue
	starter        *machine.Starter
	maxLiveTurns   int
	capacity       int
	log            *zap.Logger
	peers          *peers // nil if there is no cluster
	pacer          *pacer
	slots          storeSlots
	modelCallSlots modelCallSlots
	observer       observe.Observer

	isolated    atomic.Bool
	stats       stats
	waiting     waiters
	untilQueues int // owned by Round: rounds until the next check for stalled queues; 0: this round checks
}

// live is what a host keeps with the actor of a turn.
type live struct {
	stream *tail.Stream
	// deleting is set when the conversation is being deleted: the store must decide whether the account may still read
	// it.
	deleting atomic.Bool
}

// running is the entry of a turn's actor.
type running = host.Actor[*live]

type stats struct {
	started, finished, adopted, broken, refused atomic.Int64
}

// Stats are the counters of a host since its start.
type Stats struct {
	Live, Capacity, Relays, Sources             int
	Started, Finished, Adopted, Broken, Refused int64
}

// New creates a host without turns. It is called before the node starts.
func New(c Config) *Host {
	log := c.Logger.Named("node")
	h := &Host{
		node: c.Node, store: c.Store, followUps: c.FollowUps, turnLog: c.Log, ownership: c.Ownership, tools: c.Tools,
		starter:      &machine.Starter{Routes: c.Routes, Tools: turnTools(c.Tools), Continues: c.Model.Continues(), ApprovalLifetime: c.ApprovalLifetime},
		maxLiveTurns: c.MaxLiveTurns, capacity: c.Capacity, log: log, pacer: newPacer(c.Node.Runtime.Send), slots: make(storeSlots, maxStoreSlots), observer: c.Observer,
		modelCallSlots: modelCallSlots{limit: c.MaxLiveTurns, accounts: map[protocol.AccountID]*slotsInUse{}},
	}
	h.calls = modelCalls{
		model: c.Model, metered: &metering.Model{Model: c.Model, Budget: c.Budget, Log: c.Logger.Named("budget")}, routes: c.Routes,
		requests: modelinput.Builder{Conversations: c.Store, Texts: c.Files, Consents: c.Consents, Tools: c.Tools}, grants: c.Approvals, slots: h.slots, observer: c.Observer, log: log,
	}
	h.Host = host.New[protocol.TurnID, turnlog.Claim, *live](host.Config{
		Node: c.Node, Name: "turn", Capacity: c.Capacity, Closing: func() { h.peers.drain() }, Broken: func() { h.stats.broken.Add(1) },
	}, kind{h})
	h.peers = newPeers(h, c.Link)
	return h
}

// turnTools returns what the machines of turns know of the tools.
func turnTools(tools *toolbox.Catalogue) map[string]machine.Tool {
	known := map[string]machine.Tool{policy.ReadMore: machineTool(toolbox.ReadMoreEntry())}
	if tools == nil {
		return known
	}
	for _, entry := range tools.All() {
		known[entry.Name] = machineTool(entry)
	}
	return known
}

func machineTool(entry *toolbox.Entry) machine.Tool {
	return machine.Tool{
		Kind: entry.Kind, Title: entry.Title, ReadOnly: entry.Effect == protocol.EffectRead, Repeatable: entry.Repeatable, Consent: entry.Consent,
		Plan: entry.Plan, Checks: entry.Check != nil,
	}
}

// Load returns the load of the node, for its lease.
func (h *Host) Load() ownership.NodeLoad {
	return ownership.NodeLoad{Live: h.Running(), Capacity: h.capacity}
}

// runner returns this node, for the store.
func (h *Host) runner() turnlog.Runner {
	return turnlog.Runner{NodeID: h.node.ID, MaxLiveTurns: h.maxLiveTurns, Begin: h.starter.Begin}
}

// startAttempts limits how often one request tries to start a turn. It tries again if the live turn ended before it accepted the
// input.
const startAttempts = 3

// StartTurn commits a turn and runs it on this node. While another turn of the conversation is live, it does what
// start.IfBusy specifies instead. When the result has a Spec, Follow can read that turn. When the input was sent to the live turn, it
// has the receipt. A repeated request sends an input with the same name, so it steers once.
func (h *Host) StartTurn(ctx context.Context, start *turnlog.Start) (*turnlog.StartResult, error) {
	for attempt := 1; ; attempt++ {
		result, err := h.startTurn(ctx, start)
		if err != nil || result.Busy == nil {
			return result, err
		}
		input := InputCommand(result.SteersAs, start.Input, protocol.DeliverNextStep)
		input.RequestID = start.RequestID
		receipt, err := h.Command(ctx, start.AccountID, *result.Busy, input)
		switch {
		case err == nil:
			result.Replayed, receipt.Replayed = receipt.Replayed, false // the body is that of the first response
			result.Receipt = &receipt
			return result, nil
		case !hasEnded(err) || attempt == startAttempts:
			return nil, err
		}
	}
}

// startTurn is one attempt to start a turn. When a live turn is to be steered, the result names it.
func (h *Host) startTurn(ctx context.Context, start *turnlog.Start) (*turnlog.StartResult, error) {
	if h.Draining() {
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The server is not accepting new messages.", RetryAfter: 1}
	}
	if h.capacity > 0 && h.Running() >= h.capacity {
		h.stats.refused.Add(1)
		return nil, &protocol.Error{
			Code: protocol.CodeUnavailable, Detail: "The server has as many answers in progress as it can. Try again in a moment.", RetryAfter: 2,
		}
	}
	if budget := h.calls.metered.Budget; budget != nil {
		if err := budget.Check(ctx, start.AccountID); err != nil {
			return nil, err
		}
	}
	if err := failpoint.Before(failpoint.ChatBeforeTurnRow); err != nil {
		return nil, err
	}
	ctx, span := h.observer.Start(ctx, "turn start")
	result, err := h.store.StartTurn(ctx, start, h.runner())
	err = failpoint.After(failpoint.ChatBeforeTurnRow, err)
	observe.End(span, err)
	if err != nil {
		return nil, err
	}
	if result.Spec != nil && !result.Replayed {
		h.log.Info("turn started", zap.Stringer("turn", result.Spec.TurnID), zap.String("profile", string(result.Spec.Routing.Profile)),
			zap.String("request_id", start.RequestID))
		h.begin(ctx, turnlog.Started{Spec: result.Spec, Begin: result.Begin, Epoch: 1})
	}
	return result, nil
}

// begin starts the actor of a turn that was just committed, in the trace of ctx.
func (h *Host) begin(ctx context.Context, started turnlog.Started) {
	m := h.starter.New(started.Spec)
	m.Apply(started.Begin.Payloads...)
	s := tail.New(0)
	s.Publish(1, started.Begin.Last, started.Begin.Frames, false)
	h.stats.started.Add(1)
	h.spawn(m, started.Epoch, s, proceed{observe.From(ctx)})
}

// spawn starts the actor of a turn with its first message, unless the host is stopped or already has an actor of this
// epoch or a later one.
func (h *Host) spawn(m *machine.Machine, epoch int32, s *tail.Stream, first any) {
	spec := m.Spec()
	s.Measure(h.observer.TokenDelay)
	toolCtx, stopTool := context.WithCancel(h.Context())
	r := &turnActor{
		host: h, machine: m, epoch: epoch, stream: s, toolCtx: toolCtx, stopTool: stopTool, toolSlot: make(chan struct{}, maxToolsAtOnce),
		log: h.log.Named("turn").With(zap.Stringer("turn", spec.TurnID), zap.Int32("epoch", epoch)),
	}
	r.shell = h.Shell(r, spec.TurnID, epoch, r.log)
	left := max(time.Second, time.Until(spec.CreatedAt.Add(m.Waited(time.Now())+h.calls.routes.First(spec.Routing.Profile).Deadline)))
	entry := &running{Account: spec.AccountID, Epoch: epoch, Work: &live{stream: s}}
	if h.Spawn(spec.TurnID, entry, r.shell, first, shell.StartTimer{Delay: left, Message: deadlinePassed{}}) == nil {
		stopTool()
		return
	}
	h.waiting.wake(spec.TurnID)
}

// Follow returns a reader of a turn that starts after a sequence. The caller must have checked that the account owns
// the turn.
func (h *Host) Follow(account protocol.AccountID, turn protocol.TurnID, after int64) *Reader {
	return &Reader{host: h, account: account, turn: turn, cursor: tail.Cursor{After: after}}
}

// Stats returns the current counters.
func (h *Host) Stats() Stats {
	peers := h.peers.stats()
	return Stats{
		Relays: peers.Relays, Sources: peers.Sources,
		Live: h.Running(), Capacity: h.capacity, Refused: h.stats.refused.Load(), Started: h.stats.started.Load(), Finished: h.stats.finished.Load(),
		Adopted: h.stats.adopted.Load(), Broken: h.stats.broken.Load(),
	}
}

// Round implements node.Host. It also starts stalled queues, if this round checks for them. The first round does: the previous
// process may have drained and left queues stalled, and a process that is restarted often may not reach a later round.
func (h *Host) Round(ctx context.Context) (more bool, err error) {
	if more, err = h.Host.Round(ctx); err != nil {
		return more, err
	}
	if h.untilQueues > 0 {
		h.untilQueues--
		return more, nil
	}
	limit := h.Room()
	started, err := h.followUps.StartStalledQueues(ctx, h.runner(), limit)
	for _, turn := range started {
		h.begin(ctx, turn)
	}
	if err == nil && len(started) < limit { // otherwise there may be more, and the next round checks again
		h.untilQueues = queueRounds - 1
	}
	return more, err
}

// Isolate implements node.Host. The readers of the turns that run here reconnect to another node.
func (h *Host) Isolate(isolated bool) {
	if h.isolated.Store(isolated); isolated {
		h.Each(func(work *live) { work.stream.Wake() })
	}
}

// Drain implements node.Host. The turns that have not ended in time lose their owner, so that another node, or the next
// process, adopts them.
func (h *Host) Drain(ctx context.Context, grace time.Duration) (released int, err error) {
	h.Host.Drain(ctx, grace)
	if released, err = h.ownership.Release(ctx, h.node.ID); err != nil {
		return 0, fmt.Errorf("releasing turns: %w", err)
	}
	failpoint.Reached(failpoint.Released)
	return released, nil
}
