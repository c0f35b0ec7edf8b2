package turn

import (
	"context"
	"sync"
	"time"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// memory implements Store, FollowUpStore, Log, Ownership and node.Directory without a database, with hooks to inject faults.
type memory struct {
	actorstest.Directory

	mu          sync.Mutex
	turns       map[protocol.TurnID]*memoryTurn
	interrupted *protocol.TurnID // the turn that PromoteFollowUp interrupts
	loadError   error            // the result of LoadTurn for every turn; RepairTurn still succeeds
	stalled     int              // queues that StartStalledQueues starts
	queueChecks int              // calls of StartStalledQueues
	history     []turnlog.HistoryMessage
	// onAppend, when set, handles a batch: it calls store to store it and done to report the result.
	onAppend func(batch *turnlog.Append, store func() error, done func(error))
	onFinish func() error // called by FinishTurn, which returns its error and then stores nothing
	onRead   func() error // called by History, which returns its error
	onLoad   func()       // called before LoadTurn reads a turn
	wg       sync.WaitGroup
}

type memoryTurn struct {
	spec     *turnlog.Spec
	owner    *protocol.NodeID
	epoch    int32
	drains   int
	state    protocol.TurnState
	accepts  bool
	last     int64
	frames   []byte
	appends  int
	records  []turnlog.Record
	finishes []*turnlog.Finish
	parked   time.Time // until then it waits for an approval; zero: it does not
}

// adoptions returns the number of claims other than those after a drain.
func (t *memoryTurn) adoptions() int { return int(t.epoch) - 1 - t.drains }

// newSpec returns the specification of a turn that continues a conversation.
func newSpec() *turnlog.Spec {
	parent := protocol.NewMessageID()
	return &turnlog.Spec{
		AccountID: protocol.NewAccountID(), TurnID: protocol.NewTurnID(), ConversationID: protocol.NewConversationID(),
		BranchID: protocol.NewBranchID(), UserMessageID: protocol.NewMessageID(), AssistantMessageID: protocol.NewMessageID(),
		ParentMessageID: &parent, Requested: protocol.ProfileAuto, CreatedAt: time.Now(),
	}
}

func newMemory() *memory {
	return &memory{turns: map[protocol.TurnID]*memoryTurn{}}
}

func (s *memory) StartTurn(_ context.Context, start *turnlog.Start, on turnlog.Runner) (*turnlog.StartResult, error) {
	spec := newSpec()
	spec.AccountID, spec.Input, spec.Requested, spec.CreatedAt = start.AccountID, start.Input, protocol.ProfileBalanced, time.Now()
	begin, err := on.Begin(spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := on.NodeID
	s.turns[spec.TurnID] = &memoryTurn{
		spec: spec, owner: &owner, epoch: 1, state: begin.State, accepts: begin.Accepts, last: begin.Last, frames: begin.Frames,
	}
	return &turnlog.StartResult{Spec: spec, Begin: begin}, nil
}

func (s *memory) Append(batch *turnlog.Append, done func(error)) {
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

func (s *memory) store(batch *turnlog.Append) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[batch.TurnID]
	switch owns := t.owner != nil && *t.owner == batch.Owner && t.epoch == batch.Epoch; {
	case owns && batch.Last <= t.last: // a repeat
		return nil
	case !owns || t.state.Terminal() || batch.First != t.last+1:
		return turnlog.ErrFenced
	}
	t.last, t.state, t.accepts = batch.Last, batch.State, batch.Accepts
	t.frames = append(t.frames, batch.Frames...)
	t.records = append(t.records, batch.Records...)
	t.appends++
	return nil
}

func (s *memory) FinishTurn(_ context.Context, finish *turnlog.Finish, _ turnlog.Runner) (*turnlog.Started, error) {
	if s.onFinish != nil {
		if err := s.onFinish(); err != nil {
			return nil, err
		}
	}
	if err := s.store(&finish.Append); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[finish.TurnID]
	t.finishes = append(t.finishes, finish)
	return nil, nil //nolint:nilnil // no next turn was started
}

func (s *memory) ChangeFollowUp(_ context.Context, change *turnlog.FollowUpChange, on turnlog.Runner) (*protocol.FollowUp, *turnlog.Started, error) {
	item := &protocol.FollowUp{FollowUpID: change.FollowUpID, State: change.State}
	if on.Begin == nil {
		return item, nil, nil
	}
	started, err := s.StartTurn(context.Background(), &turnlog.Start{AccountID: change.AccountID}, on)
	if err != nil {
		return nil, nil, err
	}
	item.State, item.TurnID = protocol.FollowUpStarted, &started.Spec.TurnID
	return item, &turnlog.Started{Spec: started.Spec, Begin: started.Begin, Epoch: 1}, nil
}

func (s *memory) CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp, on turnlog.Runner) (*protocol.FollowUp, *turnlog.Started, error) {
	return s.ChangeFollowUp(ctx, &turnlog.FollowUpChange{Queue: f.Queue, FollowUpID: protocol.NewFollowUpID(), State: protocol.FollowUpQueued}, on)
}

// PromoteFollowUp returns s.interrupted as the turn to cancel. If there is none, it starts the follow-up.
func (s *memory) PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion, on turnlog.Runner) (
	*protocol.FollowUp, *protocol.TurnID, *turnlog.Started, error,
) {
	if s.interrupted != nil && promotion.Interrupt {
		return &protocol.FollowUp{FollowUpID: promotion.FollowUpID, State: protocol.FollowUpQueued}, s.interrupted, nil, nil
	}
	item, started, err := s.ChangeFollowUp(ctx, &turnlog.FollowUpChange{Queue: promotion.Queue, FollowUpID: promotion.FollowUpID}, on)
	return item, nil, started, err
}

func (s *memory) LoadTurn(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error) {
	if s.onLoad != nil {
		s.onLoad()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loadError != nil {
		return nil, s.loadError
	}
	return s.stored(turn), nil
}

func (s *memory) RepairTurn(_ context.Context, _ protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored(turn), nil
}

func (s *memory) stored(turn protocol.TurnID) *turnlog.Stored {
	t := s.turns[turn]
	return &turnlog.Stored{Spec: t.spec, Head: t.head(), Frames: append([]byte{}, t.frames...), Records: append([]turnlog.Record{}, t.records...)}
}

func (t *memoryTurn) head() turnlog.Head {
	return turnlog.Head{State: t.state, Accepts: t.accepts, Owner: t.owner, Epoch: t.epoch, LastSequence: t.last, Parked: !t.parked.IsZero()}
}

func (s *memory) History(context.Context, protocol.AccountID, protocol.ConversationID, protocol.BranchID, protocol.MessageID, int, int) ([]turnlog.HistoryMessage, bool, error) {
	if s.onRead != nil {
		if err := s.onRead(); err != nil {
			return nil, false, err
		}
	}
	if s.history != nil {
		return s.history, true, nil
	}
	return []turnlog.HistoryMessage{{Role: "user", Parts: []protocol.Part{{Type: protocol.PartText, Text: "hello"}}}}, false, nil
}

func (s *memory) Instructions(context.Context, *turnlog.Spec) (*turnlog.Instructions, error) {
	return &turnlog.Instructions{}, nil
}

func (s *memory) TurnHead(_ context.Context, account protocol.AccountID, turn protocol.TurnID) (turnlog.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t == nil || t.spec.AccountID != account {
		return turnlog.Head{}, &protocol.Error{Code: protocol.CodeNotFound}
	}
	head := t.head()
	if t.owner != nil {
		lease, lives := s.Lease(*t.owner)
		head.OwnerDead, head.OwnerAddress = !lives, lease.Address
	}
	return head, nil
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

func (s *memory) TurnRecord(_ context.Context, _ protocol.AccountID, turn protocol.TurnID, kind, key string) (*turnlog.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range s.turns[turn].records {
		if record.Kind == kind && record.Key == key {
			return &record, nil
		}
	}
	return nil, nil //nolint:nilnil // there is no such record
}

func (s *memory) ClaimOrphans(_ context.Context, node protocol.NodeID, limit int) ([]turnlog.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if me, found := s.Lease(node); !found || me.Draining {
		return nil, nil
	}
	var claims []turnlog.Claim
	for _, t := range s.turns {
		if len(claims) == limit || t.state.Terminal() {
			continue
		}
		if t.owner != nil {
			if _, lives := s.Lease(*t.owner); lives {
				continue
			}
		}
		cause := protocol.CauseNodeLost
		switch {
		case t.owner != nil:
		case t.parked.After(time.Now()):
			continue
		case !t.parked.IsZero():
			cause = turnlog.CauseWake
			t.drains++
		default:
			cause = protocol.CauseDrain
			t.drains++
		}
		t.parked = time.Time{}
		owner := node
		t.owner = &owner
		t.epoch++
		claims = append(claims, turnlog.Claim{AccountID: t.spec.AccountID, TurnID: t.spec.TurnID, Epoch: t.epoch, Cause: cause, Adoptions: t.adoptions()})
	}
	return claims, nil
}

func (s *memory) OwnTurns(_ context.Context, node protocol.NodeID) ([]turnlog.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own []turnlog.Claim
	for _, t := range s.turns {
		if t.owner != nil && *t.owner == node && !t.state.Terminal() {
			own = append(own, turnlog.Claim{AccountID: t.spec.AccountID, TurnID: t.spec.TurnID, Epoch: t.epoch})
		}
	}
	return own, nil
}

// taken returns the number of turns that were taken over at least once.
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

func (s *memory) ReclaimTurn(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (turnlog.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t.owner == nil || *t.owner != node || t.epoch != epoch || t.state.Terminal() {
		return turnlog.Claim{}, turnlog.ErrFenced
	}
	t.epoch++
	return turnlog.Claim{AccountID: account, TurnID: turn, Epoch: t.epoch, Cause: "actor_lost", Adoptions: t.adoptions()}, nil
}

func (s *memory) Park(_ context.Context, node protocol.NodeID, _ protocol.AccountID, turn protocol.TurnID, epoch int32, sequence int64, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t.owner == nil || *t.owner != node || t.epoch != epoch || t.last != sequence || t.state != protocol.TurnRequiresAction {
		return turnlog.ErrFenced
	}
	t.owner, t.parked = nil, until
	return nil
}

func (s *memory) WakeTurn(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t == nil || t.owner != nil || t.parked.IsZero() || t.state.Terminal() {
		return turnlog.Claim{}, turnlog.ErrFenced
	}
	t.owner, t.parked, t.drains = &node, time.Time{}, t.drains+1
	t.epoch++
	return turnlog.Claim{AccountID: account, TurnID: turn, Epoch: t.epoch, Cause: turnlog.CauseWake, Adoptions: t.adoptions()}, nil
}

// Grants implements Approvals.
func (s *memory) Grants(context.Context, protocol.AccountID, protocol.ConversationID) ([]turnlog.Grant, error) {
	return nil, nil
}

func (s *memory) SeizeTurn(_ context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[turn]
	if t == nil || t.spec.AccountID != account || t.state.Terminal() {
		return turnlog.Claim{}, &protocol.Error{Code: protocol.CodeNotFound}
	}
	t.owner = &node
	t.epoch++
	return turnlog.Claim{AccountID: account, TurnID: turn, Epoch: t.epoch, Cause: turnlog.CauseOperator, Adoptions: t.adoptions()}, nil
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

func (s *memory) StartStalledQueues(ctx context.Context, on turnlog.Runner, limit int) (all []turnlog.Started, _ error) {
	s.mu.Lock()
	s.queueChecks++
	count := min(limit, s.stalled)
	s.stalled -= count
	s.mu.Unlock()
	for range count {
		started, err := s.StartTurn(ctx, &turnlog.Start{AccountID: protocol.NewAccountID(), Input: "next"}, on)
		if err != nil {
			return all, err
		}
		all = append(all, turnlog.Started{Spec: started.Spec, Begin: started.Begin, Epoch: 1})
	}
	return all, nil
}

// script is a model whose calls are implemented by the function play.
type script struct {
	mu        sync.Mutex
	requests  []llm.Request
	continues bool
	play      func(ctx context.Context, call int, request llm.Request, emit func(llm.Chunk) error) error
}

func (s *script) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	call := len(s.requests)
	s.mu.Unlock()
	return s.play(ctx, call, request, emit)
}

func (s *script) Continues() bool             { return s.continues }
func (s *script) Ready(context.Context) error { return nil }
func (s *script) Family() string              { return "script" }

// scriptedAnswer returns a model that answers every call with the same pieces of text.
func scriptedAnswer(pieces ...string) *script {
	return &script{play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		for _, piece := range pieces {
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: piece}); err != nil {
				return err
			}
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}
}
