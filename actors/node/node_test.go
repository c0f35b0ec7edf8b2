package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/actors/cluster"
	"turnstone/actors/clustertest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// directory implements Directory in memory.
type directory struct {
	mu    sync.Mutex
	nodes map[protocol.NodeID]*entry // guarded by mu
}

type entry struct {
	turnlog.Lease
	dead bool
}

func newDirectory() *directory { return &directory{nodes: map[protocol.NodeID]*entry{}} }

func (d *directory) Register(_ context.Context, node turnlog.NewNode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes[node.NodeID] = &entry{Lease: turnlog.Lease{Address: node.Address}}
	return nil
}

func (d *directory) Renew(_ context.Context, node protocol.NodeID, load turnlog.NodeLoad) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[node]
	if n.dead {
		return false, turnlog.ErrFenced
	}
	n.Renewals++
	n.Load = load
	return n.Draining, nil
}

func (d *directory) Leases(context.Context) (map[protocol.NodeID]turnlog.Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[protocol.NodeID]turnlog.Lease{}
	for id, n := range d.nodes {
		if !n.dead {
			all[id] = n.Lease
		}
	}
	return all, nil
}

func (d *directory) MarkDead(_ context.Context, node protocol.NodeID, seen int64) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[node]
	if n.dead || n.Renewals != seen {
		return false, nil
	}
	n.dead = true
	return true, nil
}

func (d *directory) Drain(_ context.Context, node protocol.NodeID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes[node].Draining = true
	return nil
}

// isDead reports whether a node was declared dead, or never registered.
func (d *directory) isDead(node protocol.NodeID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nodes[node] == nil || d.nodes[node].dead
}

// fakeHost counts the calls of its methods.
type fakeHost struct {
	adopted, claimed, drains int
	more                     bool // the result of Adopt
	limits                   []int
	failed                   error
}

func (h *fakeHost) Adopt(context.Context) (bool, error) {
	h.adopted++
	return h.more, h.failed
}

func (h *fakeHost) Claim(_ context.Context, limit int) (bool, error) {
	h.claimed++
	h.limits = append(h.limits, limit)
	return false, nil
}

func (h *fakeHost) StartDrain() {}

func (h *fakeHost) Drain(context.Context, time.Duration) (int, error) {
	h.drains++
	return 5, nil
}

func (h *fakeHost) Abandon() {}
func (h *fakeHost) Stop()    {}

func newKeeper(t *testing.T, d *directory, options *cluster.Options, hosts ...Host) *leaseKeeper {
	t.Helper()
	n := New(Config{Directory: d, Cluster: options, Logger: clustertest.Log(t)})
	n.Attach(func() turnlog.NodeLoad { return turnlog.NodeLoad{Live: 2, Capacity: 3} }, hosts...)
	t.Cleanup(n.Stop)
	if err := d.Register(t.Context(), turnlog.NewNode{NodeID: n.ID()}); err != nil {
		t.Fatal(err)
	}
	return &leaseKeeper{node: n, seen: map[protocol.NodeID]observation{}}
}

func TestANodeDrainsOnceWhenAnOperatorHasMarkedItAndKeepsItsLease(t *testing.T) {
	d, h := newDirectory(), &fakeHost{}
	k := newKeeper(t, d, nil, h)
	id := k.node.ID()
	if err := d.Drain(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.runRound(time.Now()); err != nil {
			t.Fatal(err)
		}
		k.node.keeper.Wait()
	}
	if h.drains != 1 || h.adopted != 0 || !k.node.Draining() || d.nodes[id].Renewals != 2 {
		t.Errorf("%d drains, %d adoptions, draining %t, %d renewals", h.drains, h.adopted, k.node.Draining(), d.nodes[id].Renewals)
	}
	if err := k.claimMore(3)(time.Now()); err != nil || h.claimed != 0 {
		t.Errorf("a draining node claimed %d times, %v", h.claimed, err)
	}
}

func TestARoundRenewsTheLeaseWithTheLoadAndLetsEveryHostAdopt(t *testing.T) {
	d, failing, other := newDirectory(), &fakeHost{failed: errors.New("no store")}, &fakeHost{more: true}
	k := newKeeper(t, d, nil, failing, other)
	if err := k.runRound(time.Now()); err == nil || failing.adopted != 1 || other.adopted != 1 || !k.more {
		t.Errorf("%d and %d adoptions, more %t, %v", failing.adopted, other.adopted, k.more, err)
	}
	if got := d.nodes[k.node.ID()].Load; got != (turnlog.NodeLoad{Live: 2, Capacity: 3}) {
		t.Errorf("the lease has the load %+v", got)
	}
	d.nodes[k.node.ID()].dead = true
	if err := k.runRound(time.Now()); !errors.Is(err, turnlog.ErrFenced) || other.adopted != 1 {
		t.Errorf("a dead node: %v, %d adoptions", err, other.adopted)
	}
}

func TestTheLeaseIsValidForAWhileAfterARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{}
		if n.leaseIsValid() {
			t.Error("a node that has never renewed its lease has a valid one")
		}
		now := time.Now()
		n.renewed.Store(&now)
		<-time.After(LeaseValidFor - 1)
		if !n.leaseIsValid() {
			t.Error("the lease has ended too early")
		}
		<-time.After(1)
		if n.leaseIsValid() {
			t.Error("the lease is valid for too long")
		}
	})
}

func TestANodeNotifiesTheOthersOfTheWorkThatItReleases(t *testing.T) {
	authority, d := clustertest.NewAuthority(t), newDirectory()
	var keepers []*leaseKeeper
	for range 3 {
		k := newKeeper(t, d, &cluster.Options{Listen: "127.0.0.1:0", TLS: authority.TLS(t), Logger: clustertest.Log(t)}, &fakeHost{})
		if err := k.node.link.Start(); err != nil {
			t.Fatal(err)
		}
		d.nodes[k.node.ID()].Address = k.node.link.Address()
		keepers = append(keepers, k)
	}
	if err := keepers[0].markDeadNodes(t.Context(), time.Now()); err != nil { // it reads the addresses
		t.Fatal(err)
	}
	keepers[0].node.announceRelease(0)
	keepers[0].node.announceRelease(5)
	for i, k := range keepers[1:] {
		select {
		case share := <-k.node.released:
			if share != 3 {
				t.Errorf("node %d is to take over %d of 5, want 3", i+1, share)
			}
		case <-t.Context().Done():
			t.Fatalf("node %d was not notified", i+1)
		}
	}
	other := keepers[1].node
	for _, body := range []string{``, `{`, `{"share":0}`, `{"share":-1}`, `{"share":"3"}`} {
		other.takeReleased(cluster.Message{Body: []byte(body)})
	}
	select {
	case share := <-other.released:
		t.Errorf("a message without a share made a node take over %d", share)
	default:
	}
}
