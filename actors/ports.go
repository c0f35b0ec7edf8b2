package actors

import (
	"context"
	"encoding/json"
	"time"

	"turnstone/protocol"
)

// TurnStore is the durable side of turns. persistence implements it on Postgres.
//
// Every method that writes checks ownership itself. Errors are *protocol.Error where they mean something; any error
// that is not protocol.ErrFenced leaves the outcome either undone or resolved, never unknown: a method that cannot tell says
// protocol.CodeUnavailable.
type TurnStore interface {
	// StartTurn begins a turn, in one transaction, or does what start.IfBusy says.
	StartTurn(ctx context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error)
	// Append hands a batch to the journal and never blocks; done is called once, from a journal goroutine, with nil,
	// protocol.ErrFenced, or what made the batch itself impossible. Database outages are not reported: the journal repeats the
	// same bytes until they are stored, fenced, or the journal is closed (protocol.CodeUnavailable).
	Append(batch *protocol.TurnAppend, done func(error))
	// FinishTurn stores the last batch and all that ends with a turn, in one transaction, and begins what follows from
	// the queue.
	FinishTurn(ctx context.Context, finish *protocol.TurnFinish) (*protocol.StartedTurn, error)
	// ChangeFollowUp changes an item of a queue, in one transaction, and begins what follows from the queue where nothing
	// is live; started is nil when nothing was begun.
	ChangeFollowUp(ctx context.Context, change *protocol.FollowUpChange) (item *protocol.FollowUp, started *protocol.StartedTurn, err error)
	// LoadTurn reads what adoption needs.
	LoadTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*protocol.StoredTurn, error)
	// MendTurn reads what can be read of a turn whose log cannot be read as it is. Its frames are contiguous: an event that is
	// missing or damaged is replaced by one that changes nothing, the same one in every call and in what FinishTurn keeps.
	MendTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*protocol.StoredTurn, error)
	// History reads the messages of a branch that end with message, oldest first: the newest maxMessages of them, and no
	// more than maxBytes of parts, but always message itself. more reports that older ones were left out. It costs what it
	// returns, however long the conversation is.
	History(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, branch protocol.BranchID,
		message protocol.MessageID, maxMessages, maxBytes int) (messages []protocol.HistoryMessage, more bool, err error)
}

// TurnLog is how readers and commands find a turn that does not live here.
type TurnLog interface {
	// TurnHead tells where a turn stands; protocol.CodeNotFound when the account has none of that name.
	TurnHead(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (protocol.TurnHead, error)
	// TurnFrames reads committed events after a sequence, one a line, about maxBytes of them; last is the sequence of
	// the last one read (after, when there are none).
	TurnFrames(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, after int64, maxBytes int) (frames []byte, last int64, err error)
	// TurnRecord reads a private record by its key; nil when there is none.
	TurnRecord(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, kind, key string) (*protocol.TurnRecord, error)
}

// Directory is the lease of this node and what it may take over.
type Directory interface {
	// Register announces a new node. predecessorGone, from the lock of a data folder, names the node that ran there before
	// and surely does not any more; nil when unknown.
	Register(ctx context.Context, node protocol.NodeID, address string, predecessorGone *protocol.NodeID) error
	// Renew extends the lease; protocol.ErrFenced when the node was declared dead.
	Renew(ctx context.Context, node protocol.NodeID) error
	// Renewals reads the counter of every node that is not dead.
	Renewals(ctx context.Context) (map[protocol.NodeID]int64, error)
	// Bury marks a node dead if its counter still is what was seen.
	Bury(ctx context.Context, node protocol.NodeID, seen int64) (bool, error)
	// ClaimOrphans takes over at most limit unfinished turns whose owner is dead or nobody.
	ClaimOrphans(ctx context.Context, node protocol.NodeID, limit int) ([]protocol.Claim, error)
	// OwnTurns lists the unfinished turns of this node, for the comparison with living actors.
	OwnTurns(ctx context.Context, node protocol.NodeID) ([]protocol.Claim, error)
	// ReclaimTurn raises the epoch of an own turn whose actor is gone.
	ReclaimTurn(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID, epoch int32) (protocol.Claim, error)
	// SeizeTurn takes an unfinished turn from whatever node owns it.
	SeizeTurn(ctx context.Context, node protocol.NodeID, account protocol.AccountID, turn protocol.TurnID) (protocol.Claim, error)
	// Drain stops this node from being given turns.
	Drain(ctx context.Context, node protocol.NodeID) error
	// Release gives unfinished turns back: owner nobody, epoch kept.
	Release(ctx context.Context, node protocol.NodeID) (int, error)
	// Leave removes the node after its turns ended or were released.
	Leave(ctx context.Context, node protocol.NodeID) error
	// StandingQueues begins turns for queues that were left standing, at most limit.
	StandingQueues(ctx context.Context, node protocol.NodeID, limit int, begin func(spec *protocol.TurnSpec) (protocol.TurnBegin, error)) ([]protocol.StartedTurn, error)
}

// Budget bounds the model tokens that an account may use in a day. persistence implements it.
type Budget interface {
	// Check returns protocol.CodeBudgetReached when nothing is left.
	Check(ctx context.Context, account protocol.AccountID) error
	// Reserve sets tokens aside for a model call: most, or what is left if that is at least least; else it returns
	// protocol.CodeBudgetReached.
	Reserve(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, least, most int) (granted int, err error)
	// Settle replaces a reservation by what the call used. A reservation that is never settled expires.
	Settle(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, used int) error
}

// Tool is something a model may call.
type Tool interface {
	// Spec tells the model and the reader what it is.
	Spec() ToolSpec
	// Run does it. ctx ends with the turn or the call's own deadline. The error is shown to the model and the reader:
	// a *ToolFailure carries its code, anything else is reported as "tool_error" without its text.
	Run(ctx context.Context, input json.RawMessage) (output string, err error)
}

// ToolSpec describes a tool.
type ToolSpec struct {
	Name        string
	Kind        string // as ToolStarted.Kind
	Title       string
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the input
	ReadOnly    bool            // may be run again after a crash; with effects it never is
	Timeout     time.Duration
}

// ToolFailure is a tool's failure that may be shown.
type ToolFailure struct{ Code, Detail string }

func (f *ToolFailure) Error() string { return f.Code + ": " + f.Detail }
