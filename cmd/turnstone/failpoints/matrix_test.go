package failpoints

import (
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// What the first request of a cell is answered with.
const (
	cut      = 0 // nothing: the connection breaks
	okay     = 200
	created  = 201
	accepted = 202
	done     = 204
	away     = 503
	// either: whether the step or the drain comes first is for the machine to say, and both is right.
	either = -1
)

// cell is one way to fail at one point.
type cell struct {
	point    failpoint.Point
	action   string // as it is armed
	outcome  string // that has to come of it; the scenario says the same in figures
	scenario scenario
}

// scenario plays a cell and holds what came of it against what it says of itself.
type scenario interface {
	play(t *testing.T, s *installation, c cell)
}

func (c cell) kills() bool { return strings.HasPrefix(c.action, "kill") }

// terms: the process is told to stop at the point, and does so in order.
func (c cell) terms() bool { return strings.HasPrefix(c.action, "term") }

func (c cell) spec() string { return string(c.point) + "=" + c.action }

func (c cell) name() string { return strings.ReplaceAll(c.spec(), "=", "/") }

// group is cells that are played one after the other at one installation.
type group struct {
	name  string
	cells []cell
}

var matrix = []group{
	{"deletions", []cell{
		{failpoint.DeleteAfterRow, "kill", "gone from every read at once; the next process erases the rest", deletes{}},
		{failpoint.DeleteAfterRow, "term", "gone from every read at once; this process or the next erases the rest", deletes{}},
		{failpoint.DeleteAfterRow, "error", "gone from every read at once; the purge is tried again", deletes{}},
		{failpoint.DeleteAfterRow, "executed", "erased; the purge that is tried again finds nothing", deletes{}},
	}},
	{"starts", []cell{
		{failpoint.ChatBeforeTurnRow, "kill", "nothing is there; the same key makes the one turn", begins{answer: cut}},
		{failpoint.ChatBeforeTurnRow, "term", "refused, and nothing is there; or begun, and handed on; the same key makes or finds the one turn", begins{answer: either}},
		{failpoint.ChatBeforeTurnRow, "error", "nothing is there; the same key makes the one turn", begins{answer: away}},
		{failpoint.ChatBeforeTurnRow, "executed", "the turn is there without its actor, which comes; the same key finds it", begins{answer: away, turns: 1}},
		{failpoint.ChatBeforeTurnRow, "sleep:300ms", "it begins late", begins{answer: okay, turns: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "kill", "the turn is there and goes on; the same key finds it", begins{answer: cut, turns: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "term", "the turn is there, ends here or is handed on; the same key finds it", begins{answer: either, turns: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "error", "the turn is there and goes on; the same key finds it", begins{answer: away, turns: 1}},
		{failpoint.ChatAfterTurnRowBefore200, "executed", "the turn is there and goes on; the same key finds it", begins{answer: cut, turns: 1}},
		{failpoint.TxBeforeCommit, "kill", "nothing is there; the same key makes the one turn", begins{answer: cut}},
		{failpoint.TxBeforeCommit, "error", "nothing is there; the same key makes the one turn", begins{answer: away}},
		{failpoint.TxBeforeCommit, "executed", "the commit is looked up: the answer is the turn", begins{answer: okay, turns: 1}},
	}},
	{"streams", []cell{
		{failpoint.DeltaAfterCommitBeforeSend, "kill@6", "whoever reads gets the committed events from the next process", streams{takeovers: 1}},
		{failpoint.DeltaAfterCommitBeforeSend, "term@6", "seen, and handed on, or ended before that", streams{takeovers: either}},
		{failpoint.DeltaAfterCommitBeforeSend, "error@6", "the actor gives up; the next one shows what was committed", streams{takeovers: 1}},
		{failpoint.DeltaAfterCommitBeforeSend, "executed@6", "seen once, and the next actor goes on behind it", streams{takeovers: 1}},
		{failpoint.DeltaAfterCommitBeforeSend, "sleep:500ms@6", "seen late, and nothing else", streams{}},
		{failpoint.EndAfterCommitBeforeSend, "kill", "the turn has ended: its end is read from the log", streams{}},
		{failpoint.EndAfterCommitBeforeSend, "term", "the turn has ended, and is not handed on", streams{}},
		{failpoint.EndAfterCommitBeforeSend, "error", "the turn has ended: its end is read from the log", streams{}},
		{failpoint.EndAfterCommitBeforeSend, "executed", "the turn has ended once", streams{}},
		{failpoint.TurnAfterModelFirstByte, "kill", "asked again by the next process", streams{takeovers: 1, asked: 2}},
		{failpoint.TurnAfterModelFirstByte, "term", "handed on, or ended before that", streams{takeovers: either}},
		{failpoint.TurnAfterModelFirstByte, "error", "asked again: nothing was said yet", streams{asked: 2}},
		{failpoint.TurnAfterModelFirstByte, "executed", "what was said is superseded by the second answer", streams{asked: 2}},
		{failpoint.TurnAfterModelFirstByte, "sleep:500ms", "said late, and asked once", streams{asked: 1}},
	}},
	{"appends", []cell{
		{failpoint.JournalBeforeAppend, "kill@6", "nothing unsaid was seen; the next process says it", streams{takeovers: 1}},
		{failpoint.JournalBeforeAppend, "term@6", "stored, and handed on behind it, or ended before that", streams{takeovers: either}},
		{failpoint.JournalBeforeAppend, "error@6", "the same bytes are stored at the second try", streams{asked: 1}},
		{failpoint.JournalBeforeAppend, "executed@6", "the lost answer is looked up: stored once", streams{asked: 1}},
		{failpoint.JournalBeforeAppend, "sleep:500ms@6", "what the model says meanwhile is one chunk", streams{asked: 1}},
		{failpoint.TxBeforeCommit, "kill", "the turn has not ended: the next process goes on and ends it", streams{takeovers: 1, late: true}},
		{failpoint.TxBeforeCommit, "error", "the end is stored at the second try", streams{asked: 1, late: true}},
		{failpoint.TxBeforeCommit, "executed", "the lost answer is looked up: ended once", streams{asked: 1, late: true}},
		{failpoint.LeaseBeforeRenew, "kill", "taken over by the next process", streams{takeovers: 1, late: true}},
		{failpoint.LeaseBeforeRenew, "term", "handed on once", streams{takeovers: 1, late: true}},
		{failpoint.LeaseBeforeRenew, "error", "renewed in the next round", streams{late: true}},
		{failpoint.LeaseBeforeRenew, "executed", "renewed, and once more in the next round", streams{late: true}},
		{failpoint.LeaseBeforeRenew, "sleep:2s", "nobody else is there to notice", streams{late: true}},
	}},
	{"claims", []cell{
		{failpoint.TurnBeforeClaim, "kill", "claimed by the process after that", claims{epoch: 2}},
		{failpoint.TurnBeforeClaim, "term", "claimed and handed on, or left for the process after that", claims{epoch: either}},
		{failpoint.TurnBeforeClaim, "error", "claimed in the next round", claims{epoch: 2}},
		{failpoint.TurnBeforeClaim, "executed", "owned without an actor, which the keeper finds and claims again", claims{epoch: 3}},
		{failpoint.TurnAfterClaim, "kill", "claimed again by the process after that", claims{epoch: 3}},
		{failpoint.TurnAfterClaim, "term", "handed on, or left for the process after that", claims{epoch: either}},
		{failpoint.TurnAfterClaim, "error", "read again until the store answers", claims{epoch: 2}},
		{failpoint.TurnAfterClaim, "executed", "read again, and claimed once", claims{epoch: 2}},
		{failpoint.TurnAfterClaim, "sleep:1s", "late, and claimed once", claims{epoch: 2}},
	}},
	{"tools", []cell{
		{failpoint.ToolAfterIntent, "kill", "it only reads: run again", tools{tool: "calculate", ends: protocol.ToolSucceeded, takeovers: 1}},
		{failpoint.ToolAfterIntent, "error", "it failed, and the turn goes on", tools{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterIntent, "executed", "it failed, and the turn goes on", tools{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterIntent, "panic", "it failed, and the turn goes on", tools{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterEffect, "kill", "it only reads: run again", tools{tool: "calculate", ends: protocol.ToolSucceeded, takeovers: 1}},
		{failpoint.ToolAfterEffect, "error", "it failed, and the turn goes on", tools{tool: "calculate", ends: protocol.ToolFailed}},
		{failpoint.ToolAfterEffect, "executed", "the first result stands", tools{tool: "calculate", ends: protocol.ToolSucceeded}},
	}},
	{"effects", []cell{
		{failpoint.ToolAfterIntent, "kill", "nobody can tell whether it ran: never run again", tools{tool: "effect", ends: protocol.ToolOutcomeUnknown, takeovers: 1}},
		{failpoint.ToolAfterIntent, "term", "it ran once, and its result stands", tools{tool: "effect", ends: protocol.ToolSucceeded, effects: 1, takeovers: either}},
		{failpoint.ToolAfterIntent, "error", "nobody can tell whether it ran", tools{tool: "effect", ends: protocol.ToolOutcomeUnknown}},
		{failpoint.ToolAfterIntent, "executed", "it ran once, and nobody can tell", tools{tool: "effect", ends: protocol.ToolOutcomeUnknown, effects: 1}},
		{failpoint.ToolAfterIntent, "sleep:500ms", "it ran once, late", tools{tool: "effect", ends: protocol.ToolSucceeded, effects: 1}},
		{failpoint.ToolAfterEffect, "kill", "it ran once, and nobody can tell: never run again", tools{tool: "effect", ends: protocol.ToolOutcomeUnknown, effects: 1, takeovers: 1}},
		{failpoint.ToolAfterEffect, "term", "it ran once, and its result stands", tools{tool: "effect", ends: protocol.ToolSucceeded, effects: 1, takeovers: either}},
		{failpoint.ToolAfterEffect, "error", "it ran once, and nobody can tell", tools{tool: "effect", ends: protocol.ToolOutcomeUnknown, effects: 1}},
		{failpoint.ToolAfterEffect, "executed", "it ran once, and the first result stands", tools{tool: "effect", ends: protocol.ToolSucceeded, effects: 1}},
	}},
	{"commands", []cell{
		{failpoint.SteerAfterCommit, "kill", "it is durable: applied or returned once, a repeat is told so", steers{answer: cut, takeovers: 1}},
		{failpoint.SteerAfterCommit, "term", "accepted, and applied or returned once, here or by the next process", steers{answer: accepted, takeovers: either}},
		{failpoint.SteerAfterCommit, "error", "it is durable: applied or returned once, a repeat is told so", steers{answer: away}},
		{failpoint.SteerAfterCommit, "executed", "it is durable: applied or returned once, a repeat is told so", steers{answer: cut}},
		{failpoint.SteerAfterCommit, "sleep:500ms", "accepted late", steers{answer: accepted}},
		{failpoint.CancelAfterCommit, "kill", "it is durable: the turn ends cancelled", cancels{answer: cut}},
		{failpoint.CancelAfterCommit, "term", "accepted: the turn ends cancelled", cancels{answer: accepted}},
		{failpoint.CancelAfterCommit, "error", "it is durable: the turn ends cancelled", cancels{answer: away}},
		{failpoint.CancelAfterCommit, "executed", "it is durable: the turn ends cancelled", cancels{answer: cut}},
		{failpoint.CancelAfterCommit, "sleep:500ms", "accepted late", cancels{answer: accepted}},
		{failpoint.DeltaAfterCommitBeforeSend, "error", "the record of the accepted input answers for the actor that is gone", steers{answer: accepted, takeovers: 1}},
		{failpoint.JournalBeforeAppend, "executed", "stored once, though its answer was lost", steers{answer: accepted}},
	}},
	{"sessions", []cell{
		{failpoint.SessionAfterRevoke, "kill", "revoked", revokes{answer: cut}},
		{failpoint.SessionAfterRevoke, "term", "revoked, and told so", revokes{answer: done}},
		{failpoint.SessionAfterRevoke, "error", "revoked", revokes{answer: away}},
		{failpoint.SessionAfterRevoke, "executed", "revoked", revokes{answer: cut}},
		{failpoint.SessionAfterRevoke, "sleep:300ms", "revoked, and told late", revokes{answer: done}},
		{failpoint.TxBeforeCommit, "error", "not revoked: said so, and done by the repeat", revokes{answer: away, lives: true}},
	}},
	{"writes", []cell{
		{failpoint.IdemAfterClaim, "kill", "nothing is made; the key is free once its claim is stale", creates{answer: cut}},
		{failpoint.IdemAfterClaim, "term", "made, told so, and kept for the repeat", creates{answer: created, made: 1}},
		{failpoint.IdemAfterClaim, "error", "nothing is made; the key is free at once", creates{answer: away}},
		{failpoint.IdemAfterClaim, "executed", "made once: the repeat gets the kept answer", creates{answer: away, made: 1}},
		{failpoint.IdemAfterClaim, "sleep:500ms", "made late", creates{answer: created, made: 1}},
		{failpoint.TxBeforeCommit, "kill", "the draft is as it was", writes{path: "draft", answer: cut}},
		{failpoint.TxBeforeCommit, "term", "the draft stands", writes{path: "draft", answer: okay}},
		{failpoint.TxBeforeCommit, "error", "the draft is as it was", writes{path: "draft", answer: away}},
		{failpoint.TxBeforeCommit, "executed", "the commit is looked up: the draft stands", writes{path: "draft", answer: okay}},
		{failpoint.TxBeforeCommit, "kill", "the title is as it was", writes{path: "title", answer: cut}},
		{failpoint.TxBeforeCommit, "error", "the title is as it was", writes{path: "title", answer: away}},
		{failpoint.TxBeforeCommit, "executed", "the commit is looked up: the title stands", writes{path: "title", answer: okay}},
	}},
	{"zombies", []cell{
		{failpoint.LeaseBeforeRenew, "sleep:6s", "the other node goes on; who slept writes nothing more and ends", zombies{}},
	}},
}

// Every cell ends with what holds of every turn: one log without gaps, the same for every reader, nothing seen that is
// not in it, one end, and epochs that never go back.
func TestWhateverFailsWhereverItFails(t *testing.T) {
	for _, group := range matrix {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			s := install(t)
			for _, c := range group.cells {
				t.Run(c.name(), func(t *testing.T) {
					s.at(t)
					c.scenario.play(t, s, c)
					s.healed()
					if t.Failed() {
						t.Logf("wanted: %s", c.outcome)
					}
				})
			}
		})
	}
}

// The ways that every point has to have a cell for.
func TestEveryPointHasItsCells(t *testing.T) {
	played := map[failpoint.Point]map[string]bool{}
	cells := 0
	for _, group := range matrix {
		for _, c := range group.cells {
			if played[c.point] == nil {
				played[c.point] = map[string]bool{}
			}
			action, _, _ := strings.Cut(c.action, "@")
			played[c.point][action] = true
			cells++
		}
	}
	for _, point := range failpoint.Points {
		for _, action := range []string{"kill", "term", "error", "executed"} {
			if !played[point][action] {
				t.Errorf("no cell says what comes of %s=%s", point, action)
			}
		}
	}
	t.Logf("%d points, %d cells", len(failpoint.Points), cells)
}
