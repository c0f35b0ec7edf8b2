package researchtest

import (
	"context"
	"slices"
	"sync"

	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/researchlog"
)

// Memory stores tasks in memory. It knows no conversations, and every node runs. Its zero value is empty.
type Memory struct {
	mu    sync.Mutex
	tasks map[protocol.TaskID]*stored // guarded by mu
}

type stored struct {
	claim researchlog.Claim
	task  protocol.ResearchTask
	owner protocol.NodeID // zero: none
}

// Create stores a new task with its first batch.
func (m *Memory) Create(_ context.Context, spec *researchlog.Spec, begin *researchlog.Append) (*protocol.ResearchTask, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tasks == nil {
		m.tasks = map[protocol.TaskID]*stored{}
	}
	one := &stored{task: begin.Task, claim: researchlog.Claim{
		Spec: *spec, Epoch: 1, State: begin.Task.State, NextSequence: begin.Last + 1, Version: begin.Task.Version,
	}}
	m.tasks[spec.TaskID] = one
	return new(one.task), nil
}

// find returns a task of an account. m.mu is locked.
func (m *Memory) find(account protocol.AccountID, id protocol.TaskID) (*stored, error) {
	if one := m.tasks[id]; one != nil && one.claim.AccountID == account {
		return one, nil
	}
	return nil, protocol.Errorf(protocol.CodeNotFound, "there is no such task")
}

// Task reads a task.
func (m *Memory) Task(_ context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, err := m.find(account, id)
	if err != nil {
		return nil, err
	}
	return new(one.task), nil
}

// HasOwner reports whether a node owns a task.
func (m *Memory) HasOwner(account protocol.AccountID, id protocol.TaskID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, err := m.find(account, id)
	return err == nil && one.owner != protocol.NodeID{}
}

// ClaimAny makes a node the owner of a task.
func (m *Memory) ClaimAny(_ context.Context, account protocol.AccountID, id protocol.TaskID, node protocol.NodeID) (researchlog.Claimed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, err := m.find(account, id)
	switch {
	case err != nil:
		return researchlog.Claimed{}, err
	case one.claim.State.Terminal():
		return researchlog.Claimed{}, researchlog.ErrEnded
	}
	one.claim.Epoch++
	one.owner = node
	return researchlog.Claimed{AccountID: account, TaskID: id, Epoch: one.claim.Epoch}, nil
}

// Load reads a claimed task.
func (m *Memory) Load(_ context.Context, claim researchlog.Claimed, node protocol.NodeID) (*researchlog.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, err := m.find(claim.AccountID, claim.TaskID)
	if err != nil || one.owner != node || one.claim.Epoch != claim.Epoch || one.claim.State.Terminal() {
		return nil, ownership.ErrFenced
	}
	loaded := one.claim
	loaded.Entries = slices.Clone(loaded.Entries)
	return &loaded, nil
}

// Append stores a batch.
func (m *Memory) Append(_ context.Context, b *researchlog.Append) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, err := m.find(b.AccountID, b.TaskID)
	if err != nil {
		return ownership.ErrFenced
	}
	claim, next := &one.claim, int64(len(one.claim.Entries))+1
	switch {
	case one.owner == b.Owner && claim.Epoch == b.Epoch && claim.NextSequence == b.First && next == b.FirstEntry && !claim.State.Terminal():
	case claim.Epoch == b.Epoch && claim.NextSequence > b.Last && next-int64(len(b.Entries)) >= b.FirstEntry:
		return nil // a repeat
	default:
		return ownership.ErrFenced
	}
	claim.Entries = append(claim.Entries, b.Entries...)
	claim.NextSequence, claim.Version, claim.State = b.Last+1, b.Task.Version, b.Task.State
	one.task = b.Task
	if b.Task.State.Terminal() || b.Task.State == protocol.ResearchQueued {
		one.owner = protocol.NodeID{}
	}
	return nil
}
