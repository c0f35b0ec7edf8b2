package actors

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"turnstone/actors/attachment"
	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/observe"
	"turnstone/actors/remote"
	"turnstone/actors/routing"
	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/actors/tools"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

// Config is the configuration and the dependencies of a node.
type Config struct {
	Store        TurnStore
	FollowUps    FollowUpStore
	Log          TurnLog
	Files        attachment.Store // nil: no message has files
	Directory    Directory
	Model        llm.Model
	Budget       metering.Budget // nil: no limit
	Routes       routing.Routes
	Tools        []tools.Tool
	Hosts        []NewHost
	MaxLiveTurns int             // per account
	Capacity     int             // live turns up to which the node accepts new ones; 0: no limit
	DrainGrace   time.Duration   // for a drain that an operator requests; see Drain
	Cluster      *remote.Options // nil: other nodes cannot reach this one, and it cannot reach them
	Build        string          // commit of the binary, for operators; empty: not known
	// Predecessor names the node that ran on this data folder before: the lock of the folder proves that it has
	// stopped. It is nil when unknown.
	Predecessor *protocol.NodeID
	Logger      *zap.Logger
	Observer    observe.Observer
	// Fenced is called once when other nodes have declared this one dead: the process must end or restart.
	Fenced func()
}

// Node runs the turns of this process. It starts turns, finds their actors, adopts turns of processes that are gone,
// and releases its turns when it drains.
type Node struct {
	// Set by NewNode.
	id           protocol.NodeID
	store        TurnStore
	followUps    FollowUpStore
	turnLog      TurnLog
	directory    Directory
	model        llm.Model
	metered      *metering.Model
	contexts     routing.Contexts
	breakers     routing.Breakers
	routes       routing.Routes
	tools        map[string]tools.Tool
	turnTools    map[string]turn.Tool
	requests     requestBuilder
	maxLiveTurns int
	capacity     int
	drainGrace   time.Duration
	build        string
	predecessor  *protocol.NodeID
	log          *zap.Logger
	fenced       func()
	runtime      *shell.Runtime
	hosts        hosts
	peers        *peers // nil on a single machine
	pacer        *pacer
	storeSlots   storeSlots
	stats        stats
	observer     observe.Observer
	released     chan int                  // to the keeper: number of turns to take over that another node has released
	renewed      atomic.Pointer[time.Time] // start time of the last successful renewal; nil before the first

	ctx    context.Context // ends with Stop, and with it model calls, tools and the keeper
	cancel context.CancelFunc
	wg     sync.WaitGroup
	stop   sync.Once

	registry registry
}

type stats struct {
	started, finished, adopted, broken, refused atomic.Int64
}

// Stats are the node's counters since its start.
type Stats struct {
	Live, Capacity, Relays, Feeds               int
	Started, Finished, Adopted, Broken, Refused int64
	Renewed                                     *time.Time // start of the last successful renewal of the lease; nil: none yet
}

// NewNode creates a node; nothing runs before Start.
func NewNode(c Config) *Node {
	ctx, cancel := context.WithCancel(context.Background())
	n := &Node{
		id: protocol.NewNodeID(), store: c.Store, followUps: c.FollowUps, turnLog: c.Log, directory: c.Directory, model: c.Model, routes: c.Routes,
		tools: map[string]tools.Tool{}, turnTools: map[string]turn.Tool{}, maxLiveTurns: c.MaxLiveTurns,
		capacity: c.Capacity, drainGrace: c.DrainGrace, build: c.Build,
		predecessor: c.Predecessor, log: c.Logger.Named("node"), fenced: c.Fenced, ctx: ctx, cancel: cancel,
		metered:    &metering.Model{Model: c.Model, Budget: c.Budget, Log: c.Logger.Named("budget")},
		storeSlots: make(storeSlots, maxStoreSlots), released: make(chan int, 1), requests: requestBuilder{store: c.Store, files: c.Files}, observer: c.Observer,
	}
	for _, tool := range c.Tools {
		spec := tool.Spec()
		n.tools[spec.Name] = tool
		n.turnTools[spec.Name] = turn.Tool{Kind: spec.Kind, Title: spec.Title, ReadOnly: spec.ReadOnly}
		n.requests.tools = append(n.requests.tools, llm.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	n.runtime = shell.NewRuntime(c.Logger.Named("actors"), runtime.GOMAXPROCS(0))
	for _, create := range c.Hosts {
		n.hosts = append(n.hosts, create(n.id, n.runtime, n.registry.running))
	}
	n.peers = newPeers(n, c.Cluster)
	n.pacer = newPacer(func(to *actor.PID, message any) { n.runtime.Send(to, message) })
	return n
}

// ID returns the identifier of this run of the process.
func (n *Node) ID() protocol.NodeID { return n.id }

// Start registers the node and starts its keeper, which renews the lease and adopts turns without a running owner.
func (n *Node) Start(ctx context.Context) error {
	address, err := n.peers.start()
	if err != nil {
		return err
	}
	node := turnlog.NewNode{NodeID: n.id, Address: address, Build: n.build, Predecessor: n.predecessor}
	if err := n.directory.Register(ctx, node); err != nil {
		return fmt.Errorf("registering the node: %w", err)
	}
	n.startGoroutine(n.keep)
	return nil
}

// startGoroutine runs f in a goroutine that Stop waits for. Once the node is stopped, it does nothing.
func (n *Node) startGoroutine(f func()) {
	n.registry.unlessStopped(func() { n.wg.Go(f) })
}

// Begin returns the first transition of a turn and sets spec.Routing; see turnlog.Start. It is deterministic: the
// events have the time spec.CreatedAt.
func (n *Node) Begin(spec *turnlog.Spec) (turnlog.Begin, error) {
	spec.Routing = n.routes.Resolve(spec.Requested, spec.PreviousProfile, spec.Input)
	b := turn.New(spec, n.turnTools, n.model.Continues()).NewBatch()
	b.Begin()
	frames, err := protocol.AppendEvents(nil, spec.TurnID, 1, spec.CreatedAt, b.Events)
	state, accepts := b.State()
	return turnlog.Begin{Frames: frames, Last: b.Sequence(), State: state, Accepts: accepts, Payloads: b.Events}, err
}

// StartTurn commits a turn and runs it on this node. While another turn of the conversation is live, it does what
// start.IfBusy specifies instead. When the result has a Spec, Follow can read that turn.
func (n *Node) StartTurn(ctx context.Context, start *turnlog.Start) (*turnlog.StartResult, error) {
	if !n.registry.acceptsTurns() {
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "This node is not accepting new turns.", RetryAfter: 1}
	}
	if n.capacity > 0 && n.registry.running() >= n.capacity {
		n.stats.refused.Add(1)
		return nil, &protocol.Error{
			Code: protocol.CodeUnavailable, Detail: "This node runs as many turns as it can. Try again in a moment.", RetryAfter: 2,
		}
	}
	if budget := n.metered.Budget; budget != nil {
		if err := budget.Check(ctx, start.AccountID); err != nil {
			return nil, err
		}
	}
	start.Owner, start.Begin, start.MaxLiveTurns = n.id, n.Begin, n.maxLiveTurns
	if err := failpoint.Before(failpoint.ChatBeforeTurnRow); err != nil {
		return nil, err
	}
	ctx, span := n.observer.Start(ctx, "turn start")
	result, err := n.store.StartTurn(ctx, start)
	err = failpoint.After(failpoint.ChatBeforeTurnRow, err)
	observe.End(span, err)
	if err != nil {
		return nil, err
	}
	if result.Spec != nil && !result.Replayed {
		n.log.Info("turn started", zap.Stringer("turn", result.Spec.TurnID), zap.String("profile", string(result.Spec.Routing.Profile)),
			zap.String("request_id", start.RequestID))
		n.run(ctx, turnlog.Started{Spec: result.Spec, Begin: result.Begin, Epoch: 1})
	}
	return result, nil
}

// run starts the actor of a turn that was just committed, in the trace of ctx.
func (n *Node) run(ctx context.Context, started turnlog.Started) {
	m := turn.New(started.Spec, n.turnTools, n.model.Continues())
	m.Apply(started.Begin.Payloads...)
	s := tail.New(0)
	s.Publish(1, started.Begin.Last, started.Begin.Frames, false)
	n.stats.started.Add(1)
	n.spawn(m, started.Epoch, s, proceedTurn{observe.From(ctx)})
}

// spawn starts the actor of a turn with its first message, unless the node is stopped or already has an actor of this
// epoch or a later one.
func (n *Node) spawn(m *turn.Machine, epoch int32, s *tail.Stream, first any) {
	spec := m.Spec()
	s.Measure(n.observer.TokenDelay)
	toolCtx, stopTool := context.WithCancel(n.ctx)
	r := &turnRun{
		node: n, machine: m, epoch: epoch, stream: s, toolCtx: toolCtx, stopTool: stopTool,
		log: n.log.Named("turn").With(zap.Stringer("turn", spec.TurnID), zap.Int32("epoch", epoch)),
	}
	r.shell = shell.New(r, n.runtime.Send, r.log, func() { n.stats.broken.Add(1) })
	live := &liveTurn{account: spec.AccountID, epoch: epoch, stream: s, done: r.shell.Stopped()}
	if !n.registry.add(spec.TurnID, live, func() *actor.PID { return n.runtime.Spawn(fmt.Sprintf("turn/%s/%d/", spec.TurnID, epoch), r.shell) }) {
		stopTool()
		return
	}
	n.runtime.Send(live.pid, first)
	left := max(time.Second, time.Until(spec.CreatedAt.Add(n.routes.First(spec.Routing.Profile).Deadline)))
	n.runtime.Send(live.pid, shell.StartTimer{Delay: left, Message: deadlinePassed{}})
}

// finishedTurn counts an end and runs the next turn from the queue, if there is one.
func (n *Node) finishedTurn(next *turnlog.Started) {
	n.stats.finished.Add(1)
	if next != nil {
		n.run(n.ctx, *next)
	}
}

// leaseIsValid reports whether the lease is certainly valid, so that no other node can own the turns of this one.
func (n *Node) leaseIsValid() bool {
	renewed := n.renewed.Load()
	return renewed != nil && time.Since(*renewed) < leaseValidFor
}

// Follow returns a reader of a turn that starts after a sequence. The caller must have checked that the account owns
// the turn.
func (n *Node) Follow(account protocol.AccountID, turn protocol.TurnID, after int64) *Reader {
	return &Reader{node: n, account: account, turn: turn, cursor: tail.Cursor{After: after}}
}

// Stats returns the current counters.
func (n *Node) Stats() Stats {
	peers := n.peers.stats()
	return Stats{
		Relays: peers.Relays, Feeds: peers.Feeds,
		Live: n.registry.running(), Capacity: n.capacity, Refused: n.stats.refused.Load(), Started: n.stats.started.Load(), Finished: n.stats.finished.Load(), Adopted: n.stats.adopted.Load(),
		Broken: n.stats.broken.Load(), Renewed: n.renewed.Load(),
	}
}

// Drain refuses new turns, gives the live ones until grace to end, and releases the rest at a persisted boundary, so
// that another node, or the next process, adopts them.
func (n *Node) Drain(ctx context.Context, grace time.Duration) error {
	idle := n.registry.drain()
	n.peers.drain()
	hosts := n.hosts.drain(ctx, grace)
	defer hosts.Wait()
	if err := n.directory.Drain(ctx, n.id); err != nil {
		n.log.Warn("marking the node as draining failed", zap.Error(err))
	}
	failpoint.Reached(failpoint.Draining)
	wait, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	select {
	case <-idle:
	case <-wait.Done():
		n.releaseAll(ctx)
	}
	released, err := n.directory.Release(ctx, n.id)
	if err != nil {
		return fmt.Errorf("releasing turns: %w", err)
	}
	failpoint.Reached(failpoint.Released)
	n.peers.announceRelease(released)
	n.log.Info("drained", zap.Int("released", released))
	return nil
}

// releaseAll asks every actor to stop at a persisted boundary and waits for them.
func (n *Node) releaseAll(ctx context.Context) {
	idle := n.registry.whenIdle(func(live *liveTurn) { n.runtime.Send(live.pid, shell.Release{}) })
	wait, cancel := context.WithTimeout(ctx, releaseWait)
	defer cancel()
	select {
	case <-idle:
	case <-wait.Done(): // the store is unavailable: other nodes adopt the turns when the lease has expired
	}
}

// Stop stops all actors, calls and tools at once and waits for them. Another node or the next process adopts the live
// turns from their logs. A repeat waits for the first call.
func (n *Node) Stop() {
	n.stop.Do(func() {
		turns := n.registry.stop()
		n.cancel()
		n.hosts.stop()
		for _, live := range turns {
			live.stream.Abandon()
			n.runtime.Stop(live.pid)
		}
		for _, live := range turns {
			<-live.done
		}
		n.wg.Wait()
		n.peers.close()
		n.runtime.Close()
	})
}

// Draining reports whether the node refuses new turns.
func (n *Node) Draining() bool { return n.registry.isDraining() }
