// Package researchtest is the test suite for the stores of research tasks: the one on Postgres, and Memory, which the tests of package
// research use. Only tests import it.
package researchtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
)

// Store has the methods of research.Store that the suite calls. It repeats them because the tests of package research import this
// package, so it cannot import research.
type Store interface {
	Create(ctx context.Context, spec *researchlog.Spec, begin *researchlog.Append) (*protocol.ResearchTask, error)
	Task(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error)
	ClaimAny(ctx context.Context, account protocol.AccountID, id protocol.TaskID, node protocol.NodeID) (researchlog.Claimed, error)
	Load(ctx context.Context, claim researchlog.Claimed, node protocol.NodeID) (*researchlog.Claim, error)
	Append(ctx context.Context, batch *researchlog.Append) error
}

var _ Store = (*Memory)(nil)

// Opened is an empty store.
type Opened struct {
	Store Store
	Spec  *researchlog.Spec  // of a task that can be created
	Nodes [2]protocol.NodeID // that run
	Other protocol.AccountID // another account
}

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	for name, test := range map[string]func(*task){
		"a batch is stored once":                       testAppend,
		"only the owner appends":                       testFences,
		"a claim ends the claim before it":             testClaims,
		"a task that waits has no owner after a batch": testWaits,
		"a task that has ended stays as it is":         testEnded,
		"a task of another account is not found":       testAccounts,
	} {
		t.Run(name, func(t *testing.T) {
			of := &task{T: t, Opened: open(t), next: 1, entry: 1}
			_, err := of.Store.Create(t.Context(), of.Spec, of.batch(protocol.ResearchQueued, 0))
			of.must(err)
			of.next++
			of.claim(of.Nodes[0])
			test(of)
		})
	}
}

// task is a stored task that a node has claimed, with the position of its log.
type task struct {
	*testing.T
	Opened
	claimed researchlog.Claimed
	owner   protocol.NodeID
	next    int64 // sequence
	entry   int64
}

func (of *task) must(err error) {
	of.Helper()
	if err != nil {
		of.Fatal(err)
	}
}

func (of *task) claim(node protocol.NodeID) {
	of.Helper()
	claimed, err := of.Store.ClaimAny(of.Context(), of.Spec.AccountID, of.Spec.TaskID, node)
	of.must(err)
	of.claimed, of.owner = claimed, node
}

// batch returns the next batch, with one event and some entries.
func (of *task) batch(state protocol.ResearchState, entries int) *researchlog.Append {
	of.Helper()
	frames, err := protocol.AppendResearchEvents(nil, of.Spec.TaskID, of.next, of.Spec.CreatedAt, []protocol.Payload{&protocol.ResearchStateChanged{State: state}})
	of.must(err)
	b := &researchlog.Append{
		AccountID: of.Spec.AccountID, TaskID: of.Spec.TaskID, Owner: of.owner, Epoch: of.claimed.Epoch, First: of.next, Last: of.next, Frames: frames,
		FirstEntry: of.entry, At: of.Spec.CreatedAt,
		Task: protocol.ResearchTask{
			TaskID: of.Spec.TaskID, ConversationID: of.Spec.ConversationID, Question: of.Spec.Question, Depth: of.Spec.Depth, Sources: of.Spec.Sources,
			State: state, Plan: []protocol.ResearchStep{}, LastSequence: of.next, Version: of.next, CreatedAt: of.Spec.CreatedAt,
		},
	}
	for n := range entries {
		b.Entries = append(b.Entries, researchlog.Entry{Kind: researchlog.EntryResult, Step: fmt.Sprintf("read-%d", of.entry+int64(n))})
	}
	return b
}

// store stores a batch that must not be fenced.
func (of *task) store(b *researchlog.Append) {
	of.Helper()
	of.must(of.Store.Append(of.Context(), b))
	of.next, of.entry = b.Last+1, b.FirstEntry+int64(len(b.Entries))
}

func (of *task) wantFenced(what string, b *researchlog.Append) {
	of.Helper()
	if err := of.Store.Append(of.Context(), b); !errors.Is(err, ownership.ErrFenced) {
		of.Errorf("%s: %v, want %v", what, err, ownership.ErrFenced)
	}
}

func (of *task) wantNoLoad(what string, claim researchlog.Claimed, node protocol.NodeID) {
	of.Helper()
	if _, err := of.Store.Load(of.Context(), claim, node); !errors.Is(err, ownership.ErrFenced) {
		of.Errorf("%s: %v, want %v", what, err, ownership.ErrFenced)
	}
}

// wantStored checks what a new owner continues from.
func (of *task) wantStored(state protocol.ResearchState) {
	of.Helper()
	loaded, err := of.Store.Load(of.Context(), of.claimed, of.owner)
	of.must(err)
	if loaded.State != state || loaded.NextSequence != of.next || int64(len(loaded.Entries)) != of.entry-1 || loaded.Question != of.Spec.Question ||
		loaded.Epoch != of.claimed.Epoch || loaded.Version != of.next-1 {
		of.Errorf("loaded %+v", loaded)
	}
	for i, e := range loaded.Entries {
		if want := fmt.Sprintf("read-%d", i+1); e.Step != want {
			of.Errorf("entry %d is %s", i+1, e.Step)
		}
	}
	current, err := of.Store.Task(of.Context(), of.Spec.AccountID, of.Spec.TaskID)
	if err != nil || current.State != state {
		of.Errorf("the task is %+v (%v)", current, err)
	}
}

func testAppend(of *task) {
	of.wantStored(protocol.ResearchQueued)
	first := of.batch(protocol.ResearchRunning, 2)
	of.store(first)
	of.must(of.Store.Append(of.Context(), first)) // its response was lost
	of.wantStored(protocol.ResearchRunning)
	silent := of.batch(protocol.ResearchRunning, 1)
	silent.Last, silent.Frames, silent.Task.Version, silent.Task.LastSequence = silent.First-1, nil, of.next-1, of.next-1
	of.store(silent)
	of.must(of.Store.Append(of.Context(), silent))
	of.wantStored(protocol.ResearchRunning)
	of.must(of.Store.Append(of.Context(), first)) // late
	of.wantStored(protocol.ResearchRunning)
}

func testFences(of *task) {
	of.store(of.batch(protocol.ResearchRunning, 1))
	for what, change := range map[string]func(*researchlog.Append){
		"another owner":    func(b *researchlog.Append) { b.Owner = of.Nodes[1] },
		"no owner":         func(b *researchlog.Append) { b.Owner = protocol.NodeID{} },
		"another epoch":    func(b *researchlog.Append) { b.Epoch++ },
		"a gap of events":  func(b *researchlog.Append) { b.First++; b.Last++ },
		"a gap of entries": func(b *researchlog.Append) { b.FirstEntry++ },
	} {
		b := of.batch(protocol.ResearchRunning, 1)
		change(b)
		of.wantFenced(what, b)
	}
	of.wantStored(protocol.ResearchRunning)
}

func testClaims(of *task) {
	of.store(of.batch(protocol.ResearchRunning, 1))
	old, late := of.claimed, of.batch(protocol.ResearchRunning, 1)
	of.wantNoLoad("another node", old, of.Nodes[1])
	of.claim(of.Nodes[1])
	if of.claimed.Epoch <= old.Epoch {
		of.Errorf("epoch %d follows %d", of.claimed.Epoch, old.Epoch)
	}
	of.wantNoLoad("the claim before", old, of.Nodes[0])
	of.wantFenced("the owner before", late)
	of.wantStored(protocol.ResearchRunning)
	again := of.claimed
	of.claim(of.Nodes[1]) // by the same node
	of.wantNoLoad("the claim before, of the same node", again, of.Nodes[1])
	of.store(of.batch(protocol.ResearchRunning, 1))
	of.wantStored(protocol.ResearchRunning)
}

func testWaits(of *task) {
	batch := of.batch(protocol.ResearchQueued, 1)
	of.store(batch)
	of.must(of.Store.Append(of.Context(), batch)) // its response was lost
	of.wantNoLoad("without an owner", of.claimed, of.owner)
	of.wantFenced("without an owner", of.batch(protocol.ResearchQueued, 1))
	of.claim(of.Nodes[0])
	of.wantStored(protocol.ResearchQueued)
}

func testEnded(of *task) {
	last := of.batch(protocol.ResearchCancelled, 1)
	of.store(last)
	of.must(of.Store.Append(of.Context(), last)) // its response was lost
	of.wantNoLoad("after the end", of.claimed, of.owner)
	of.wantFenced("after the end", of.batch(protocol.ResearchCancelled, 1))
	if _, err := of.Store.ClaimAny(of.Context(), of.Spec.AccountID, of.Spec.TaskID, of.owner); !errors.Is(err, researchlog.ErrEnded) {
		of.Errorf("claimed after its end: %v", err)
	}
	current, err := of.Store.Task(of.Context(), of.Spec.AccountID, of.Spec.TaskID)
	if err != nil || current.State != protocol.ResearchCancelled || current.Version != last.Task.Version {
		of.Errorf("the task is %+v (%v)", current, err)
	}
}

func testAccounts(of *task) {
	if _, err := of.Store.Task(of.Context(), of.Other, of.Spec.TaskID); protocol.CodeOf(err) != protocol.CodeNotFound {
		of.Errorf("read: %v", err)
	}
	if _, err := of.Store.ClaimAny(of.Context(), of.Other, of.Spec.TaskID, of.Nodes[1]); protocol.CodeOf(err) != protocol.CodeNotFound {
		of.Errorf("claimed: %v", err)
	}
	of.wantNoLoad("another account", researchlog.Claimed{AccountID: of.Other, TaskID: of.Spec.TaskID, Epoch: of.claimed.Epoch}, of.owner)
	b := of.batch(protocol.ResearchRunning, 1)
	b.AccountID = of.Other
	of.wantFenced("another account", b)
	of.wantStored(protocol.ResearchQueued)
}
