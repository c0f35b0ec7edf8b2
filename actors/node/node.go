package node

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/cluster"
	"turnstone/actors/host"
	"turnstone/actors/shell"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// Directory keeps the nodes of a cluster. Package persistence/nodes implements it on Postgres.
type Directory interface {
	// Register adds a node with a valid lease, and marks its predecessor dead.
	Register(ctx context.Context, node ownership.NewNode) error
	// Renew renews the lease of a node and stores its load; ownership.ErrFenced when others have declared it dead. draining
	// reports that an operator wants the node to drain.
	Renew(ctx context.Context, node protocol.NodeID, load ownership.NodeLoad) (draining bool, err error)
	// Leases returns the leases of the nodes that are not dead.
	Leases(ctx context.Context) (map[protocol.NodeID]ownership.Lease, error)
	// MarkDead declares a node dead if its renewal counter still has the value seen.
	MarkDead(ctx context.Context, node protocol.NodeID, seen int64) (bool, error)
	// Drain marks a node so that it gets no new work, and drains at its next renewal.
	Drain(ctx context.Context, node protocol.NodeID) error
}

// Config is the configuration and the dependencies of a node.
type Config struct {
	Directory  Directory
	DrainGrace time.Duration    // for a drain that an operator requests; see Drain
	Cluster    *cluster.Options // nil: other nodes cannot reach this one, and it cannot reach them
	Build      string           // commit of the binary, for operators; empty: not known
	// Predecessor names the node that ran on this data folder before: the lock of the folder proves that it has
	// stopped. It is nil when unknown.
	Predecessor *protocol.NodeID
	Logger      *zap.Logger
	// Fenced is called once when other nodes have declared this one dead: the process must end or restart.
	Fenced func()
}

// Node is this run of the process in the cluster. It renews the lease under which its hosts run their work.
type Node struct {
	// Set by New.
	config  Config
	id      protocol.NodeID
	log     *zap.Logger
	runtime *shell.Runtime
	link    *cluster.Link // nil if there is no cluster
	ctx     context.Context
	cancel  context.CancelFunc

	// Set by Attach.
	hosts hosts
	load  func() ownership.NodeLoad

	draining atomic.Bool
	released chan int                  // to the keeper: pieces of work to take over that another node has released
	renewed  atomic.Pointer[time.Time] // start time of the last successful renewal; nil before the first
	others   atomic.Bool               // another node had a lease at the last look

	keeper sync.WaitGroup
	stop   sync.Once
}

// New returns a node that is not registered.
func New(c Config) *Node {
	n := &Node{
		config: c, id: protocol.NewNodeID(), log: c.Logger.Named("node"), released: make(chan int, 1),
		runtime: shell.NewRuntime(c.Logger.Named("actors"), runtime.GOMAXPROCS(0)),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if c.Cluster != nil {
		n.link = cluster.New(n.runtime, *c.Cluster)
		n.link.Handle(kindReleased, n.takeReleased)
	}
	return n
}

// ID returns the identifier of this run of the process.
func (n *Node) ID() protocol.NodeID { return n.id }

// Host returns what a host needs of the node.
func (n *Node) Host() host.Node {
	return host.Node{ID: n.id, Runtime: n.runtime, LeaseIsValid: n.leaseIsValid}
}

// Link returns the link to other nodes; nil if there is none.
func (n *Node) Link() *cluster.Link { return n.link }

// Attach sets the hosts of the node, of which the first adopts first, and the load with which it renews its lease. It is called
// once, before Start.
func (n *Node) Attach(load func() ownership.NodeLoad, all ...Host) { n.hosts, n.load = all, load }

// Start registers the node and starts its keeper, which renews the lease and lets the hosts adopt work. After an error, Start
// may be repeated.
func (n *Node) Start(ctx context.Context) error {
	registered := ownership.NewNode{NodeID: n.id, Build: n.config.Build, Predecessor: n.config.Predecessor}
	if n.link != nil {
		if err := n.link.Start(); err != nil {
			return err
		}
		registered.Address = n.link.Address()
	}
	if err := n.config.Directory.Register(ctx, registered); err != nil {
		return fmt.Errorf("registering the node: %w", err)
	}
	n.keeper.Go(n.keep)
	return nil
}

// Renewed returns the start time of the last successful renewal of the lease; nil if there was none.
func (n *Node) Renewed() *time.Time { return n.renewed.Load() }

// leaseIsValid reports whether the lease is certainly valid, so that no other node can own the work of this one.
func (n *Node) leaseIsValid() bool {
	renewed := n.renewed.Load()
	return renewed != nil && time.Since(*renewed) < LeaseValidFor
}

// Stop ends all work at once and waits for its end. Another node or the next process continues it. A repeat waits for the
// first call.
func (n *Node) Stop() {
	n.stop.Do(func() {
		n.cancel()
		n.hosts.stop()
		n.keeper.Wait()
		if n.link != nil {
			n.link.Close()
		}
		n.runtime.Close()
	})
}
