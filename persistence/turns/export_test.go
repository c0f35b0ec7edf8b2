package turns

import (
	"context"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/recent"
	"turnstone/protocol/turnlog"
)

// ReadEventsSQL reads the events after a sequence from the log of a live turn.
const ReadEventsSQL = readEventsSQL

// MaintainPartitions runs the job that creates and drops partitions.
func MaintainPartitions(ctx context.Context, db *pg.DB) error { return turnPartitions(ctx, db) }

// Started is the outcome of one start.
type Started struct {
	Result *turnlog.StartResult
	Err    error
	Alone  bool // it could not start with the group
}

// Request is a start and the node that is to run the turn.
type Request struct {
	Start *turnlog.Start
	On    turnlog.Runner
}

// StartTogether starts turns as one group, and then one by one those that could not start with the group.
func (t *Store) StartTogether(ctx context.Context, starts ...Request) []Started {
	group := make([]*sharedStart, len(starts))
	for i, start := range starts {
		group[i] = &sharedStart{request: request{start.Start, start.On}, ctx: ctx, taken: make(chan struct{}), done: make(chan struct{})}
	}
	t.runStartGroup(group)
	started := make([]Started, len(starts))
	for i, s := range group {
		<-s.done
		started[i] = Started{s.result, s.err, s.alone}
		if s.alone {
			started[i].Result, started[i].Err = t.startAlone(ctx, s.request)
		}
	}
	return started
}

// ForgetHistories makes the next reader of a history read it from the database.
func (t *Store) ForgetHistories() {
	t.histories = recent.New[historyKey, history](maxHistories, historyIdle)
}

// KeptHistory returns a function that sets the history of a conversation that is kept to the present one.
func (t *Store) KeptHistory(account protocol.AccountID, conversation protocol.ConversationID) (restore func()) {
	key := historyKey{account, conversation}
	kept, found := t.histories.Get(key)
	if !found {
		panic("no history is kept")
	}
	return func() { t.histories.Put(key, kept, 1) }
}
