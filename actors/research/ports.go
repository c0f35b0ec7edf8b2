package research

import (
	"context"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// Claimed names a task and the epoch of its owner.
type Claimed = researchlog.Claimed

// Store stores tasks durably. Package persistence/research implements it. Its methods may be called from any goroutine.
//
// Every method that writes checks ownership itself. An error with a meaning for the caller is a *protocol.Error. After any error
// other than ownership.ErrFenced, the operation either had no effect or its outcome was resolved; a method that cannot determine the
// outcome returns protocol.CodeUnavailable.
type Store interface {
	// Create stores a new task with its first event, and the response to an idempotent request.
	Create(ctx context.Context, spec *researchlog.Spec, begin *researchlog.Append) (*protocol.ResearchTask, error)
	// Task reads a task; protocol.CodeNotFound if the account has none.
	Task(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error)
	// Frames reads the events of a task after a sequence.
	Frames(ctx context.Context, account protocol.AccountID, id protocol.TaskID, after int64) (frames []byte, last int64, err error)
	// ClaimDue claims at most adopted tasks whose owners have ended, and at most begun tasks that wait for a slot: the oldest ones
	// of accounts that run fewer than protocol.MaxResearchRunning.
	ClaimDue(ctx context.Context, node protocol.NodeID, adopted, begun int) ([]Claimed, error)
	// Owned lists the tasks that a node works on.
	Owned(ctx context.Context, node protocol.NodeID) ([]Claimed, error)
	// ClaimLost claims a task of this node again; ownership.ErrFenced if it has ended or has another owner or epoch. A task that
	// waits for a slot is released instead, also with ownership.ErrFenced: ClaimDue claims it when a node has a slot.
	ClaimLost(ctx context.Context, claim Claimed, node protocol.NodeID) (Claimed, error)
	// ClaimAny makes a node the owner of a task, whatever its owner; researchlog.ErrEnded if the task has ended.
	ClaimAny(ctx context.Context, account protocol.AccountID, id protocol.TaskID, node protocol.NodeID) (Claimed, error)
	// Load reads a claimed task; ownership.ErrFenced as ClaimLost.
	Load(ctx context.Context, claim Claimed, node protocol.NodeID) (*researchlog.Claim, error)
	// Read reads the journal of a task, whatever its state. It gives no ownership.
	Read(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*researchlog.Claim, error)
	// Append stores a batch, which may have no events. Afterwards, a task that waits for a slot or has ended has no owner. To repeat
	// a stored batch has no effect. The error is ownership.ErrFenced if another owner or epoch has the task.
	Append(ctx context.Context, batch *researchlog.Append) error
	// Release makes the tasks of a node free for others. It returns their number.
	Release(ctx context.Context, node protocol.NodeID) (int, error)
	// CheckReport returns an error with a sentence for the user if a report of a size cannot be stored.
	CheckReport(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, bytes int) error
}

// Worker runs the steps of tasks. Its methods may be called from any goroutine; a task runs several steps at once. A step is run
// again, perhaps on another node, if its result was not stored: running it has no effect other than its result, and requests to the
// outside, which only read. Once ctx has ended, Run returns soon.
type Worker interface {
	// Run runs a step. It repeats what may pass for a while; what fails in the end is a result with Failed. The error is that
	// of ctx only: the step then has no result.
	Run(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (*researchlog.Result, error)
}
