package actors

import (
	"context"
	"sync"
	"time"

	"turnstone/protocol"
)

// memory is the durable side of turns without a database, with hooks for faults.
type memory struct {
	mu      sync.Mutex
	turns   map[protocol.TurnID]*memoryTurn
	damaged error // of every log, but for MendTurn
	nodes   map[protocol.NodeID]*memoryNode
	history []protocol.HistoryMessage
	asked   []historyLimits // of each call of History
	// onAppend, when set, decides what happens to a batch: it calls store to store it and done to answer.
	onAppend func(batch *protocol.TurnAppend, store func() error, done func(error))
	onFinish func() error // an error before anything is stored
	onRead   func() error // of History
	onLoad   func()       // before a turn is read
	wg       sync.WaitGroup
}

type historyLimits struct{ messages, bytes int }

type memoryTurn struct {
	spec     *protocol.TurnSpec
	owner    *protocol.NodeID
	epoch    int32
	state    protocol.TurnState
	accepts  bool
	last     int64
	frames   []byte
	appends  int
	records  []protocol.TurnRecord
	finishes []*protocol.TurnFinish
}

type memoryNode struct {
	renewals       int64
	dead, draining bool
}

func newMemory() *memory {
	return &memory{turns: map[protocol.TurnID]*memoryTurn{}, nodes: map[protocol.NodeID]*memoryNode{}}
}

func (s *memory) StartTurn(_ context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	spec := machineSpec()
	spec.AccountID, spec.Input, spec.Requested, spec.CreatedAt = start.AccountID, start.Input, protocol.ProfileBalanced, time.Now()
	begin, err := start.Begin(spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := start.Owner
	s.turns[spec.TurnID] = &memoryTurn{
		spec: spec, owner: &owner, epoch: 1, state: begin.State, accepts: begin.Accepts, last: begin.Last, frames: begin.Frames,
	}
	return &protocol.TurnStartResult{Spec: spec, Begin: begin}, nil
}

func (s *memory) Append(batch *protocol.TurnAppend, done func(error)) {
	store := func() error { return s.store(batch) }
	if s.onAppend != nil {
		s.onAppend(batch, store, done)
		return
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		done(store())
	}()
}

func (s *memory) store(batch *protocol.TurnAppend) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[batch.TurnID]
	if t.owner == nil || *t.owner != batch.Owner || t.epoch != batch.Epoch || t.state.Terminal() || batch.First != t.last+1 {
		return protocol.ErrFenced
	}
	t.last, t.state, t.accepts = batch.Last, batch.State, batch.Accepts
	t.frames = append(t.frames, batch.Frames...)
	t.records = append(t.records, batch.Records...)
	t.appends++
	return nil
}

func (s *memory) FinishTurn(_ context.Context, finish *protocol.TurnFinish) (*protocol.StartedTurn, error) {
	if s.onFinish != nil {
		if err := s.onFinish(); err != nil {
			return nil, err
		}
	}
	if err := s.store(&finish.TurnAppend); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[finish.TurnID]
	t.finishes = append(t.finishes, finish)
	return nil, nil //nolint:nilnil // nothing follows
}

func (s *memory) ChangeFollowUp(_ context.Context, change *protocol.FollowUpChange) (*protocol.FollowUp, *protocol.StartedTurn, error) {
	item := &protocol.FollowUp{FollowUpID: change.FollowUpID, State: change.State}
	if change.Begin == nil {
		return item, nil, nil
	}
	started, err := s.StartTurn(context.Background(), &protocol.TurnStart{AccountID: change.AccountID, Owner: change.Owner, Begin: change.Begin})
	if err != nil {
		return nil, nil, err
	}
	item.State, item.TurnID = protocol.FollowUpStarted, &started.Spec.TurnID
	return item, &protocol.StartedTurn{Spec: started.Spec, Begin: started.Begin, Epoch: 1}, nil
}

func (s *memory) LoadTurn(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) (*protocol.StoredTurn, error) {
	if s.onLoad != nil {
		s.onLoad()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damaged != nil {
		return nil, s.damaged
	}
	return s.stored(turn), nil
}

func (s *memory) MendTurn(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) (*protocol.StoredTurn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored(turn), nil
}

func (s *memory) stored(turn protocol.TurnID) *protocol.StoredTurn {
	t := s.turns[turn]
	return &protocol.StoredTurn{Spec: t.spec, Head: t.head(), Frames: append([]byte{}, t.frames...), Records: append([]protocol.TurnRecord{}, t.records...)}
}

func (t *memoryTurn) head() protocol.TurnHead {
	return protocol.TurnHead{State: t.state, Accepts: t.accepts, Owner: t.owner, Epoch: t.epoch, LastSequence: t.last}
}

func (s *memory) History(_ context.Context, _ protocol.AccountID, _ protocol.ConversationID, _ protocol.BranchID, _ protocol.MessageID,
	maxMessages, maxBytes int,
) ([]protocol.HistoryMessage, bool, error) {
	s.mu.Lock()
	s.asked = append(s.asked, historyLimits{maxMessages, maxBytes})
	s.mu.Unlock()
	if s.onRead != nil {
		if err := s.onRead(); err != nil {
			return nil, false, err
		}
	}
	if s.history != nil {
		return s.history, true, nil
	}
	return []protocol.HistoryMessage{{Role: "user", Parts: []protocol.Part{{Type: protocol.PartText, Text: "hello"}}}}, false, nil
}

func (s *memory) TurnHead(_ context.Context, account protocol.AccountID, turn protocol.TurnID) (protocol.TurnHead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t == nil || t.spec.AccountID != account {
		return protocol.TurnHead{}, &protocol.Error{Code: protocol.CodeNotFound}
	}
	return t.head(), nil
}

func (s *memory) TurnFrames(_ context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, _ int) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t == nil || t.spec.AccountID != account {
		return nil, after, nil
	}
	return protocol.SkipFrames(append([]byte{}, t.frames...), after), max(after, t.last), nil
}

func (s *memory) TurnRecord(_ context.Context, _ protocol.AccountID, turn protocol.TurnID, kind, key string) (*protocol.TurnRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range s.turns[turn].records {
		if record.Kind == kind && record.Key == key {
			return &record, nil
		}
	}
	return nil, nil //nolint:nilnil // none
}

func (s *memory) Register(_ context.Context, node protocol.NodeID, _ string, gone *protocol.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[node] = &memoryNode{}
	if gone != nil && s.nodes[*gone] != nil {
		s.nodes[*gone].dead = true
	}
	return nil
}

func (s *memory) Renew(_ context.Context, node protocol.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[node] == nil || s.nodes[node].dead {
		return protocol.ErrFenced
	}
	s.nodes[node].renewals++
	return nil
}

func (s *memory) Renewals(context.Context) (map[protocol.NodeID]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[protocol.NodeID]int64{}
	for id, node := range s.nodes {
		if !node.dead {
			all[id] = node.renewals
		}
	}
	return all, nil
}

func (s *memory) Bury(_ context.Context, node protocol.NodeID, seen int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[node]
	if n == nil || n.dead || n.renewals != seen {
		return false, nil
	}
	n.dead = true
	return true, nil
}

func (s *memory) ClaimOrphans(_ context.Context, node protocol.NodeID, limit int) ([]protocol.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if me := s.nodes[node]; me == nil || me.dead || me.draining {
		return nil, nil
	}
	var claims []protocol.Claim
	for _, t := range s.turns {
		if len(claims) == limit || t.state.Terminal() || t.owner != nil && s.nodes[*t.owner] != nil && !s.nodes[*t.owner].dead {
			continue
		}
		owner := node
		t.owner = &owner
		t.epoch++
		claims = append(claims, protocol.Claim{AccountID: t.spec.AccountID, TurnID: t.spec.TurnID, Epoch: t.epoch, Cause: "node_lost", Adoptions: int(t.epoch) - 1})
	}
	return claims, nil
}

func (s *memory) OwnTurns(_ context.Context, node protocol.NodeID) ([]protocol.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own []protocol.Claim
	for _, t := range s.turns {
		if t.owner != nil && *t.owner == node && !t.state.Terminal() {
			own = append(own, protocol.Claim{AccountID: t.spec.AccountID, TurnID: t.spec.TurnID, Epoch: t.epoch})
		}
	}
	return own, nil
}

// taken counts the turns that were taken over.
func (s *memory) taken() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.turns {
		if t.epoch > 1 {
			n++
		}
	}
	return n
}

func (s *memory) ReclaimTurn(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (protocol.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t.owner == nil || *t.owner != node || t.epoch != epoch || t.state.Terminal() {
		return protocol.Claim{}, protocol.ErrFenced
	}
	t.epoch++
	return protocol.Claim{AccountID: account, TurnID: turn, Epoch: t.epoch, Cause: "actor_lost", Adoptions: int(t.epoch) - 1}, nil
}

func (s *memory) SeizeTurn(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (protocol.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t == nil || t.spec.AccountID != account || t.state.Terminal() {
		return protocol.Claim{}, &protocol.Error{Code: protocol.CodeNotFound}
	}
	t.owner = &node
	t.epoch++
	return protocol.Claim{AccountID: account, TurnID: turn, Epoch: t.epoch, Cause: causeOperator, Adoptions: int(t.epoch) - 1}, nil
}

func (s *memory) Drain(_ context.Context, node protocol.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[node].draining = true
	return nil
}

func (s *memory) Release(_ context.Context, node protocol.NodeID) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	released := 0
	for _, t := range s.turns {
		if t.owner != nil && *t.owner == node && !t.state.Terminal() {
			t.owner = nil
			released++
		}
	}
	return released, nil
}

func (s *memory) Leave(_ context.Context, node protocol.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
	return nil
}

func (s *memory) StandingQueues(context.Context, protocol.NodeID, int, func(*protocol.TurnSpec) (protocol.TurnBegin, error)) ([]protocol.StartedTurn, error) {
	return nil, nil
}

// script is a model whose every call is played by a function.
type script struct {
	mu        sync.Mutex
	requests  []ModelRequest
	continues bool
	play      func(ctx context.Context, call int, request ModelRequest, emit func(ModelChunk) error) error
}

func (s *script) Stream(ctx context.Context, request ModelRequest, emit func(ModelChunk) error) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	call := len(s.requests)
	s.mu.Unlock()
	return s.play(ctx, call, request, emit)
}

func (s *script) Continues() bool             { return s.continues }
func (s *script) Ready(context.Context) error { return nil }
func (s *script) Family() string              { return "script" }

// saying is a script that says the same text in every call.
func saying(pieces ...string) *script {
	return &script{play: func(_ context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		for _, piece := range pieces {
			if err := emit(ModelChunk{Kind: ChunkText, Text: piece}); err != nil {
				return err
			}
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
	}}
}
