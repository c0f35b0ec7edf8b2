package actors

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// Config is what a node is made of.
type Config struct {
	Store        TurnStore
	Log          TurnLog
	Directory    Directory
	Model        Model
	Budget       Budget // nil: no limit
	Routes       Routes
	Tools        []Tool
	MaxLiveTurns int    // an account
	Address      string // where peers reach this node; empty on a single machine
	// Predecessor names the node that ran on this data folder before and, by the folder's lock, surely does not any
	// more; nil when unknown.
	Predecessor *protocol.NodeID
	Logger      *zap.Logger
	// Fenced is called once when the node was declared dead by others: the process must end or start anew.
	Fenced func()
}

// Node owns every turn that lives in this process: it starts them, finds them, takes over those of processes that are
// gone, and hands them on when it drains.
type Node struct {
	// Set by NewNode.
	id           protocol.NodeID
	store        TurnStore
	turnLog      TurnLog
	directory    Directory
	model        Model
	metered      *MeteredModel
	routes       Routes
	tools        map[string]Tool
	specs        map[string]ToolSpec
	toolList     []ModelTool
	maxLiveTurns int
	address      string
	predecessor  *protocol.NodeID
	log          *zap.Logger
	fenced       func()
	system       *actor.ActorSystem
	dispatcher   *dispatcher
	pacer        *pacer
	places       chan struct{} // held by turns that read or end, one each
	stats        stats
	renewed      atomic.Pointer[time.Time] // when the last renewal that succeeded was begun; nil before

	ctx    context.Context // ends with Stop: calls, tools and keepers end with it
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	turns    map[protocol.TurnID]*liveTurn          // guarded by mu: actors that are alive or linger
	adopting map[protocol.TurnID]int32              // guarded by mu: claimed turns that are being read, by epoch
	awaited  map[protocol.TurnID]map[Waker]struct{} // guarded by mu: who is told when a turn comes to life here
	draining bool                                   // guarded by mu
	stopped  bool                                   // guarded by mu
	quiet    chan struct{}                          // guarded by mu: non-nil while Drain waits for the last turn
}

// liveTurn is how the node finds an actor.
type liveTurn struct {
	account protocol.AccountID
	epoch   int32
	pid     *actor.PID
	stream  *stream
	done    chan struct{} // closed when the actor has stopped
	over    bool          // guarded by Node.mu: it only lingers
	// deleting says that its conversation is being deleted: whether the account may still read it has to be looked up.
	deleting atomic.Bool
}

type stats struct {
	started, finished, adopted, broken, modelCalls, modelFailures atomic.Int64
}

// Stats are the node's counters since its start.
type Stats struct {
	Live                                                          int
	Started, Finished, Adopted, Broken, ModelCalls, ModelFailures int64
}

// NewNode makes a node; nothing runs before Start.
func NewNode(c Config) *Node {
	ctx, cancel := context.WithCancel(context.Background())
	n := &Node{
		id: protocol.NewNodeID(), store: c.Store, turnLog: c.Log, directory: c.Directory, model: c.Model, routes: c.Routes,
		tools: map[string]Tool{}, specs: map[string]ToolSpec{}, maxLiveTurns: c.MaxLiveTurns, address: c.Address,
		predecessor: c.Predecessor, log: c.Logger.Named("node"), fenced: c.Fenced, ctx: ctx, cancel: cancel,
		metered: &MeteredModel{Model: c.Model, Budget: c.Budget, Log: c.Logger.Named("budget")},
		places:  make(chan struct{}, maxAtStore),
		turns:   map[protocol.TurnID]*liveTurn{}, adopting: map[protocol.TurnID]int32{}, awaited: map[protocol.TurnID]map[Waker]struct{}{},
	}
	for _, tool := range c.Tools {
		spec := tool.Spec()
		n.tools[spec.Name], n.specs[spec.Name] = tool, spec
		n.toolList = append(n.toolList, ModelTool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	n.dispatcher = newDispatcher()
	n.system = newActorSystem(c.Logger.Named("actors"))
	n.pacer = newPacer(func(to *actor.PID, message any) { n.system.Root.Send(to, message) })
	return n
}

// ID names this run of the process.
func (n *Node) ID() protocol.NodeID { return n.id }

// Start registers the node and begins to keep its lease, its turns and its neighbours' orphans.
func (n *Node) Start(ctx context.Context) error {
	if err := n.directory.Register(ctx, n.id, n.address, n.predecessor); err != nil {
		return fmt.Errorf("registering the node: %w", err)
	}
	n.goes(n.keep)
	return nil
}

// goes runs f in a goroutine that Stop waits for; a node that stops begins nothing.
func (n *Node) goes(f func()) {
	n.mu.Lock()
	if n.stopped {
		n.mu.Unlock()
		return
	}
	n.wg.Add(1)
	n.mu.Unlock()
	go func() {
		defer n.wg.Done()
		f()
	}()
}

// Begin makes the first transition of a turn; see protocol.TurnStart. It is pure but for the time of the events.
func (n *Node) Begin(spec *protocol.TurnSpec) (protocol.TurnBegin, error) {
	spec.Routing = n.routes.Resolve(spec.Requested, spec.Input)
	m := newTurnMachine(spec, n.specs, n.model.Continues())
	m.begin()
	d := m.take()
	frames, err := encodeEvents(spec.TurnID, 1, spec.CreatedAt, d.events)
	return protocol.TurnBegin{Frames: frames, Last: m.sequence, State: m.state, Accepts: m.accepts, Payloads: d.events}, err
}

// StartTurn commits a turn and brings it to life here; or does what start.IfBusy says. The result's Spec, when set, can
// be followed with Follow.
func (n *Node) StartTurn(ctx context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	n.mu.Lock()
	draining := n.draining || n.stopped
	n.mu.Unlock()
	if draining {
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "this node takes no new turns", RetryAfter: 1}
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
	result, err := n.store.StartTurn(ctx, start)
	if err = failpoint.After(failpoint.ChatBeforeTurnRow, err); err != nil {
		return nil, err
	}
	if result.Spec != nil && !result.Replayed {
		n.log.Info("turn started", zap.Stringer("turn", result.Spec.TurnID), zap.String("profile", string(result.Spec.Routing.Profile)),
			zap.String("request_id", start.RequestID))
		n.run(protocol.StartedTurn{Spec: result.Spec, Begin: result.Begin, Epoch: 1})
	}
	return result, nil
}

// ChangeFollowUp changes an item of a queue. Where that lets the queue go on, its next turn comes to life here.
func (n *Node) ChangeFollowUp(ctx context.Context, change *protocol.FollowUpChange) (*protocol.FollowUp, error) {
	n.mu.Lock()
	draining := n.draining || n.stopped
	n.mu.Unlock()
	if !draining { // else another node, or the next process, goes on with the queue
		change.Owner, change.Begin, change.MaxLiveTurns = n.id, n.Begin, n.maxLiveTurns
	}
	item, started, err := n.store.ChangeFollowUp(ctx, change)
	if err != nil {
		return nil, err
	}
	if started != nil {
		n.run(*started)
	}
	return item, nil
}

// run brings a turn that was just committed to life.
func (n *Node) run(started protocol.StartedTurn) {
	m := newTurnMachine(started.Spec, n.specs, n.model.Continues())
	for _, payload := range started.Begin.Payloads {
		m.apply(payload)
	}
	s := newStream(0)
	s.publish(1, started.Begin.Last, started.Begin.Frames, false)
	n.stats.started.Add(1)
	n.spawn(m, started.Epoch, s, proceedTurn{})
}

// spawn makes the actor of a turn, unless one of this epoch lives already.
func (n *Node) spawn(m *turnMachine, epoch int32, s *stream, first any) {
	turn := m.spec.TurnID
	toolCtx, stopTool := context.WithCancel(n.ctx)
	a := &turnActor{
		node: n, machine: m, epoch: epoch, stream: s, toolCtx: toolCtx, stopTool: stopTool,
		log: n.log.Named("turn").With(zap.Stringer("turn", turn), zap.Int32("epoch", epoch)),
	}
	n.mu.Lock()
	if old := n.turns[turn]; n.stopped || old != nil && old.epoch >= epoch {
		n.mu.Unlock()
		stopTool()
		return
	}
	live := &liveTurn{account: m.spec.AccountID, epoch: epoch, stream: s, done: make(chan struct{})}
	a.done = live.done
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithDispatcher(n.dispatcher))
	live.pid = n.system.Root.SpawnPrefix(props, "turn")
	n.lives(turn, live)
	n.mu.Unlock()
	n.system.Root.Send(live.pid, first)
	route := n.routes[m.spec.Routing.Profile]
	left := max(time.Second, time.Until(m.spec.CreatedAt.Add(route.Deadline)))
	n.system.Root.Send(live.pid, deadlineIn{left})
}

// lives makes a turn found here, and tells those who wait for it; with mu held.
func (n *Node) lives(turn protocol.TurnID, live *liveTurn) {
	n.turns[turn] = live
	for waker := range n.awaited[turn] {
		waker.Wake()
	}
	delete(n.awaited, turn)
}

// await has the waker told when the turn comes to life here, until forsake. It says no when it does live here, by another
// stream than the known one.
func (n *Node) await(turn protocol.TurnID, known *stream, waker Waker) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if live := n.turns[turn]; live != nil && live.stream != known {
		return false
	}
	if n.awaited[turn] == nil {
		n.awaited[turn] = map[Waker]struct{}{}
	}
	n.awaited[turn][waker] = struct{}{}
	return true
}

func (n *Node) forsake(turn protocol.TurnID, waker Waker) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.awaited[turn], waker)
	if len(n.awaited[turn]) == 0 {
		delete(n.awaited, turn)
	}
}

// ended hears that an actor takes no more decisions; it is found for commands while it lingers.
func (n *Node) ended(a *turnActor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if live := n.turns[a.machine.spec.TurnID]; live != nil && live.epoch == a.epoch {
		live.over = true
		if a.fate == lost {
			delete(n.turns, a.machine.spec.TurnID)
		}
	}
	n.checkQuiet()
}

// forget drops an actor that has lingered.
func (n *Node) forget(a *turnActor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if live := n.turns[a.machine.spec.TurnID]; live != nil && live.epoch == a.epoch {
		delete(n.turns, a.machine.spec.TurnID)
	}
	n.checkQuiet()
}

// checkQuiet wakes Drain when no turn is alive; with mu held.
func (n *Node) checkQuiet() {
	if n.quiet == nil {
		return
	}
	for _, live := range n.turns {
		if !live.over {
			return
		}
	}
	close(n.quiet)
	n.quiet = nil
}

// finishedTurn counts an end and runs the turn that follows from the queue.
func (n *Node) finishedTurn(end *ending, next *protocol.StartedTurn) {
	n.stats.finished.Add(1)
	if next != nil {
		n.run(*next)
	}
}

// live finds the actor of a turn, nil when it is not here.
func (n *Node) live(turn protocol.TurnID) *liveTurn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.turns[turn]
}

// holds says whether a turn of an epoch lives here, or is about to.
func (n *Node) holds(turn protocol.TurnID, epoch int32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if live := n.turns[turn]; live != nil && live.epoch == epoch {
		return true
	}
	return n.adopting[turn] == epoch // epochs begin with 1
}

// leased says whether what lives here lives nowhere else for sure.
func (n *Node) leased() bool {
	renewed := n.renewed.Load()
	return renewed != nil && time.Since(*renewed) < leaseSure
}

// Follow makes a reader of a turn that the account owns, from a sequence on. The caller has checked the ownership.
func (n *Node) Follow(account protocol.AccountID, turn protocol.TurnID, after int64) *Reader {
	return &Reader{node: n, account: account, turn: turn, cursor: after}
}

// Stats reads the counters.
func (n *Node) Stats() Stats {
	n.mu.Lock()
	live := 0
	for _, l := range n.turns {
		if !l.over {
			live++
		}
	}
	n.mu.Unlock()
	return Stats{
		Live: live, Started: n.stats.started.Load(), Finished: n.stats.finished.Load(), Adopted: n.stats.adopted.Load(),
		Broken: n.stats.broken.Load(), ModelCalls: n.stats.modelCalls.Load(), ModelFailures: n.stats.modelFailures.Load(),
	}
}

// Drain hands the node's turns on: no new ones, those that live may end within grace, the rest is released at a
// persisted boundary for another node, or the next process, to adopt.
func (n *Node) Drain(ctx context.Context, grace time.Duration) error {
	n.mu.Lock()
	n.draining = true
	quiet := make(chan struct{})
	n.quiet = quiet
	n.checkQuiet()
	n.mu.Unlock()
	if err := n.directory.Drain(ctx, n.id); err != nil {
		n.log.Warn("drain not announced", zap.Error(err))
	}
	wait, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	select {
	case <-quiet:
	case <-wait.Done():
		n.releaseAll(ctx)
	}
	released, err := n.directory.Release(ctx, n.id)
	if err != nil {
		return fmt.Errorf("releasing turns: %w", err)
	}
	n.log.Info("drained", zap.Int("released", released))
	return nil
}

// releaseAll asks every actor to stop at a persisted boundary and waits for them.
func (n *Node) releaseAll(ctx context.Context) {
	n.mu.Lock()
	quiet := make(chan struct{})
	n.quiet = quiet
	for _, live := range n.turns {
		if !live.over {
			n.system.Root.Send(live.pid, releaseTurn{})
		}
	}
	n.checkQuiet()
	n.mu.Unlock()
	wait, cancel := context.WithTimeout(ctx, releaseWait)
	defer cancel()
	select {
	case <-quiet:
	case <-wait.Done(): // the store is away: the lease will tell
	}
}

// Stop ends everything at once and waits for it. Turns that live go on elsewhere, from their logs.
func (n *Node) Stop() {
	n.mu.Lock()
	n.stopped = true
	turns := make([]*liveTurn, 0, len(n.turns))
	for _, live := range n.turns {
		turns = append(turns, live)
	}
	n.mu.Unlock()
	n.cancel()
	for _, live := range turns {
		live.stream.abandon()
		n.system.Root.Stop(live.pid)
	}
	for _, live := range turns {
		<-live.done
	}
	n.wg.Wait()
	n.system.Shutdown()
	n.dispatcher.close()
}

// Draining says whether the node refuses new turns.
func (n *Node) Draining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.draining
}
