package turn

import (
	"context"
	"time"

	"turnstone/actors/modelinput"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Store stores turns durably. Package persistence implements it on Postgres. Its methods may be called from any goroutine.
//
// Every method that writes checks ownership itself. An error with a meaning for the caller is a *protocol.Error. After
// any error other than ownership.ErrFenced, the operation either had no effect or its outcome was resolved; a method
// that cannot determine the outcome returns protocol.CodeUnavailable.
type Store interface {
	// StartTurn starts a turn that the node on runs, in one transaction. While another turn of the conversation is live, it does what
	// start.IfBusy specifies instead.
	StartTurn(ctx context.Context, start *turnlog.Start, on turnlog.Runner) (*turnlog.StartResult, error)
	// Append passes a batch to the journal and never blocks. done is called once, from a journal goroutine, with nil,
	// with ownership.ErrFenced, or with the error that makes the batch itself impossible to store. Database outages are
	// not reported: the journal retries the same bytes until they are stored or fenced, or until the journal is closed
	// (protocol.CodeUnavailable). A batch whose sequences its owner has already stored is a repeat: it changes nothing,
	// and done gets nil.
	Append(batch *turnlog.Append, done func(error))
	// FinishTurn stores the last batch, the final message and the changes to the queue, in one transaction, and starts
	// the next turn from the queue, on the node on. It returns nil when it started none.
	FinishTurn(ctx context.Context, finish *turnlog.Finish, on turnlog.Runner) (*turnlog.Started, error)
	// LoadTurn reads everything that a node needs to adopt a turn.
	LoadTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error)
	// RepairTurn reads the readable part of a turn whose log LoadTurn cannot read. The returned frames are contiguous:
	// a missing or damaged event is replaced by one that changes nothing. The replacement is the same in every call and
	// in what FinishTurn stores.
	RepairTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error)
	modelinput.Conversations
}

// FollowUpStore changes the queues of follow-ups. Package persistence/followups implements it on Postgres. A change of a queue is one
// transaction. If the change lets the queue continue and no turn of the conversation is live, the same transaction
// starts the next turn on the node on; started is nil when it started none. Errors are those of a Store.
type FollowUpStore interface {
	// CreateFollowUp adds a follow-up to the end of its queue.
	CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp, on turnlog.Runner) (item *protocol.FollowUp, started *turnlog.Started, err error)
	// ChangeFollowUp edits, holds, releases or cancels a follow-up.
	ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange, on turnlog.Runner) (item *protocol.FollowUp, started *turnlog.Started, err error)
	// PromoteFollowUp moves a follow-up to the front of its queue and releases it. live is the turn that has to be
	// cancelled now, if there is one: at its end the follow-up starts. A repeat has no second effect.
	PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion, on turnlog.Runner) (
		item *protocol.FollowUp, live *protocol.TurnID, started *turnlog.Started, err error)
	// StartStalledQueues starts turns for at most limit stalled queues: those with queued follow-ups but without a live
	// turn.
	StartStalledQueues(ctx context.Context, on turnlog.Runner, limit int) ([]turnlog.Started, error)
}

// Log reads the durable log. Readers and commands use it for a turn that does not run on this node.
type Log interface {
	// TurnHead returns the state and the owner of a turn; protocol.CodeNotFound when the account has no such turn.
	TurnHead(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (turnlog.Head, error)
	// TurnFrames reads committed events after a sequence, one per line, about maxBytes in total. last is the sequence
	// of the last event that was read; it equals after when there are none.
	TurnFrames(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, maxBytes int) (frames []byte, last int64, err error)
	// TurnRecord reads a private record by its key; nil when there is none.
	TurnRecord(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, kind, key string) (*turnlog.Record, error)
}

// Approvals reads the approvals of a conversation. Package persistence/approvals implements it.
type Approvals interface {
	// Grants returns the calls that the user has approved for the rest of a conversation.
	Grants(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) ([]turnlog.Grant, error)
}

// Ownership keeps which node owns which turn. Package persistence/turns implements it on Postgres.
type Ownership interface {
	// ClaimDue claims at most limit unfinished turns that have no owner or a dead one.
	ClaimDue(ctx context.Context, node protocol.NodeID, limit int) ([]turnlog.Claim, error)
	// Owned lists the unfinished turns that this node owns, for comparison with its running actors.
	Owned(ctx context.Context, node protocol.NodeID) ([]turnlog.Claim, error)
	// ClaimLost claims a turn that this node owns already, because its actor is gone; ownership.ErrFenced when the
	// turn has ended or has another owner or epoch.
	ClaimLost(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (turnlog.Claim, error)
	// ClaimAny claims an unfinished turn, whatever its owner.
	ClaimAny(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error)
	// Park removes the owner of a turn that waits for an approval. Until then it is not an orphan; see ClaimParked. The error is
	// ownership.ErrFenced if the turn has another owner or epoch, or if an event follows sequence.
	Park(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32, sequence int64, until time.Time) error
	// ClaimParked claims a turn that was parked; ownership.ErrFenced when it is not parked.
	ClaimParked(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (turnlog.Claim, error)
	// Release removes the owner of the node's unfinished turns, keeps their epochs, and returns the number of these
	// turns.
	Release(ctx context.Context, node protocol.NodeID) (int, error)
}
