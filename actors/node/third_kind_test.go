package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/actorstest"
	"turnstone/actors/host"
	"turnstone/actors/shell"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// This file is all that a third kind of work needs: a machine with three states, a store, an actor, and one line that attaches
// its host to a node. Claims, adoption, drains, stops and fencing come from package host.

// The states of an errand.
const (
	errandWaiting = "waiting"
	errandRunning = "running"
	errandDone    = "done"
)

const errandSteps = 3

// errandMachine is the machine of an errand: it counts to errandSteps.
type errandMachine struct{ count int }

func (m errandMachine) state() string {
	switch m.count {
	case 0:
		return errandWaiting
	case errandSteps:
		return errandDone
	}
	return errandRunning
}

// errandStore stores errands in memory, as a log of the epochs that wrote each step.
type errandStore struct {
	nodes *actorstest.Directory

	mu      sync.Mutex
	errands map[string]*errandRow // guarded by mu
}

type errandRow struct {
	errandClaim
	owner *protocol.NodeID
	log   []int32 // the epoch of the owner that stored each step
}

type errandClaim struct {
	account protocol.AccountID
	id      string
	epoch   int32
}

// Work implements host.Claim.
func (c errandClaim) Work() (string, int32) { return c.id, c.epoch }

// claim makes a node the owner of the errands that the condition selects.
func (s *errandStore) claim(node protocol.NodeID, limit int, condition func(*errandRow) bool) (claims []errandClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.errands {
		if len(claims) < limit && len(row.log) < errandSteps && condition(row) {
			row.owner, row.epoch = &node, row.epoch+1
			claims = append(claims, row.errandClaim)
		}
	}
	return claims
}

func (s *errandStore) claimDue(_ context.Context, node protocol.NodeID, limit int) ([]errandClaim, error) {
	return s.claim(node, limit, func(row *errandRow) bool {
		if row.owner == nil {
			return true
		}
		_, alive := s.nodes.Lease(*row.owner)
		return !alive
	}), nil
}

// Owned implements host.Store.
func (s *errandStore) Owned(_ context.Context, node protocol.NodeID) (own []errandClaim, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.errands {
		if row.owner != nil && *row.owner == node && len(row.log) < errandSteps {
			own = append(own, row.errandClaim)
		}
	}
	return own, nil
}

// ClaimLost implements host.Store.
func (s *errandStore) ClaimLost(_ context.Context, claim errandClaim, node protocol.NodeID) (errandClaim, error) {
	claims := s.claim(node, 1, func(row *errandRow) bool { return row.errandClaim == claim })
	if len(claims) == 0 {
		return claim, ownership.ErrFenced
	}
	return claims[0], nil
}

// Load implements host.Store.
func (s *errandStore) Load(_ context.Context, claim errandClaim, _ protocol.NodeID) (errandRow, error) {
	return errandRow{errandClaim: claim, log: s.log(claim.id)}, nil
}

func (s *errandStore) append(claim errandClaim, node protocol.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.errands[claim.id]
	if row.epoch != claim.epoch || row.owner == nil || *row.owner != node {
		return ownership.ErrFenced
	}
	row.log = append(row.log, claim.epoch)
	return nil
}

func (s *errandStore) log(id string) []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.errands[id].log)
}

// errandHost hosts errands.
type errandHost struct {
	*host.Host[string, errandClaim, struct{}]
	node    host.Node
	store   *errandStore
	proceed chan struct{} // each step waits for one
	log     *zap.Logger
}

func newErrandHost(n *Node, store *errandStore, proceed chan struct{}, log *zap.Logger) *errandHost {
	h := &errandHost{node: n.Host(), store: store, proceed: proceed, log: log}
	h.Host = host.New[string, errandClaim, struct{}](host.Config{Node: h.node, Name: "errand"}, host.StoreKind[errandClaim, errandRow]{
		Node: h.node.ID, Store: store, Due: store.claimDue, Start: h.spawn,
		Unread: func(_ errandClaim, err error) { log.Error("an errand could not be read", zap.Error(err)) },
	})
	return h
}

func (h *errandHost) spawn(row errandRow) {
	e := &errand{host: h, claim: row.errandClaim, machine: errandMachine{len(row.log)}}
	e.shell = h.Shell(e, row.id, row.epoch, h.log)
	h.Spawn(row.id, &host.Actor[struct{}]{Account: row.account, Epoch: row.epoch}, e.shell, errandBegin{})
}

// Drain implements Host: the errands that were not done lose their owner.
func (h *errandHost) Drain(ctx context.Context, grace time.Duration) (released int, err error) {
	h.Host.Drain(ctx, grace)
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	for _, row := range h.store.errands {
		if row.owner != nil && *row.owner == h.node.ID && len(row.log) < errandSteps {
			row.owner = nil
			released++
		}
	}
	return released, nil
}

// errand is the behavior of the actor of an errand.
type errand struct {
	host    *errandHost
	claim   errandClaim
	shell   *shell.Shell
	machine errandMachine
	decided bool
}

type (
	errandBegin struct{}
	errandStep  struct{}
	errandPanic struct{}
)

func (e *errand) Decide(message any, status shell.Status) func(error) {
	switch message.(type) {
	case errandPanic:
		panic("broken")
	case errandBegin:
		e.await()
	case errandStep:
		if status == shell.Active {
			e.machine.count++
			e.decided = true
		}
	}
	return nil
}

// await makes the errand take its next step when the test lets it.
func (e *errand) await() {
	post := e.shell.Post()
	e.host.Go(func() {
		select {
		case <-e.host.proceed:
			post(errandStep{})
		case <-e.host.Context().Done():
		}
	})
}

func (e *errand) Step(replies []func(error)) shell.Step {
	if !e.decided {
		return shell.Step{Replies: replies}
	}
	e.decided = false
	step := shell.Step{
		Replies: replies, Last: e.machine.state() == errandDone,
		Store: func(done func(error)) {
			e.host.GoOr(func() { done(e.host.store.append(e.claim, e.host.node.ID)) }, func() { done(ownership.ErrFenced) })
		},
	}
	if !step.Last {
		step.Perform = e.await
	}
	return step
}

func (e *errand) Refuse(any)       {}
func (e *errand) End(shell.Status) {}

// errandWorld has nodes that run errands, on a fake clock.
type errandWorld struct {
	t       *testing.T
	store   *errandStore
	proceed chan struct{}
}

func (w *errandWorld) node() (*Node, *errandHost) {
	w.t.Helper()
	n := New(Config{Directory: w.store.nodes, DrainGrace: time.Second, Logger: zap.NewNop()})
	h := newErrandHost(n, w.store, w.proceed, zap.NewNop())
	n.Attach(func() ownership.NodeLoad { return ownership.NodeLoad{Live: h.Running()} }, h) // the one line of wiring
	if err := n.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(n.Stop)
	return n, h
}

func TestAThirdKindOfWorkSurvivesItsNodes(t *testing.T) {
	for name, c := range map[string]struct {
		interrupt func(t *testing.T, n *Node, h *errandHost)
		within    time.Duration // until the next step can be stored
	}{
		"a kill":  {func(_ *testing.T, n *Node, _ *errandHost) { n.Stop() }, 5 * time.Second},
		"a drain": {func(t *testing.T, n *Node, _ *errandHost) { drain(t, n) }, 2 * time.Second},
		"a panic of its actor": {func(_ *testing.T, _ *Node, h *errandHost) {
			h.Send(h.Find(account, "one"), errandPanic{})
		}, 3 * RenewInterval},
		"a death that it does not know": {func(_ *testing.T, n *Node, h *errandHost) {
			h.store.nodes.Kill(n.ID())
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { <-time.After(time.Minute) }) // the actors linger
				w := &errandWorld{t, &errandStore{nodes: new(actorstest.Directory), errands: map[string]*errandRow{}}, make(chan struct{})}
				first, h := w.node()
				w.store.mu.Lock()
				w.store.errands["one"] = &errandRow{errandClaim: errandClaim{account, "one", 0}}
				w.store.mu.Unlock()
				w.proceed <- struct{}{}
				synctest.Wait()
				w.node()
				<-time.After(4 * RenewInterval)
				synctest.Wait()
				began := time.Now()
				c.interrupt(t, first, h)
				w.finish(began, c.within)
			})
		})
	}
}

var account = protocol.NewAccountID()

func drain(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Drain(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// finish lets the rest of the steps be stored by the next owner, and checks that each was stored once.
func (w *errandWorld) finish(began time.Time, within time.Duration) {
	w.t.Helper()
	for epoch := int32(1); epoch == 1; {
		<-time.After(10 * time.Millisecond)
		w.store.mu.Lock()
		epoch = w.store.errands["one"].epoch
		w.store.mu.Unlock()
	}
	if took := time.Since(began); took > within {
		w.t.Errorf("the errand had its next owner after %s, want at most %s", took, within)
	}
	for number := 2; number <= errandSteps; number++ {
		for len(w.store.log("one")) < number { // what the former owner gets has no effect
			w.proceed <- struct{}{}
			synctest.Wait()
		}
	}
	if got, want := fmt.Sprint(w.store.log("one")), fmt.Sprint([]int32{1, 2, 2}); got != want {
		w.t.Errorf("the steps were stored by the epochs %v, want %v", got, want)
	}
}
