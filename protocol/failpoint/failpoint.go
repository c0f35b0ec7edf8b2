// Package failpoint injects failures into named steps of the service. A point encloses a step:
//
//	if err := failpoint.Before(failpoint.LeaseBeforeRenew); err != nil {
//		return err
//	}
//	err := failpoint.After(failpoint.LeaseBeforeRenew, renew())
//
// An armed point performs one of these actions:
//
//	kill      the process is killed before the step, as by kill -9
//	term      the process receives SIGTERM before the step, and the step runs once the shutdown has reached a stage
//	error     the step does not run, and its caller gets an error
//	executed  the step runs, and its caller gets an error
//	sleep     the step is delayed
//	panic     the goroutine panics before the step
//
// Sending a response to a client is a step with its own function, Respond. There, the action executed means that the
// request is processed and the client never gets the response.
//
// A step and a drain that run at the same time end in any order. The action term fixes the order: without a stage the step
// runs when the node accepts no more work, and as term:released when the node has released its turns.
//
// Hold does not inject a failure. It blocks the scripted model at a named position while a test holds that name, so
// that no test depends on the speed of the host computer.
//
// All of this exists only in builds with the tag failpoint. In every other build the functions are empty and are
// inlined, so they cost nothing. The package imports no other package of this module, so that every package can use it.
package failpoint

// Point is the name of a step.
type Point string

// The points. A test of the whole program checks the required outcome of every action at every point.
const (
	ChatBeforeTurnRow          Point = "chat.before_turn_row"
	ChatAfterTurnRowBefore200  Point = "chat.after_turn_row_before_200"
	TurnBeforeClaim            Point = "turn.before_claim"
	TurnAfterClaim             Point = "turn.after_claim"
	TurnAfterModelFirstByte    Point = "turn.after_model_first_byte" // every chunk from the model is a hit, from hit 1 on
	DeltaAfterCommitBeforeSend Point = "delta.after_commit_before_send"
	EndAfterCommitBeforeSend   Point = "terminal.after_commit_before_send"
	ToolAfterIntent            Point = "tool.after_intent"
	ToolAfterEffect            Point = "tool.after_effect_before_result"
	SteerAfterCommit           Point = "steer.after_commit_before_202"
	CancelAfterCommit          Point = "cancel.after_commit_before_202"
	FollowUpAfterCommit        Point = "follow_up.after_commit_before_response" // it was created, ordered or promoted
	PromoteAfterCommit         Point = "promote.after_commit_before_cancel"
	SessionAfterRevoke         Point = "session.after_revoke_before_204"
	LeaseBeforeRenew           Point = "lease.before_renew"
	IdemAfterClaim             Point = "idem.after_claim_before_work"
	DeleteAfterRow             Point = "delete.after_row_before_objects"
	UploadAfterObject          Point = "upload.after_s3_before_row"      // the content is in quarantine
	UploadAfterRow             Point = "upload.after_row_before_200"     // a transition of a session was stored
	ResearchAfterRow           Point = "research.after_row"              // a batch of a research task was stored
	ScanAfterVerdict           Point = "scan.after_verdict_before_row"   // the scanner gave a verdict
	PublishAfterObject         Point = "publish.after_object_before_row" // the clean content has its final key
	JournalBeforeAppend        Point = "journal.before_append"           // the statement with the appends of many turns
	TxBeforeCommit             Point = "tx.before_commit"                // the commit of every explicit transaction
)

// Stage is a stage of the shutdown, which the service reports with Reached.
type Stage string

// The stages.
const (
	Draining Stage = "draining" // the node and its row in the database refuse new turns and claims
	Released Stage = "released" // no turn belongs to the node any more
)

// Points lists every point.
var Points = []Point{
	ChatBeforeTurnRow, ChatAfterTurnRowBefore200, TurnBeforeClaim, TurnAfterClaim, TurnAfterModelFirstByte,
	DeltaAfterCommitBeforeSend, EndAfterCommitBeforeSend, ToolAfterIntent, ToolAfterEffect, SteerAfterCommit,
	CancelAfterCommit, FollowUpAfterCommit, PromoteAfterCommit, SessionAfterRevoke, LeaseBeforeRenew, IdemAfterClaim, DeleteAfterRow,
	UploadAfterObject, UploadAfterRow, ResearchAfterRow, ScanAfterVerdict, PublishAfterObject, JournalBeforeAppend, TxBeforeCommit,
}
