// Package failpoint names the steps at which the service is made to fail on purpose, and lets it fail there. A point
// stands before a step:
//
//	if err := failpoint.Before(failpoint.LeaseBeforeRenew); err != nil {
//		return err
//	}
//	err := failpoint.After(failpoint.LeaseBeforeRenew, renew())
//
// What an armed point does is one of
//
//	kill      the process dies before the step, as of kill -9
//	term      the process is told to stop, as of SIGTERM, and the step is done while it does
//	error     the step is not done, and whoever wanted it hears that it failed
//	executed  the step is done, and whoever wanted it hears that it failed
//	sleep     the step is late
//	panic     the goroutine panics before the step
//
// An answer to a client is a step of its own kind, Answer: executed there is an answer that the client never gets.
//
// Hold is no failure: it keeps an answer of the scripted model at one place while a test holds the name of that place, so
// that no test depends on how fast a machine is.
//
// All of this exists in builds with the tag failpoint only. In every other build the functions are empty, are inlined and
// leave nothing behind. The package imports nothing of ours, so that every package may be made to fail.
package failpoint

// Point is the name of a step.
type Point string

// The points. A test of the whole program holds what has to come of each of them, for each way to fail.
const (
	ChatBeforeTurnRow          Point = "chat.before_turn_row"
	ChatAfterTurnRowBefore200  Point = "chat.after_turn_row_before_200"
	TurnBeforeClaim            Point = "turn.before_claim"
	TurnAfterClaim             Point = "turn.after_claim"
	TurnAfterModelFirstByte    Point = "turn.after_model_first_byte" // every piece of the model's counts; the first is hit 1
	DeltaAfterCommitBeforeSend Point = "delta.after_commit_before_send"
	EndAfterCommitBeforeSend   Point = "terminal.after_commit_before_send"
	ToolAfterIntent            Point = "tool.after_intent"
	ToolAfterEffect            Point = "tool.after_effect_before_result"
	SteerAfterCommit           Point = "steer.after_commit_before_202"
	CancelAfterCommit          Point = "cancel.after_commit_before_202"
	SessionAfterRevoke         Point = "session.after_revoke_before_204"
	LeaseBeforeRenew           Point = "lease.before_renew"
	IdemAfterClaim             Point = "idem.after_claim_before_work"
	DeleteAfterRow             Point = "delete.after_row_before_objects"
	JournalBeforeAppend        Point = "journal.before_append" // one statement with the appends of many turns
	TxBeforeCommit             Point = "tx.before_commit"      // of every explicit transaction
)

// Points lists them all.
var Points = []Point{
	ChatBeforeTurnRow, ChatAfterTurnRowBefore200, TurnBeforeClaim, TurnAfterClaim, TurnAfterModelFirstByte,
	DeltaAfterCommitBeforeSend, EndAfterCommitBeforeSend, ToolAfterIntent, ToolAfterEffect, SteerAfterCommit,
	CancelAfterCommit, SessionAfterRevoke, LeaseBeforeRenew, IdemAfterClaim, DeleteAfterRow, JournalBeforeAppend,
	TxBeforeCommit,
}
