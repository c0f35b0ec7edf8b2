package actorstest

import (
	"context"
	"sync"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// Memory implements the interfaces of stores of package turn, and node.Directory, without a database. Its hooks inject faults. Any
// goroutine may call its methods.
type Memory struct {
	Directory

	Mu          sync.Mutex
	Turns       map[protocol.TurnID]*MemoryTurn // guarded by Mu
	Interrupted *protocol.TurnID                // the turn that PromoteFollowUp interrupts
	LoadError   error                           // the result of LoadTurn for every turn; RepairTurn still succeeds
	Stalled     int                             // queues that StartStalledQueues starts
	Queued      int                             // follow-ups, of which the end of a completed turn starts one
	QueueChecks int                             // calls of StartStalledQueues
	Messages    []turnlog.HistoryMessage        // nil: a message of the user
	// OnAppend, when set, handles a batch: it calls store to store it and done to report the result.
	OnAppend func(batch *turnlog.Append, store func() error, done func(error))
	OnFinish func() error   // called by FinishTurn, which returns its error and then stores nothing
	OnRead   func() error   // called by History, which returns its error
	OnLoad   func()         // called before LoadTurn reads a turn
	Appends  sync.WaitGroup // that are being stored
}

// MemoryTurn is a turn in a Memory. Memory.Mu guards its fields.
type MemoryTurn struct {
	Spec     *turnlog.Spec
	Owner    *protocol.NodeID
	Epoch    int32
	Drains   int
	State    protocol.TurnState
	Accepts  bool
	Last     int64
	Frames   []byte
	Appends  int
	Records  []turnlog.Record
	Finishes []*turnlog.Finish
	Parked   time.Time // until then it waits for an approval; zero: it does not
}

// Adoptions returns the number of claims other than those after a drain.
func (t *MemoryTurn) Adoptions() int { return int(t.Epoch) - 1 - t.Drains }

// NewSpec returns the specification of a turn that continues a conversation.
func NewSpec() *turnlog.Spec {
	parent := protocol.NewMessageID()
	return &turnlog.Spec{
		AccountID: protocol.NewAccountID(), TurnID: protocol.NewTurnID(), ConversationID: protocol.NewConversationID(),
		BranchID: protocol.NewBranchID(), UserMessageID: protocol.NewMessageID(), AssistantMessageID: protocol.NewMessageID(),
		ParentMessageID: &parent, Requested: protocol.ProfileAuto, CreatedAt: time.Now(),
	}
}

// NewMemory returns a store without turns.
func NewMemory() *Memory {
	return &Memory{Turns: map[protocol.TurnID]*MemoryTurn{}}
}

// StartTurn implements turn.Store.
func (s *Memory) StartTurn(_ context.Context, start *turnlog.Start, on turnlog.Runner) (*turnlog.StartResult, error) {
	spec := NewSpec()
	spec.AccountID, spec.Input, spec.Requested, spec.CreatedAt = start.AccountID, start.Input, protocol.ProfileBalanced, time.Now()
	begin, err := on.Begin(spec)
	if err != nil {
		return nil, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	owner := on.NodeID
	s.Turns[spec.TurnID] = &MemoryTurn{
		Spec: spec, Owner: &owner, Epoch: 1, State: begin.State, Accepts: begin.Accepts, Last: begin.Last, Frames: begin.Frames,
	}
	return &turnlog.StartResult{Spec: spec, Begin: begin}, nil
}

// Append implements turn.Store.
func (s *Memory) Append(batch *turnlog.Append, done func(error)) {
	store := func() error { return s.store(batch) }
	if s.OnAppend != nil {
		s.OnAppend(batch, store, done)
		return
	}
	s.Appends.Add(1)
	go func() {
		defer s.Appends.Done()
		done(store())
	}()
}

func (s *Memory) store(batch *turnlog.Append) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	t := s.Turns[batch.TurnID]
	switch owns := t.Owner != nil && *t.Owner == batch.Owner && t.Epoch == batch.Epoch; {
	case owns && batch.Last <= t.Last: // a repeat
		return nil
	case !owns || t.State.Terminal() || batch.First != t.Last+1:
		return ownership.ErrFenced
	}
	t.Last, t.State, t.Accepts = batch.Last, batch.State, batch.Accepts
	t.Frames = append(t.Frames, batch.Frames...)
	t.Records = append(t.Records, batch.Records...)
	t.Appends++
	return nil
}

// FinishTurn implements turn.Store.
func (s *Memory) FinishTurn(ctx context.Context, finish *turnlog.Finish, on turnlog.Runner) (*turnlog.Started, error) {
	if s.OnFinish != nil {
		if err := s.OnFinish(); err != nil {
			return nil, err
		}
	}
	if err := s.store(&finish.Append); err != nil {
		return nil, err
	}
	s.Mu.Lock()
	t := s.Turns[finish.TurnID]
	t.Finishes = append(t.Finishes, finish)
	next := s.Queued > 0 && !finish.PauseQueue
	if next {
		s.Queued--
	}
	s.Mu.Unlock()
	if !next {
		return nil, nil // no next turn was started
	}
	return s.startNext(ctx, finish.AccountID, on)
}

// startNext stores a turn of a queue.
func (s *Memory) startNext(ctx context.Context, account protocol.AccountID, on turnlog.Runner) (*turnlog.Started, error) {
	started, err := s.StartTurn(ctx, &turnlog.Start{AccountID: account, Input: "next"}, on)
	if err != nil {
		return nil, err
	}
	return &turnlog.Started{Spec: started.Spec, Begin: started.Begin, Epoch: 1}, nil
}

// ChangeFollowUp implements turn.FollowUpStore.
func (s *Memory) ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange, on turnlog.Runner) (*protocol.FollowUp, *turnlog.Started, error) {
	item := &protocol.FollowUp{FollowUpID: change.FollowUpID, State: change.State}
	if on.Begin == nil {
		return item, nil, nil
	}
	started, err := s.startNext(ctx, change.AccountID, on)
	if err != nil {
		return nil, nil, err
	}
	item.State, item.TurnID = protocol.FollowUpStarted, &started.Spec.TurnID
	return item, started, nil
}

// CreateFollowUp implements turn.FollowUpStore.
func (s *Memory) CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp, on turnlog.Runner) (*protocol.FollowUp, *turnlog.Started, error) {
	change := &turnlog.FollowUpChange{Queue: f.Queue, FollowUpID: protocol.NewFollowUpID()}
	change.State = protocol.FollowUpQueued
	return s.ChangeFollowUp(ctx, change, on)
}

// PromoteFollowUp returns s.Interrupted as the turn to cancel. If there is none, it starts the follow-up.
func (s *Memory) PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion, on turnlog.Runner) (
	*protocol.FollowUp, *protocol.TurnID, *turnlog.Started, error,
) {
	if s.Interrupted != nil && promotion.Interrupt {
		return &protocol.FollowUp{FollowUpID: promotion.FollowUpID, State: protocol.FollowUpQueued}, s.Interrupted, nil, nil
	}
	item, started, err := s.ChangeFollowUp(ctx, &turnlog.FollowUpChange{Queue: promotion.Queue, FollowUpID: promotion.FollowUpID}, on)
	return item, nil, started, err
}

// LoadTurn implements turn.Store.
func (s *Memory) LoadTurn(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error) {
	if s.OnLoad != nil {
		s.OnLoad()
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.LoadError != nil {
		return nil, s.LoadError
	}
	return s.stored(turn), nil
}

// RepairTurn implements turn.Store.
func (s *Memory) RepairTurn(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.stored(turn), nil
}

func (s *Memory) stored(turn protocol.TurnID) *turnlog.Stored {
	t := s.Turns[turn]
	return &turnlog.Stored{Spec: t.Spec, Head: t.Head(), Frames: append([]byte{}, t.Frames...), Records: append([]turnlog.Record{}, t.Records...)}
}

// Head returns the head of the turn.
func (t *MemoryTurn) Head() turnlog.Head {
	return turnlog.Head{State: t.State, Accepts: t.Accepts, Owner: t.Owner, Epoch: t.Epoch, LastSequence: t.Last, Parked: !t.Parked.IsZero()}
}

// History implements prompt.Conversations.
func (s *Memory) History(context.Context, protocol.AccountID, protocol.ConversationID, protocol.BranchID, protocol.MessageID, int, int) ([]turnlog.HistoryMessage, bool, error) {
	if s.OnRead != nil {
		if err := s.OnRead(); err != nil {
			return nil, false, err
		}
	}
	if s.Messages != nil {
		return s.Messages, true, nil
	}
	return []turnlog.HistoryMessage{{Role: "user", Parts: []protocol.Part{{Type: protocol.PartText, Text: "hello"}}}}, false, nil
}

// Instructions implements prompt.Conversations.
func (s *Memory) Instructions(context.Context, *turnlog.Spec) (*turnlog.Instructions, error) {
	return &turnlog.Instructions{}, nil
}

// TurnHead implements turn.Log.
func (s *Memory) TurnHead(_ context.Context, account protocol.AccountID, turn protocol.TurnID) (turnlog.Head, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	t := s.Turns[turn]
	if t == nil || t.Spec.AccountID != account {
		return turnlog.Head{}, &protocol.Error{Code: protocol.CodeNotFound}
	}
	head := t.Head()
	if t.Owner != nil {
		lease, alive := s.Lease(*t.Owner)
		head.OwnerDead, head.OwnerAddress = !alive, lease.Address
	}
	return head, nil
}

// TurnFrames implements turn.Log.
func (s *Memory) TurnFrames(_ context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, _ int) ([]byte, int64, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	t := s.Turns[turn]
	if t == nil || t.Spec.AccountID != account {
		return nil, after, nil
	}
	return protocol.SkipFrames(append([]byte{}, t.Frames...), after), max(after, t.Last), nil
}

// TurnRecord implements turn.Log.
func (s *Memory) TurnRecord(_ context.Context, _ protocol.AccountID, turn protocol.TurnID, kind, key string) (*turnlog.Record, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, record := range s.Turns[turn].Records {
		if record.Kind == kind && record.Key == key {
			return &record, nil
		}
	}
	return nil, nil // there is no such record
}

// ClaimDue implements turn.Ownership.
func (s *Memory) ClaimDue(_ context.Context, node protocol.NodeID, limit int) ([]turnlog.Claim, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if me, found := s.Lease(node); !found || me.Draining {
		return nil, nil
	}
	var claims []turnlog.Claim
	for _, t := range s.Turns {
		if len(claims) == limit || t.State.Terminal() {
			continue
		}
		if t.Owner != nil {
			if _, alive := s.Lease(*t.Owner); alive {
				continue
			}
		}
		cause := protocol.CauseNodeLost
		switch {
		case t.Owner != nil:
		case t.Parked.After(time.Now()):
			continue
		case !t.Parked.IsZero():
			cause = turnlog.CauseWake
			t.Drains++
		default:
			cause = protocol.CauseDrain
			t.Drains++
		}
		t.Parked = time.Time{}
		owner := node
		t.Owner = &owner
		t.Epoch++
		claims = append(claims, turnlog.Claim{AccountID: t.Spec.AccountID, TurnID: t.Spec.TurnID, Epoch: t.Epoch, Cause: cause, Adoptions: t.Adoptions()})
	}
	return claims, nil
}

// Owned implements turn.Ownership.
func (s *Memory) Owned(_ context.Context, node protocol.NodeID) ([]turnlog.Claim, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var own []turnlog.Claim
	for _, t := range s.Turns {
		if t.Owner != nil && *t.Owner == node && !t.State.Terminal() {
			own = append(own, turnlog.Claim{AccountID: t.Spec.AccountID, TurnID: t.Spec.TurnID, Epoch: t.Epoch})
		}
	}
	return own, nil
}

// Taken returns the number of turns that were taken over at least once.
func (s *Memory) Taken() (n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, t := range s.Turns {
		if t.Epoch > 1 {
			n++
		}
	}
	return n
}

// ClaimLost implements turn.Ownership.
func (s *Memory) ClaimLost(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (turnlog.Claim, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	t := s.Turns[turn]
	if t.Owner == nil || *t.Owner != node || t.Epoch != epoch || t.State.Terminal() {
		return turnlog.Claim{}, ownership.ErrFenced
	}
	t.Epoch++
	return turnlog.Claim{AccountID: account, TurnID: turn, Epoch: t.Epoch, Cause: "actor_lost", Adoptions: t.Adoptions()}, nil
}

// Park implements turn.Ownership.
func (s *Memory) Park(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32, sequence int64, until time.Time) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	t := s.Turns[turn]
	owns := t.Owner != nil && *t.Owner == node || t.Owner == nil && !t.Parked.IsZero()
	if !owns || t.Spec.AccountID != account || t.Epoch != epoch || t.Last != sequence || t.State != protocol.TurnRequiresAction {
		return ownership.ErrFenced
	}
	t.Owner, t.Parked = nil, until
	return nil
}

// ClaimParked implements turn.Ownership.
func (s *Memory) ClaimParked(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	t := s.Turns[turn]
	me, found := s.Lease(node)
	if t == nil || t.Spec.AccountID != account || t.Owner != nil || t.Parked.IsZero() || t.State.Terminal() || !found || me.Draining {
		return turnlog.Claim{}, ownership.ErrFenced
	}
	t.Owner, t.Parked, t.Drains = &node, time.Time{}, t.Drains+1
	t.Epoch++
	return turnlog.Claim{AccountID: account, TurnID: turn, Epoch: t.Epoch, Cause: turnlog.CauseWake, Adoptions: t.Adoptions()}, nil
}

// Grants implements turn.Approvals.
func (s *Memory) Grants(context.Context, protocol.AccountID, protocol.ConversationID) ([]turnlog.Grant, error) {
	return nil, nil
}

// ClaimAny implements turn.Ownership.
func (s *Memory) ClaimAny(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	t := s.Turns[turn]
	if t == nil || t.Spec.AccountID != account || t.State.Terminal() {
		return turnlog.Claim{}, &protocol.Error{Code: protocol.CodeNotFound}
	}
	t.Owner = &node
	t.Epoch++
	return turnlog.Claim{AccountID: account, TurnID: turn, Epoch: t.Epoch, Cause: turnlog.CauseOperator, Adoptions: t.Adoptions()}, nil
}

// Release implements turn.Ownership.
func (s *Memory) Release(_ context.Context, node protocol.NodeID) (int, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	released := 0
	for _, t := range s.Turns {
		if t.Owner != nil && *t.Owner == node && !t.State.Terminal() {
			t.Owner = nil
			released++
		}
	}
	return released, nil
}

// StartStalledQueues implements turn.FollowUpStore.
func (s *Memory) StartStalledQueues(ctx context.Context, on turnlog.Runner, limit int) (all []turnlog.Started, _ error) {
	s.Mu.Lock()
	s.QueueChecks++
	count := min(limit, s.Stalled)
	s.Stalled -= count
	s.Mu.Unlock()
	for range count {
		started, err := s.startNext(ctx, protocol.NewAccountID(), on)
		if err != nil {
			return all, err
		}
		all = append(all, *started)
	}
	return all, nil
}
