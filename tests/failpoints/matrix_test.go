package failpoints

import (
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// The outcome of the first request of a cell: an HTTP status, or one of the following.
const (
	cut         = 0 // no response: the connection breaks
	okay        = 200
	created     = 201
	accepted    = 202
	done        = 204
	unavailable = 503
)

// cell is one way to fail at one point.
type cell struct {
	point    failpoint.Point
	action   string // as in the failpoint's specification
	outcome  string // the expected outcome in words; the scenario contains it in figures
	scenario scenario
}

// scenario runs a cell and checks the outcome against the scenario's fields.
type scenario interface {
	play(t *testing.T, s *installation, c cell)
}

func (c cell) kills() bool { return strings.HasPrefix(c.action, "kill") }

// ends reports whether the process ends at the point: it is killed, or receives SIGTERM and stops in an orderly way.
func (c cell) ends() bool { return c.kills() || strings.HasPrefix(c.action, "term") }

func (c cell) spec() string { return string(c.point) + "=" + c.action }

func (c cell) name() string { return strings.ReplaceAll(c.spec(), "=", "/") }

// group is a list of cells that run one after the other on one installation, whose program has a grace.
type group struct {
	name  string
	grace time.Duration
	cells []cell
}

var matrix = []group{
	{"deletions", shortGrace, []cell{
		{failpoint.DeleteAfterRow, "kill", "unreadable at once; the next process purges the rest", deleteScenario{}},
		{failpoint.DeleteAfterRow, "term", "unreadable; this process purges the rest before it ends", deleteScenario{}},
		{failpoint.DeleteAfterRow, "error", "unreadable at once; the purge is retried", deleteScenario{}},
		{failpoint.DeleteAfterRow, "executed", "purged; the retried purge finds nothing", deleteScenario{}},
	}},
	{"starts", shortGrace, []cell{
		{failpoint.ChatBeforeTurnRow, "kill", "nothing is stored; the repeat with the same key creates the only turn", startScenario{status: cut}},
		{failpoint.ChatBeforeTurnRow, "term", "refused and nothing stored; the repeat with the same key creates the only turn", startScenario{status: unavailable}},
		{failpoint.ChatBeforeTurnRow, "error", "nothing is stored; the repeat with the same key creates the only turn", startScenario{status: unavailable}},
		{failpoint.ChatBeforeTurnRow, "executed", "the turn is stored without an actor, which is started later; the repeat with the same key finds the turn", startScenario{status: unavailable, turns: 1, takeovers: 1}},
		{failpoint.ChatBeforeTurnRow, "sleep:300ms", "the turn starts late", startScenario{status: okay, turns: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "kill", "the turn is stored and continues; the repeat with the same key finds it", startScenario{status: cut, turns: 1, takeovers: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "term:released", "the turn is stored, and was handed over before the response; the repeat with the same key finds it", startScenario{status: okay, turns: 1, held: true, takeovers: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "error", "the turn is stored and continues; the repeat with the same key finds it", startScenario{status: unavailable, turns: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "executed", "the turn is stored and continues; the repeat with the same key finds it", startScenario{status: cut, turns: 1}},
		{failpoint.TxBeforeCommit, "kill", "nothing is stored; the repeat with the same key creates the only turn", startScenario{status: cut}},
		{failpoint.TxBeforeCommit, "error", "nothing is stored; the repeat with the same key creates the only turn", startScenario{status: unavailable}},
		{failpoint.TxBeforeCommit, "executed", "the commit is looked up: the response is the turn", startScenario{status: okay, turns: 1}},
	}},
	{"streams", shortGrace, []cell{
		{failpoint.DeltaAfterCommitBeforeSend, "kill@6", "readers get the committed events from the next process", streamScenario{takeovers: 1}},
		{failpoint.DeltaAfterCommitBeforeSend, "term@6", "the events are seen, and the turn is handed over", streamScenario{held: true, takeovers: 1, calls: 2}},
		{failpoint.DeltaAfterCommitBeforeSend, "error@6", "the actor gives up; the next one publishes the committed events", streamScenario{takeovers: 1}},
		{failpoint.DeltaAfterCommitBeforeSend, "executed@6", "the events are seen once, and the next actor continues after them", streamScenario{takeovers: 1}},
		{failpoint.DeltaAfterCommitBeforeSend, "sleep:500ms@6", "the events are seen late, without any other effect", streamScenario{}},
		{failpoint.EndAfterCommitBeforeSend, "kill", "the turn has ended: its end is read from the log", streamScenario{}},
		{failpoint.EndAfterCommitBeforeSend, "term", "the turn has ended and is not handed over", streamScenario{}},
		{failpoint.EndAfterCommitBeforeSend, "error", "the turn has ended: its end is read from the log", streamScenario{}},
		{failpoint.EndAfterCommitBeforeSend, "executed", "the turn has ended once", streamScenario{}},
		{failpoint.TurnAfterModelFirstByte, "kill", "the next process calls the model again", streamScenario{takeovers: 1, calls: 2}},
		{failpoint.TurnAfterModelFirstByte, "term", "the turn is handed over", streamScenario{held: true, takeovers: 1, calls: 2}},
		{failpoint.TurnAfterModelFirstByte, "error", "the model is called again, because it had not said anything yet", streamScenario{calls: 2}},
		{failpoint.TurnAfterModelFirstByte, "executed", "the second answer supersedes the first one", streamScenario{calls: 2}},
		{failpoint.TurnAfterModelFirstByte, "sleep:500ms", "the text is late, and the model is called once", streamScenario{calls: 1}},
	}},
	{"appends", shortGrace, []cell{
		{failpoint.JournalBeforeAppend, "kill@6", "nothing that is not stored was seen; the next process continues", streamScenario{takeovers: 1}},
		{failpoint.JournalBeforeAppend, "term@6", "the append is stored, and the turn is handed over after it", streamScenario{held: true, takeovers: 1, calls: 2}},
		{failpoint.JournalBeforeAppend, "error@6", "the second attempt stores the same bytes", streamScenario{calls: 1}},
		{failpoint.JournalBeforeAppend, "executed@6", "the outcome is looked up: the append is stored once", streamScenario{calls: 1}},
		{failpoint.JournalBeforeAppend, "sleep:500ms@6", "what the model says in the meantime becomes one chunk", streamScenario{calls: 1}},
		{failpoint.TxBeforeCommit, "kill", "the turn has not ended: the next process continues and ends it", streamScenario{takeovers: 1, late: true}},
		{failpoint.TxBeforeCommit, "error", "the second attempt stores the end", streamScenario{calls: 1, late: true}},
		{failpoint.TxBeforeCommit, "executed", "the outcome is looked up: the turn ends once", streamScenario{calls: 1, late: true}},
		{failpoint.LeaseBeforeRenew, "kill", "the next process takes the turn over", streamScenario{takeovers: 1, late: true}},
		{failpoint.LeaseBeforeRenew, "term", "the turn is handed over once", streamScenario{held: true, takeovers: 1, calls: 2, late: true}},
		{failpoint.LeaseBeforeRenew, "error", "the lease is renewed in the next round", streamScenario{late: true}},
		{failpoint.LeaseBeforeRenew, "executed", "the lease is renewed, and again in the next round", streamScenario{late: true}},
		{failpoint.LeaseBeforeRenew, "sleep:2s", "no effect, because there is no other node", streamScenario{late: true}},
	}},
	{"claims", shortGrace, []cell{
		{failpoint.TurnBeforeClaim, "kill", "the following process claims the turn", claimScenario{epoch: 2}},
		{failpoint.TurnBeforeClaim, "term", "left for the following process", claimScenario{epoch: 2}},
		{failpoint.TurnBeforeClaim, "error", "the turn is claimed in the next round", claimScenario{epoch: 2}},
		{failpoint.TurnBeforeClaim, "executed", "owned without an actor; the keeper detects that and claims the turn again", claimScenario{epoch: 3}},
		{failpoint.TurnAfterClaim, "kill", "the following process claims the turn again", claimScenario{epoch: 3}},
		{failpoint.TurnAfterClaim, "term:released", "released without an actor; the following process claims the turn again", claimScenario{epoch: 3}},
		{failpoint.TurnAfterClaim, "error", "the read is retried until the store responds", claimScenario{epoch: 2}},
		{failpoint.TurnAfterClaim, "executed", "the read is retried, and the turn is claimed once", claimScenario{epoch: 2}},
		{failpoint.TurnAfterClaim, "sleep:1s", "the takeover is late, and the turn is claimed once", claimScenario{epoch: 2}},
	}},
	{"tools", shortGrace, []cell{
		{failpoint.ToolAfterIntent, "kill", "the tool only reads, so it is run again", toolScenario{tool: "calculate", ends: protocol.ToolSucceeded, takeovers: 1}},
		{failpoint.ToolAfterIntent, "error", "the tool failed, and the turn continues", toolScenario{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterIntent, "executed", "the tool failed, and the turn continues", toolScenario{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterIntent, "panic", "the tool failed, and the turn continues", toolScenario{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterEffect, "kill", "the tool only reads, so it is run again", toolScenario{tool: "calculate", ends: protocol.ToolSucceeded, takeovers: 1}},
		{failpoint.ToolAfterEffect, "error", "the tool failed, and the turn continues", toolScenario{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterEffect, "executed", "the first result is kept", toolScenario{tool: "calculate", ends: protocol.ToolSucceeded}},
	}},
	{"effects", shortGrace, []cell{
		{failpoint.ToolAfterIntent, "kill", "it is unknown whether it ran, so it is not run again", toolScenario{tool: "effect", ends: protocol.ToolOutcomeUnknown, takeovers: 1}},
		{failpoint.ToolAfterIntent, "term:released", "the grace ended before the call: it did not run, which the next process cannot know", toolScenario{tool: "effect", ends: protocol.ToolOutcomeUnknown, takeovers: 1}},
		{failpoint.ToolAfterIntent, "error", "it is unknown whether it ran", toolScenario{tool: "effect", ends: protocol.ToolOutcomeUnknown}},
		{failpoint.ToolAfterIntent, "executed", "it ran once, but the outcome is unknown", toolScenario{tool: "effect", ends: protocol.ToolOutcomeUnknown, effects: 1}},
		{failpoint.ToolAfterIntent, "sleep:500ms", "it ran once, late", toolScenario{tool: "effect", ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.ToolAfterEffect, "kill", "it ran once, but the outcome is unknown, so it is not run again", toolScenario{tool: "effect", ends: protocol.ToolOutcomeUnknown, effects: 1, takeovers: 1}},
		{failpoint.ToolAfterEffect, "term:released", "the grace ended before the result: it ran once, but the outcome is unknown, so it is not run again", toolScenario{tool: "effect", ends: protocol.ToolOutcomeUnknown, effects: 1, takeovers: 1}},
		{failpoint.ToolAfterEffect, "error", "it ran once, but the outcome is unknown", toolScenario{tool: "effect", ends: protocol.ToolOutcomeUnknown, effects: 1}},
		{failpoint.ToolAfterEffect, "executed", "it ran once, and the first result is kept", toolScenario{tool: "effect", ends: protocol.ToolSucceeded, effects: 1}},
	}},
	{"approvals", shortGrace, []cell{
		{failpoint.JournalBeforeAppend, "kill", "nothing was asked; the next process asks", approvalScenario{asks: true, status: accepted, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.JournalBeforeAppend, "error", "the second attempt asks", approvalScenario{asks: true, status: accepted, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.JournalBeforeAppend, "executed", "the outcome is looked up: asked once", approvalScenario{asks: true, status: accepted, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.JournalBeforeAppend, "kill", "the decision is not stored, and nothing ran; the repeat decides", approvalScenario{status: cut, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.JournalBeforeAppend, "error", "the second attempt stores the decision", approvalScenario{status: accepted, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.JournalBeforeAppend, "executed", "the outcome is looked up: decided once", approvalScenario{status: accepted, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.SteerAfterCommit, "error", "decided; the repeat gets the first receipt", approvalScenario{status: unavailable, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.SteerAfterCommit, "executed", "decided; the repeat gets the first receipt", approvalScenario{status: cut, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.SteerAfterCommit, "sleep:500ms", "decided; the response is late", approvalScenario{status: accepted, ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.ToolAfterIntent, "kill", "the decision is stored; it is unknown whether the call ran, so it is not run again", approvalScenario{ends: protocol.ToolOutcomeUnknown}},
		{failpoint.ToolAfterIntent, "executed", "it ran once, but the outcome is unknown", approvalScenario{status: accepted, ends: protocol.ToolOutcomeUnknown, effects: 1}},
		{failpoint.ToolAfterEffect, "kill", "it ran once, but the outcome is unknown, so it is not run again", approvalScenario{ends: protocol.ToolOutcomeUnknown, effects: 1}},
		{failpoint.ToolAfterEffect, "executed", "it ran once, and the first result is kept", approvalScenario{status: accepted, ends: protocol.ToolSucceeded, effects: 1}},
	}},
	{"commands", shortGrace, []cell{
		{failpoint.SteerAfterCommit, "kill", "the input is durable: applied or returned once; the repeat reports it as accepted", steerScenario{status: cut, takeovers: 1}},
		{failpoint.SteerAfterCommit, "term", "accepted, and applied or returned once by the next process", steerScenario{status: accepted, held: true, takeovers: 1}},
		{failpoint.SteerAfterCommit, "error", "the input is durable: applied or returned once; the repeat reports it as accepted", steerScenario{status: unavailable}},
		{failpoint.SteerAfterCommit, "executed", "the input is durable: applied or returned once; the repeat reports it as accepted", steerScenario{status: cut}},
		{failpoint.SteerAfterCommit, "sleep:500ms", "accepted late", steerScenario{status: accepted}},
		{failpoint.CancelAfterCommit, "kill", "the cancel is durable: the turn ends cancelled", cancelScenario{status: cut}},
		{failpoint.CancelAfterCommit, "term", "accepted: the turn ends cancelled", cancelScenario{status: accepted}},
		{failpoint.CancelAfterCommit, "error", "the cancel is durable: the turn ends cancelled", cancelScenario{status: unavailable}},
		{failpoint.CancelAfterCommit, "executed", "the cancel is durable: the turn ends cancelled", cancelScenario{status: cut}},
		{failpoint.CancelAfterCommit, "sleep:500ms", "accepted late", cancelScenario{status: accepted}},
		{failpoint.DeltaAfterCommitBeforeSend, "error", "the stored record of the input supplies the response that the failed actor did not send", steerScenario{status: accepted, takeovers: 1}},
		{failpoint.JournalBeforeAppend, "executed", "stored once, although the reply of the database was lost", steerScenario{status: accepted}},
	}},
	{"queues", shortGrace, []cell{
		{failpoint.FollowUpAfterCommit, "kill", "stored; the repeat with the same key finds it", queueScenario{does: createsItem, status: cut, stored: true}},
		{failpoint.FollowUpAfterCommit, "term", "stored and confirmed", queueScenario{does: createsItem, status: created, stored: true}},
		{failpoint.FollowUpAfterCommit, "error", "stored; the repeat with the same key finds it", queueScenario{does: createsItem, status: unavailable, stored: true}},
		{failpoint.FollowUpAfterCommit, "executed", "stored; the repeat with the same key finds it", queueScenario{does: createsItem, status: cut, stored: true}},
		{failpoint.TxBeforeCommit, "kill", "nothing is stored; the key of the dead node is free, and the repeat creates it", queueScenario{does: createsItem, status: cut}},
		{failpoint.FollowUpAfterCommit, "kill", "ordered; the repeat gets the current order", queueScenario{does: ordersItems, status: cut, stored: true}},
		{failpoint.FollowUpAfterCommit, "error", "ordered; the repeat gets the current order", queueScenario{does: ordersItems, status: unavailable, stored: true}},
		{failpoint.TxBeforeCommit, "kill", "the order is unchanged; the repeat changes it", queueScenario{does: ordersItems, status: cut}},
		{failpoint.TxBeforeCommit, "executed", "the commit is looked up: ordered once", queueScenario{does: ordersItems, status: okay, stored: true}},
		{failpoint.PromoteAfterCommit, "kill", "promoted, and the turn goes on; the repeat cancels it", queueScenario{does: promotesItem, status: cut, stored: true}},
		{failpoint.PromoteAfterCommit, "error", "promoted, and the turn goes on; the repeat cancels it", queueScenario{does: promotesItem, status: unavailable, stored: true}},
		{failpoint.PromoteAfterCommit, "executed", "promoted, and the turn is cancelled; the repeat changes nothing", queueScenario{does: promotesItem, status: unavailable, stored: true}},
		{failpoint.FollowUpAfterCommit, "kill", "promoted, and the turn is cancelled; the repeat changes nothing", queueScenario{does: promotesItem, status: cut, stored: true}},
		{failpoint.FollowUpAfterCommit, "executed", "promoted, and the turn is cancelled; the repeat changes nothing", queueScenario{does: promotesItem, status: cut, stored: true}},
	}},
	{"uploads", longGrace, []cell{
		{failpoint.UploadAfterObject, "kill", "no transition is stored; the session waits for its content again", uploadScenario{status: cut, left: receiving}},
		{failpoint.UploadAfterObject, "term", "received, scanned and published before this process ends", uploadScenario{status: asStored, left: ready}},
		{failpoint.UploadAfterObject, "error", "refused; the session waits for its content again", uploadScenario{status: unavailable, again: true}},
		{failpoint.UploadAfterObject, "executed", "received once", uploadScenario{status: okay}},
		{failpoint.UploadAfterObject, "sleep:300ms", "received late", uploadScenario{status: okay}},
		{failpoint.UploadAfterRow, "kill@2", "the next process scans the content", uploadScenario{status: cut, left: scanning}},
		{failpoint.UploadAfterRow, "term@2", "scanned and published before this process ends", uploadScenario{status: asStored, left: ready}},
		{failpoint.UploadAfterRow, "error@2", "the outcome is unknown; another actor scans the content", uploadScenario{status: unavailable}},
		{failpoint.UploadAfterRow, "executed@2", "received; another actor scans the content", uploadScenario{status: okay}},
		{failpoint.UploadAfterRow, "kill@3", "the file exists", uploadScenario{status: cut, left: ready}},
		{failpoint.UploadAfterRow, "error@3", "the file exists", uploadScenario{status: okay}},
		{failpoint.UploadAfterRow, "executed@3", "the file exists once", uploadScenario{status: okay}},
		{failpoint.ScanAfterVerdict, "kill", "the next process scans the content again if the transfer was stored before the verdict came; otherwise the session waits for the content again", uploadScenario{status: cut, left: receiving + " " + scanning}},
		{failpoint.ScanAfterVerdict, "term", "the verdict counts, and the content is published before this process ends", uploadScenario{status: asStored, left: ready}},
		{failpoint.ScanAfterVerdict, "error", "the content is scanned again", uploadScenario{status: okay}},
		{failpoint.ScanAfterVerdict, "executed", "the first verdict counts", uploadScenario{status: okay}},
		{failpoint.PublishAfterObject, "kill", "the next process scans and publishes the content again", uploadScenario{status: cut, left: scanning}},
		{failpoint.PublishAfterObject, "term", "published before this process ends", uploadScenario{status: asStored, left: ready}},
		{failpoint.PublishAfterObject, "error", "the content is published again", uploadScenario{status: okay}},
		{failpoint.PublishAfterObject, "executed", "the file exists once", uploadScenario{status: okay}},
		{failpoint.TxBeforeCommit, "error@3", "the second attempt stores the transition", uploadScenario{status: okay}},
		{failpoint.TxBeforeCommit, "executed@3", "the commit is looked up: the transition is stored once", uploadScenario{status: okay}},
	}},
	{"research", shortGrace, []cell{
		{failpoint.ResearchAfterRow, "kill", "the cancel is durable: the next process ends the task", cancelTaskScenario{status: cut}},
		{failpoint.ResearchAfterRow, "term", "accepted; this process or the next one ends the task", cancelTaskScenario{status: accepted}},
		{failpoint.ResearchAfterRow, "error", "the cancel is durable; another actor ends the task", cancelTaskScenario{status: unavailable}},
		{failpoint.ResearchAfterRow, "executed", "accepted; another actor ends the task", cancelTaskScenario{status: accepted}},
		{failpoint.ResearchAfterRow, "sleep:300ms", "accepted late", cancelTaskScenario{status: accepted}},
	}},
	{"sessions", shortGrace, []cell{
		{failpoint.SessionAfterRevoke, "kill", "revoked", revokeScenario{status: cut}},
		{failpoint.SessionAfterRevoke, "term", "revoked and confirmed", revokeScenario{status: done}},
		{failpoint.SessionAfterRevoke, "error", "revoked", revokeScenario{status: unavailable}},
		{failpoint.SessionAfterRevoke, "executed", "revoked", revokeScenario{status: cut}},
		{failpoint.SessionAfterRevoke, "sleep:300ms", "revoked and confirmed late", revokeScenario{status: done}},
		{failpoint.TxBeforeCommit, "error", "not revoked, and reported as such; the repeat revokes it", revokeScenario{status: unavailable, stillValid: true}},
	}},
	{"writes", shortGrace, []cell{
		{failpoint.IdemAfterClaim, "kill", "nothing is created; the key of the dead node is free", createScenario{status: cut}},
		{failpoint.IdemAfterClaim, "term", "created and confirmed; the response is stored for the repeat", createScenario{status: created, made: 1}},
		{failpoint.IdemAfterClaim, "error", "nothing is created; the key is free at once", createScenario{status: unavailable}},
		{failpoint.IdemAfterClaim, "executed", "created once: the repeat gets the stored response", createScenario{status: unavailable, made: 1}},
		{failpoint.IdemAfterClaim, "sleep:500ms", "created late", createScenario{status: created, made: 1}},
		{failpoint.TxBeforeCommit, "kill", "the draft is unchanged", writeScenario{path: "draft", status: cut}},
		{failpoint.TxBeforeCommit, "term", "the draft is stored", writeScenario{path: "draft", status: okay}},
		{failpoint.TxBeforeCommit, "error", "the draft is unchanged", writeScenario{path: "draft", status: unavailable}},
		{failpoint.TxBeforeCommit, "executed", "the commit is looked up: the draft is stored", writeScenario{path: "draft", status: okay}},
		{failpoint.TxBeforeCommit, "kill", "the title is unchanged", writeScenario{path: "title", status: cut}},
		{failpoint.TxBeforeCommit, "error", "the title is unchanged", writeScenario{path: "title", status: unavailable}},
		{failpoint.TxBeforeCommit, "executed", "the commit is looked up: the title is stored", writeScenario{path: "title", status: okay}},
	}},
	// The steps that end within the grace. The other groups have them after the release of the turns.
	{"drains", longGrace, []cell{
		{failpoint.ChatAfterTurnRowBefore200, "term", "the turn is stored and ends in this process; the repeat with the same key finds it", startScenario{status: okay, turns: 1}},
		{failpoint.DeltaAfterCommitBeforeSend, "term@6", "the events are seen, and the turn ends in this process", streamScenario{calls: 1}},
		{failpoint.TurnAfterModelFirstByte, "term", "the turn ends in this process", streamScenario{calls: 1}},
		{failpoint.JournalBeforeAppend, "term@6", "the append is stored, and the turn ends in this process", streamScenario{calls: 1}},
		{failpoint.ToolAfterIntent, "term", "it ran once, and its result is kept", toolScenario{tool: "effect", ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.ToolAfterEffect, "term", "it ran once, and its result is kept", toolScenario{tool: "effect", ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.SteerAfterCommit, "term", "accepted, and applied or returned once by this process", steerScenario{status: accepted}},
		{failpoint.PromoteAfterCommit, "term", "promoted, and this process cancels the turn; the repeat changes nothing", queueScenario{does: promotesItem, status: okay, stored: true}},
	}},
	{"nodes", shortGrace, []cell{
		{failpoint.LeaseBeforeRenew, "sleep:6s", "the other node continues the turn; the node that slept writes nothing more and ends", staleNodeScenario{}},
	}},
}

// TestFailureMatrix runs the matrix. Each cell also checks the invariants of every turn: its log has no gap and one
// end, every reader saw the same events, all of them from the log, and epochs never decrease.
func TestFailureMatrix(t *testing.T) {
	for _, group := range matrix {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			s := install(t, group.grace)
			for _, c := range group.cells {
				t.Run(c.name(), func(t *testing.T) {
					s.switchTo(t)
					c.scenario.play(t, s, c)
					s.endPlan()
					if t.Failed() {
						t.Logf("want: %s", c.outcome)
					}
				})
			}
		})
	}
}

// TestEveryPointHasItsCells checks that every point has cells for the required ways to fail.
func TestEveryPointHasItsCells(t *testing.T) {
	played := map[failpoint.Point]map[string]bool{}
	cells := 0
	for _, group := range matrix {
		for _, c := range group.cells {
			if played[c.point] == nil {
				played[c.point] = map[string]bool{}
			}
			played[c.point][strings.FieldsFunc(c.action, func(r rune) bool { return r == '@' || r == ':' })[0]] = true
			cells++
		}
	}
	for _, point := range failpoint.Points {
		for _, action := range []string{"kill", "term", "error", "executed"} {
			if !played[point][action] {
				t.Errorf("no cell covers %s=%s", point, action)
			}
		}
	}
	t.Logf("%d points, %d cells", len(failpoint.Points), cells)
}
