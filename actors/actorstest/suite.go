// Package actorstest is the test suite for the implementations of the stores that package turn and package node use: the store on
// Postgres and Memory, which the tests of package turn and of streams use. That of the stores of research tasks is package researchtest;
// the store of uploads has one implementation, and its tests are in its package. Only tests import it.
package actorstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// Store contains the methods of turn.Store, turn.Log, turn.Ownership and node.Directory that the suite calls. It repeats
// them because the tests of package turn import this package, so it cannot import turn.
type Store interface {
	StartTurn(ctx context.Context, start *turnlog.Start, on turnlog.Runner) (*turnlog.StartResult, error)
	Append(batch *turnlog.Append, done func(error))
	FinishTurn(ctx context.Context, finish *turnlog.Finish, on turnlog.Runner) (*turnlog.Started, error)
	LoadTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error)
	RepairTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error)
	TurnHead(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (turnlog.Head, error)
	TurnFrames(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, maxBytes int) (frames []byte, last int64, err error)
	TurnRecord(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, kind, key string) (*turnlog.Record, error)

	Register(ctx context.Context, node ownership.NewNode) error
	Renew(ctx context.Context, node protocol.NodeID, load ownership.NodeLoad) (draining bool, err error)
	Leases(ctx context.Context) (map[protocol.NodeID]ownership.Lease, error)
	MarkDead(ctx context.Context, node protocol.NodeID, seen int64) (bool, error)
	ClaimDue(ctx context.Context, node protocol.NodeID, limit int) ([]turnlog.Claim, error)
	Owned(ctx context.Context, node protocol.NodeID) ([]turnlog.Claim, error)
	ClaimLost(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (turnlog.Claim, error)
	ClaimAny(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error)
	Park(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32, sequence int64, until time.Time) error
	ClaimParked(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error)
	Drain(ctx context.Context, node protocol.NodeID) error
	Release(ctx context.Context, node protocol.NodeID) (int, error)
	Leave(ctx context.Context, node protocol.NodeID) error
}

// Run runs the suite. open returns an empty store and an account of it.
func Run(t *testing.T, open func(t *testing.T) (Store, protocol.AccountID)) {
	for name, test := range map[string]func(*fixture){
		"a turn is read as it was stored":                testReads,
		"an append is fenced":                            testFences,
		"records are found by their keys":                testRecords,
		"the end of a turn is its last append":           testFinish,
		"turns of a dead node are claimed once":          testClaims,
		"a node without a lease is refused":              testLeases,
		"turns are claimed again by a new epoch":         testClaimAgain,
		"a drained node releases its turns and leaves":   testDrain,
		"a turn of another account is not found":         testAccounts,
		"a successor marks its predecessor dead":         testPredecessor,
		"a node that is draining or dead claims nothing": testNoClaims,
		"a parked turn is woken, or claimed in its time": testParked,
	} {
		t.Run(name, func(t *testing.T) {
			store, account := open(t)
			f := &fixture{T: t, Store: store, account: account}
			f.node = f.register()
			test(f)
		})
	}
}

// fixture is a store with one node.
type fixture struct {
	*testing.T
	Store
	account protocol.AccountID
	node    protocol.NodeID
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) wantFenced(what string, err error) {
	f.Helper()
	if !errors.Is(err, ownership.ErrFenced) {
		f.Errorf("%s: %v, want %v", what, err, ownership.ErrFenced)
	}
}

func (f *fixture) register() protocol.NodeID {
	f.Helper()
	node := protocol.NewNodeID()
	f.must(f.Register(f.Context(), ownership.NewNode{NodeID: node, Address: node.String()}))
	return node
}

// turn is a turn that the fixture has started.
type turn struct {
	*fixture
	spec   *turnlog.Spec
	epoch  int32
	last   int64
	frames []byte // all stored events
}

// start starts a turn on a node. Its first transition has one event.
func (f *fixture) start(node protocol.NodeID) *turn {
	f.Helper()
	result, err := f.StartTurn(f.Context(), &turnlog.Start{AccountID: f.account, Input: "hello", At: time.Now()}, turnlog.Runner{
		NodeID: node, MaxLiveTurns: 10,
		Begin: func(spec *turnlog.Spec) (turnlog.Begin, error) {
			spec.Routing = protocol.TurnRouting{Profile: protocol.ProfileBalanced, ModelID: "m"}
			frames, err := protocol.AppendEvents(nil, spec.TurnID, 1, time.Now(), []protocol.Payload{&protocol.TurnStarted{
				ConversationID: spec.ConversationID, BranchID: spec.BranchID, UserMessageID: spec.UserMessageID,
				AssistantMessageID: spec.AssistantMessageID, ParentMessageID: spec.ParentMessageID, AcceptingSteering: true,
			}})
			return turnlog.Begin{Frames: frames, Last: 1, State: protocol.TurnRunning, Accepts: true}, err
		},
	})
	f.must(err)
	if result.Spec == nil {
		f.Fatalf("the turn did not start: %+v", result)
	}
	return &turn{fixture: f, spec: result.Spec, epoch: 1, last: 1, frames: result.Begin.Frames}
}

// next returns the next append of n deltas, with records.
func (u *turn) next(n int, records ...turnlog.Record) *turnlog.Append {
	u.Helper()
	payloads := make([]protocol.Payload, n)
	for i := range payloads {
		payloads[i] = &protocol.AnswerDelta{PartID: protocol.DerivePartID(u.spec.TurnID, 1), Delta: "word "}
	}
	frames, err := protocol.AppendEvents(nil, u.spec.TurnID, u.last+1, time.Now(), payloads)
	u.must(err)
	return &turnlog.Append{
		AccountID: u.account, TurnID: u.spec.TurnID, Owner: u.node, Epoch: u.epoch, First: u.last + 1, Last: u.last + int64(n),
		Frames: frames, State: protocol.TurnRunning, Accepts: true, Records: records,
	}
}

func (u *turn) try(batch *turnlog.Append) error {
	done := make(chan error, 1)
	u.Append(batch, func(err error) { done <- err })
	return <-done
}

func (u *turn) store(batch *turnlog.Append) {
	u.Helper()
	u.must(u.try(batch))
	u.last, u.frames = batch.Last, append(bytes.Clone(u.frames), batch.Frames...)
}

func (u *turn) head() turnlog.Head {
	u.Helper()
	head, err := u.TurnHead(u.Context(), u.account, u.spec.TurnID)
	u.must(err)
	return head
}

func (u *turn) read(after int64) (frames []byte) {
	u.Helper()
	for {
		page, last, err := u.TurnFrames(u.Context(), u.account, u.spec.TurnID, after, 1<<20)
		u.must(err)
		if last <= after {
			return frames
		}
		frames, after = append(frames, page...), last
	}
}

// orphaned marks the turn's node dead and returns a node that may claim the turn.
func (u *turn) orphaned() protocol.NodeID {
	u.Helper()
	successor := u.register()
	u.kill(u.node)
	return successor
}

func (f *fixture) kill(node protocol.NodeID) {
	f.Helper()
	leases, err := f.Leases(f.Context())
	f.must(err)
	if dead, err := f.MarkDead(f.Context(), node, leases[node].Renewals); err != nil || !dead {
		f.Fatalf("the node was not marked dead: %t, %v", dead, err)
	}
}

func (u *turn) claimedBy(node protocol.NodeID) (found turnlog.Claim, ok bool) {
	u.Helper()
	claims, err := u.ClaimDue(u.Context(), node, 10)
	u.must(err)
	for _, claim := range claims {
		if claim.TurnID == u.spec.TurnID {
			found, ok = claim, true
		}
	}
	return found, ok
}

func testReads(f *fixture) {
	u := f.start(f.node)
	u.store(u.next(2))
	u.store(u.next(3))
	head := u.head()
	if head.LastSequence != 6 || head.State != protocol.TurnRunning || !head.Accepts || head.Owner == nil || *head.Owner != f.node || head.Epoch != 1 {
		f.Errorf("head: %+v", head)
	}
	if got := u.read(0); !bytes.Equal(got, u.frames) {
		f.Errorf("the log differs from what was stored:\n%s", got)
	}
	if got, want := u.read(4), protocol.SkipFrames(bytes.Clone(u.frames), 4); !bytes.Equal(got, want) {
		f.Errorf("after 4:\n%s, want\n%s", got, want)
	}
	if frames, last, err := f.TurnFrames(f.Context(), f.account, u.spec.TurnID, 6, 1<<20); len(frames) > 0 || last != 6 || err != nil {
		f.Errorf("at the end: %q, last %d, %v", frames, last, err)
	}
	// What can be read of an undamaged log is all of it.
	for name, load := range map[string]func(context.Context, protocol.AccountID, protocol.TurnID) (*turnlog.Stored, error){"loaded": f.LoadTurn, "repaired": f.RepairTurn} {
		stored, err := load(f.Context(), f.account, u.spec.TurnID)
		f.must(err)
		if !bytes.Equal(stored.Frames, u.frames) || stored.Spec.ConversationID != u.spec.ConversationID || stored.Head.LastSequence != 6 {
			f.Errorf("%s: %+v", name, stored)
		}
	}
}

func testFences(f *fixture) {
	u := f.start(f.node)
	for name, change := range map[string]func(*turnlog.Append){
		"another epoch": func(a *turnlog.Append) { a.Epoch++ },
		"another owner": func(a *turnlog.Append) { a.Owner = protocol.NewNodeID() },
		"a gap":         func(a *turnlog.Append) { a.First, a.Last = a.First+1, a.Last+1 },
	} {
		batch := u.next(1)
		change(batch)
		f.wantFenced(name, u.try(batch))
	}
	if got := u.read(0); !bytes.Equal(got, u.frames) {
		f.Errorf("a fenced append is in the log:\n%s", got)
	}
	batch := u.next(1)
	u.store(batch)
	f.must(u.try(batch)) // the repeat of an append whose reply was lost
	if got := u.read(0); !bytes.Equal(got, u.frames) {
		f.Errorf("a repeated append changed the log:\n%s", got)
	}
}

func testRecords(f *fixture) {
	u := f.start(f.node)
	u.store(u.next(1, turnlog.Record{Kind: turnlog.RecordSteering, Key: "one", Sequence: 2, Body: json.RawMessage(`{"hash":"a"}`)}))
	record, err := f.TurnRecord(f.Context(), f.account, u.spec.TurnID, turnlog.RecordSteering, "one")
	if err != nil || record == nil || record.Sequence != 2 || string(record.Body) != `{"hash":"a"}` {
		f.Errorf("record: %+v, %v", record, err)
	}
	for _, missing := range [][2]string{{turnlog.RecordSteering, "two"}, {turnlog.RecordCancel, "one"}} {
		if record, err := f.TurnRecord(f.Context(), f.account, u.spec.TurnID, missing[0], missing[1]); record != nil || err != nil {
			f.Errorf("%v: %+v, %v", missing, record, err)
		}
	}
	stored, err := f.LoadTurn(f.Context(), f.account, u.spec.TurnID)
	if err != nil || len(stored.Records) != 1 || stored.Records[0].Key != "one" {
		f.Errorf("loaded records: %+v, %v", stored, err)
	}
	fenced := u.next(1, turnlog.Record{Kind: turnlog.RecordCancel, Sequence: 3, Body: json.RawMessage(`{}`)})
	fenced.Epoch++
	f.wantFenced("another epoch", u.try(fenced))
	if record, err := f.TurnRecord(f.Context(), f.account, u.spec.TurnID, turnlog.RecordCancel, ""); record != nil || err != nil {
		f.Errorf("a fenced record was stored: %+v, %v", record, err)
	}
}

func (u *turn) end() *turnlog.Finish {
	u.Helper()
	frames, err := protocol.AppendEvents(nil, u.spec.TurnID, u.last+1, time.Now(), []protocol.Payload{&protocol.TurnFinished{
		Status: protocol.TurnCompleted, StopReason: protocol.StopEndTurn, MessageID: u.spec.AssistantMessageID,
	}})
	u.must(err)
	return &turnlog.Finish{
		Append: turnlog.Append{
			AccountID: u.account, TurnID: u.spec.TurnID, Owner: u.node, Epoch: u.epoch, First: u.last + 1, Last: u.last + 1, Frames: frames,
			State: protocol.TurnCompleted,
		},
		Spec: u.spec, StopReason: protocol.StopEndTurn, Status: protocol.MessageComplete, ModelID: "m", At: time.Now(),
	}
}

func testFinish(f *fixture) {
	u := f.start(f.node)
	fenced := u.end()
	fenced.Epoch++
	_, err := f.FinishTurn(f.Context(), fenced, turnlog.Runner{})
	f.wantFenced("an end with another epoch", err)
	end := u.end()
	if next, err := f.FinishTurn(f.Context(), end, turnlog.Runner{}); next != nil || err != nil {
		f.Fatalf("FinishTurn returned %+v, %v", next, err)
	}
	u.last, u.frames = end.Last, append(bytes.Clone(u.frames), end.Frames...)
	if head := u.head(); head.State != protocol.TurnCompleted || head.LastSequence != 2 || head.Accepts {
		f.Errorf("head: %+v", head)
	}
	if got := u.read(0); !bytes.Equal(got, u.frames) {
		f.Errorf("the log of the ended turn:\n%s", got)
	}
	f.wantFenced("an append after the end", u.try(u.next(1)))
	_, err = f.FinishTurn(f.Context(), u.end(), turnlog.Runner{})
	f.wantFenced("a second end", err)
	if own, err := f.Owned(f.Context(), f.node); len(own) != 0 || err != nil {
		f.Errorf("the node still owns %+v, %v", own, err)
	}
}

func testClaims(f *fixture) {
	u := f.start(f.node)
	successor := f.register()
	if claim, claimed := u.claimedBy(successor); claimed {
		f.Fatalf("a turn of a live node was claimed: %+v", claim)
	}
	f.kill(f.node)
	claim, claimed := u.claimedBy(successor)
	if !claimed || claim.Epoch != 2 || claim.AccountID != f.account || claim.Cause != protocol.CauseNodeLost {
		f.Fatalf("claim: %+v, %t", claim, claimed)
	}
	if claim, again := u.claimedBy(successor); again {
		f.Errorf("the turn was claimed twice: %+v", claim)
	}
	f.wantFenced("an append of the first owner", u.try(u.next(1)))
	taken := u.next(1)
	taken.Owner, taken.Epoch = successor, claim.Epoch
	f.must(u.try(taken))
	own, err := f.Owned(f.Context(), successor)
	if err != nil || len(own) != 1 || own[0].TurnID != u.spec.TurnID || own[0].Epoch != 2 {
		f.Errorf("the successor owns %+v, %v", own, err)
	}
}

// renew renews the lease of the node.
func (f *fixture) renew() error {
	_, err := f.Renew(f.Context(), f.node, ownership.NodeLoad{Live: 3, Capacity: 5})
	return err
}

func testLeases(f *fixture) {
	before, err := f.Leases(f.Context())
	f.must(err)
	f.must(f.renew())
	after, err := f.Leases(f.Context())
	f.must(err)
	if after[f.node].Renewals != before[f.node].Renewals+1 {
		f.Errorf("renewals: %d, then %d", before[f.node].Renewals, after[f.node].Renewals)
	}
	if got := after[f.node]; got.Load != (ownership.NodeLoad{Live: 3, Capacity: 5}) || got.Draining || got.Address != f.node.String() {
		f.Errorf("lease: %+v", got)
	}
	if dead, err := f.MarkDead(f.Context(), f.node, before[f.node].Renewals); dead || err != nil {
		f.Errorf("a node that has renewed was marked dead: %t, %v", dead, err)
	}
	f.kill(f.node)
	f.wantFenced("a renewal of a dead node", f.renew())
	if leases, err := f.Leases(f.Context()); err != nil || len(leases) != 0 {
		f.Errorf("the leases of live nodes: %v, %v", leases, err)
	}
	if dead, err := f.MarkDead(f.Context(), f.node, after[f.node].Renewals); dead || err != nil {
		f.Errorf("a dead node was marked dead again: %t, %v", dead, err)
	}
}

func testClaimAgain(f *fixture) {
	u := f.start(f.node)
	claim, err := f.ClaimLost(f.Context(), f.node, f.account, u.spec.TurnID, u.epoch)
	if err != nil || claim.Epoch != 2 {
		f.Fatalf("claim: %+v, %v", claim, err)
	}
	_, err = f.ClaimLost(f.Context(), f.node, f.account, u.spec.TurnID, u.epoch)
	f.wantFenced("a second claim of the first epoch", err)
	f.wantFenced("an append of the first epoch", u.try(u.next(1)))
	other := f.register()
	_, err = f.ClaimLost(f.Context(), other, f.account, u.spec.TurnID, claim.Epoch)
	f.wantFenced("a claim by another node", err)
	taken, err := f.ClaimAny(f.Context(), other, f.account, u.spec.TurnID)
	if err != nil || taken.Epoch != 3 || taken.Cause != turnlog.CauseOperator {
		f.Fatalf("taken: %+v, %v", taken, err)
	}
	if head := u.head(); *head.Owner != other || head.Epoch != 3 {
		f.Errorf("head: %+v", head)
	}
}

// A turn that waits for an approval has no owner, and is no orphan before an approval of it expires.
func testParked(f *fixture) {
	u, other := f.start(f.node), f.register()
	park := func(node protocol.NodeID, sequence int64, until time.Time) error {
		return f.Park(f.Context(), node, f.account, u.spec.TurnID, u.epoch, sequence, until)
	}
	wake := func(node protocol.NodeID, account protocol.AccountID) (turnlog.Claim, error) {
		return f.ClaimParked(f.Context(), node, account, u.spec.TurnID)
	}
	hour := time.Now().Add(time.Hour)
	f.wantFenced("a turn that is running was parked", park(f.node, u.last, hour))
	waits := u.next(1)
	waits.State = protocol.TurnRequiresAction
	u.store(waits)
	f.wantFenced("parked before its last event", park(f.node, u.last-1, hour))
	f.wantFenced("parked by another node", park(other, u.last, hour))
	_, err := wake(other, f.account)
	f.wantFenced("a turn that is not parked was woken", err)
	f.must(park(f.node, u.last, hour))
	f.must(park(f.node, u.last, hour)) // the answer to the first one may have been lost
	if head := u.head(); !head.Parked || head.Owner != nil {
		f.Errorf("the head is %+v", head)
	}
	f.wantFenced("an append of the former owner", u.try(u.next(1)))
	if claim, claimed := u.claimedBy(other); claimed {
		f.Errorf("claimed %+v", claim)
	}
	_, err = wake(other, protocol.NewAccountID())
	f.wantFenced("another account has woken it", err)
	draining := f.register()
	f.must(f.Drain(f.Context(), draining))
	_, err = wake(draining, f.account)
	f.wantFenced("a node that drains has woken it", err)
	claim, err := wake(other, f.account)
	u.epoch++
	if want := (turnlog.Claim{AccountID: f.account, TurnID: u.spec.TurnID, Epoch: u.epoch, Cause: turnlog.CauseWake}); err != nil || claim != want {
		f.Fatalf("woken as %+v, %v", claim, err)
	}
	f.must(park(other, u.last, time.Now().Add(-time.Second)))
	if claim, claimed := u.claimedBy(f.node); !claimed || claim.Cause != turnlog.CauseWake || claim.Adoptions != 0 || claim.Epoch != u.epoch+1 {
		f.Errorf("claimed %+v, %v", claim, claimed)
	}
}

func testDrain(f *fixture) {
	u := f.start(f.node)
	f.must(f.Drain(f.Context(), f.node))
	if draining, err := f.Renew(f.Context(), f.node, ownership.NodeLoad{}); !draining || err != nil {
		f.Errorf("a renewal of a draining node: %t, %v", draining, err)
	}
	if err := f.Drain(f.Context(), protocol.NewNodeID()); protocol.CodeOf(err) != protocol.CodeNotFound {
		f.Errorf("an unknown node was drained: %v", err)
	}
	released, err := f.Release(f.Context(), f.node)
	if err != nil || released != 1 {
		f.Fatalf("%d turns were released: %v", released, err)
	}
	if head := u.head(); head.Owner != nil || head.Epoch != 1 {
		f.Errorf("head: %+v", head)
	}
	f.wantFenced("an append after the release", u.try(u.next(1)))
	f.must(f.Leave(f.Context(), f.node))
	if leases, err := f.Leases(f.Context()); err != nil || len(leases) != 0 {
		f.Errorf("the leases of live nodes: %v, %v", leases, err)
	}
	second := f.register()
	if claim, claimed := u.claimedBy(second); !claimed || claim.Epoch != 2 || claim.Cause != protocol.CauseDrain || claim.Adoptions != 0 {
		f.Errorf("claim: %+v, %t", claim, claimed)
	}
	f.kill(second)
	if claim, claimed := u.claimedBy(f.register()); !claimed || claim.Epoch != 3 || claim.Cause != protocol.CauseNodeLost || claim.Adoptions != 1 {
		f.Errorf("claim after a drain and a loss: %+v, %t", claim, claimed)
	}
}

func testAccounts(f *fixture) {
	u := f.start(f.node)
	stranger := protocol.NewAccountID()
	if _, err := f.TurnHead(f.Context(), stranger, u.spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
		f.Errorf("head: %v", err)
	}
	if frames, _, _ := f.TurnFrames(f.Context(), stranger, u.spec.TurnID, 0, 1<<20); len(frames) > 0 {
		f.Errorf("frames: %s", frames)
	}
	if _, err := f.ClaimAny(f.Context(), f.node, stranger, u.spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
		f.Errorf("taken: %v", err)
	}
}

func testPredecessor(f *fixture) {
	u := f.start(f.node)
	successor := protocol.NewNodeID()
	f.must(f.Register(f.Context(), ownership.NewNode{NodeID: successor, Address: f.node.String(), Predecessor: &f.node}))
	f.wantFenced("a renewal of the predecessor", f.renew())
	if claim, claimed := u.claimedBy(successor); !claimed || claim.Epoch != 2 {
		f.Errorf("claim: %+v, %t", claim, claimed)
	}
}

func testNoClaims(f *fixture) {
	u := f.start(f.node)
	draining, dead := f.register(), u.orphaned()
	f.must(f.Drain(f.Context(), draining))
	f.kill(dead)
	for _, node := range []protocol.NodeID{draining, dead} {
		if claim, claimed := u.claimedBy(node); claimed {
			f.Errorf("claim: %+v", claim)
		}
	}
	if _, claimed := u.claimedBy(f.register()); !claimed {
		f.Error("a live node did not claim the turn")
	}
}
