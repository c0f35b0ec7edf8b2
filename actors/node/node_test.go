package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/actorstest"
	"turnstone/actors/cluster"
	"turnstone/actors/clustertest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// fakeHost counts the calls of its methods.
type fakeHost struct {
	adopted, claimed, drains int
	more                     bool // the result of Round
	failed                   error
	slow                     chan struct{} // nil: Drain returns at once

	mu       sync.Mutex
	isolated []bool // guarded by mu: the arguments of Isolate
}

func (h *fakeHost) Round(context.Context) (bool, error) {
	h.adopted++
	return h.more, h.failed
}

func (h *fakeHost) Claim(context.Context, int) (bool, error) {
	h.claimed++
	return false, nil
}

func (h *fakeHost) StartDrain() {}

func (h *fakeHost) Drain(ctx context.Context, _ time.Duration) (int, error) {
	h.drains++
	if h.slow != nil {
		select {
		case <-h.slow:
		case <-ctx.Done():
		}
		return 0, h.failed
	}
	return 5, h.failed
}

func (h *fakeHost) Isolate(isolated bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isolated = append(h.isolated, isolated)
}

// isolations returns the arguments of the calls of Isolate.
func (h *fakeHost) isolations() []bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.isolated)
}

func (h *fakeHost) Abandon() {}
func (h *fakeHost) Stop()    {}

func newKeeper(t *testing.T, d *actorstest.Directory, options *cluster.Options, hosts ...Host) *leaseKeeper {
	t.Helper()
	n := New(Config{Directory: d, Cluster: options, Logger: clustertest.Log(t)})
	n.Attach(func() ownership.NodeLoad { return ownership.NodeLoad{Live: 2, Capacity: 3} }, hosts...)
	t.Cleanup(n.Stop)
	if err := d.Register(t.Context(), ownership.NewNode{NodeID: n.ID()}); err != nil {
		t.Fatal(err)
	}
	return &leaseKeeper{node: n, seen: map[protocol.NodeID]observation{}}
}

func TestANodeDrainsOnceWhenAnOperatorHasMarkedItAndKeepsItsLease(t *testing.T) {
	d, h := new(actorstest.Directory), &fakeHost{}
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
	lease, _ := d.Lease(id)
	if h.drains != 1 || h.adopted != 0 || !k.node.Draining() || lease.Renewals != 2 {
		t.Errorf("%d drains, %d adoptions, draining %t, %d renewals", h.drains, h.adopted, k.node.Draining(), lease.Renewals)
	}
	if err := k.claimMore(k.node.hosts, 3)(time.Now()); err != nil || h.claimed != 0 {
		t.Errorf("a draining node claimed %d times, %v", h.claimed, err)
	}
}

func TestARoundRenewsTheLeaseWithTheLoadAndLetsEveryHostAdopt(t *testing.T) {
	d, failing, other := new(actorstest.Directory), &fakeHost{failed: errors.New("no store")}, &fakeHost{more: true}
	k := newKeeper(t, d, nil, failing, other)
	if err := k.runRound(time.Now()); err == nil || failing.adopted != 1 || other.adopted != 1 || len(k.more) != 1 || k.more[0] != other {
		t.Errorf("%d and %d adoptions, more by %v, %v", failing.adopted, other.adopted, k.more, err)
	}
	if err := k.claimMore(k.more, 7)(time.Now()); err != nil || failing.claimed != 0 || other.claimed != 1 || len(k.more) != 0 {
		t.Errorf("between two rounds, %d and %d claims, more by %v, %v", failing.claimed, other.claimed, k.more, err)
	}
	if lease, _ := d.Lease(k.node.ID()); lease.Load != (ownership.NodeLoad{Live: 2, Capacity: 3}) {
		t.Errorf("the lease has the load %+v", lease.Load)
	}
	d.Kill(k.node.ID())
	if err := k.runRound(time.Now()); !errors.Is(err, ownership.ErrFenced) || other.adopted != 1 {
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

// unreachable is a directory that may be away.
type unreachable struct {
	*actorstest.Directory
	away atomic.Bool
}

func (d *unreachable) Renew(ctx context.Context, node protocol.NodeID, load ownership.NodeLoad) (bool, error) {
	if d.away.Load() {
		return false, errors.New("no store")
	}
	return d.Directory.Renew(ctx, node, load)
}

// A node without its store does not learn that others continue its work, but it must not keep the readers of this work.
func TestANodeThatOthersMayHaveReplacedIsIsolated(t *testing.T) {
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d, h := &unreachable{Directory: new(actorstest.Directory)}, &fakeHost{}
			n := &Node{config: Config{Directory: d}, id: protocol.NewNodeID(), log: zap.NewNop()}
			n.ctx, n.cancel = context.WithCancel(t.Context())
			defer n.cancel()
			n.Attach(func() ownership.NodeLoad { return ownership.NodeLoad{} }, h)
			nodes := []protocol.NodeID{n.id, protocol.NewNodeID()}
			if alone {
				nodes = nodes[:1]
			}
			for _, id := range nodes {
				if err := d.Register(t.Context(), ownership.NewNode{NodeID: id}); err != nil {
					t.Fatal(err)
				}
			}
			go n.keep()
			<-time.After(RenewInterval + 1)
			d.away.Store(true)
			<-time.After(deadAfter - RenewInterval)
			if synctest.Wait(); n.Isolated() || slices.Contains(h.isolations(), true) {
				t.Error("the node is isolated while its lease is valid")
			}
			<-time.After(2 * RenewInterval)
			if synctest.Wait(); n.Isolated() == alone || last(h.isolations()) == alone {
				t.Errorf("alone: %v; isolated is %v, and its host got %v", alone, n.Isolated(), h.isolations())
			}
			d.away.Store(false)
			<-time.After(2 * RenewInterval)
			if synctest.Wait(); n.Isolated() || last(h.isolations()) {
				t.Error("the node stays isolated although it has renewed its lease")
			}
		})
	}
}

func last(all []bool) bool { return all[len(all)-1] }

func TestANodeNotifiesTheOthersOfTheWorkThatItReleases(t *testing.T) {
	authority, d := clustertest.NewAuthority(t), new(actorstest.Directory)
	var keepers []*leaseKeeper
	for range 3 {
		k := newKeeper(t, d, &cluster.Options{Listen: "127.0.0.1:0", TLS: authority.TLS(t), Logger: clustertest.Log(t)}, &fakeHost{})
		if err := k.node.link.Start(); err != nil {
			t.Fatal(err)
		}
		if err := d.Register(t.Context(), ownership.NewNode{NodeID: k.node.ID(), Address: k.node.link.Address()}); err != nil {
			t.Fatal(err)
		}
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

// What a host has released is announced although another host still drains, or fails to.
func TestWhatAHostReleasesIsAnnouncedAtOnce(t *testing.T) {
	slow := &fakeHost{slow: make(chan struct{}), failed: errors.New("no store")}
	announced := make(chan int, 2)
	drained := make(chan error, 1)
	go func() {
		_, err := hosts{slow, &fakeHost{}}.drain(t.Context(), time.Hour, func(released int) { announced <- released })
		drained <- err
	}()
	if released := <-announced; released != 5 {
		t.Errorf("%d are announced, want 5", released)
	}
	close(slow.slow)
	if err := <-drained; err == nil {
		t.Error("the failure of a host is not reported")
	}
}
