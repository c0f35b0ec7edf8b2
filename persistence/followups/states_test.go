package followups_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// queueInEveryState is a queue behind a live turn, with an item in each state, whose content is the name of the state.
type queueInEveryState struct {
	w       *storetest.World
	project *protocol.Project
	turn    *storetest.Turn
	ended   bool
	id      protocol.ConversationID
}

func newQueueInEveryState(w *storetest.World) *queueInEveryState {
	w.Helper()
	project, err := w.DB.Projects.CreateProject(w.Context(), w.Account, "P", nil)
	w.Must(err)
	start := w.Request(nil, "one")
	start.ProjectID = &project.ProjectID
	turn := w.Start(start)
	q := &queueInEveryState{w: w, project: project, turn: turn, id: turn.Spec.ConversationID}
	for _, state := range protocol.FollowUpStates {
		create(w, q.id, string(state))
	}
	_, err = w.DB.DB.Exec(w.Context(), w.Account, `update follow_ups set state = content where account_id = $1 and conversation_id = $2`, w.Account, q.id)
	w.Must(err)
	return q
}

// states returns the states of the items, by the states that they had.
func (q *queueInEveryState) states() map[protocol.FollowUpState]protocol.FollowUpState {
	q.w.Helper()
	type item struct{ Content, State protocol.FollowUpState }
	items, err := pg.Rows(q.w.Context(), q.w.DB.DB, q.w.Account, pgx.RowToStructByPos[item],
		`select content, state from follow_ups where account_id = $1 and conversation_id = $2`, q.w.Account, q.id)
	q.w.Must(err)
	states := map[protocol.FollowUpState]protocol.FollowUpState{}
	for _, i := range items {
		states[i.Content] = i.State
	}
	return states
}

// each applies a change to every item, one after the other. Whether a change is refused is tested elsewhere.
func each(change func(q *queueInEveryState, item *protocol.FollowUp)) func(*queueInEveryState) {
	return func(q *queueInEveryState) {
		for _, item := range itemsOf(q.w, q.id) {
			change(q, item)
		}
	}
}

func changeTo(state protocol.FollowUpState) func(*queueInEveryState) {
	return each(func(q *queueInEveryState, item *protocol.FollowUp) {
		_, _, _ = q.w.DB.FollowUps.ChangeFollowUp(q.w.Context(), q.w.Change(q.id, item, state), q.w.Runner)
	})
}

func end(change func(*turnlog.Finish)) func(*queueInEveryState) {
	return func(q *queueInEveryState) {
		q.ended = true
		if started := q.turn.End(change); started != nil {
			q.w.Simulate(started.Spec, started.Begin).End(cancelled)
		}
	}
}

func archive(q *queueInEveryState) {
	_, err := q.w.DB.Projects.SetArchived(q.w.Context(), q.w.Account, &projects.Change{ProjectID: q.project.ProjectID, Version: &q.project.Version}, true)
	q.w.Must(err)
}

func deleteConversation(q *queueInEveryState) {
	q.turn.Cancel()
	live, err := q.w.DB.Conversations.DeleteConversation(q.w.Context(), q.w.Account, &conversations.Deletion{ConversationID: q.id, Cancelled: &q.turn.Spec.TurnID})
	q.w.Must(err)
	if live != nil {
		q.w.Fatalf("the conversation was not deleted: %+v", live)
	}
}

func disable(q *queueInEveryState) {
	q.w.Must(q.w.DB.Operator.DisableAccount(q.w.Context(), q.w.Account, time.Now(), audit.Requester{}))
}

type moves = map[protocol.FollowUpState]protocol.FollowUpTrigger

// TestEveryChangeMovesOnlyItemsAsTheTableOfStatesAllows applies everything that changes a queue to an item in each state. An item without
// a trigger stays as it is.
func TestEveryChangeMovesOnlyItemsAsTheTableOfStatesAllows(t *testing.T) {
	w := storetest.NewWorld(t)
	made := map[protocol.Transition[protocol.FollowUpState, protocol.FollowUpTrigger]]bool{}
	for _, change := range []struct {
		name  string
		does  func(*queueInEveryState)
		moves moves
	}{
		{"changed to queued", changeTo(protocol.FollowUpQueued), moves{protocol.FollowUpHeld: protocol.FollowUpRelease}},
		{"changed to held", changeTo(protocol.FollowUpHeld), moves{protocol.FollowUpQueued: protocol.FollowUpHold}},
		{"changed to started", changeTo(protocol.FollowUpStarted), nil},
		{"changed to cancelled", changeTo(protocol.FollowUpCancelled), moves{protocol.FollowUpQueued: protocol.FollowUpCancel, protocol.FollowUpHeld: protocol.FollowUpCancel}},
		{"promoted", each(func(q *queueInEveryState, item *protocol.FollowUp) { _, _ = promote(q.w, q.id, item, true) }), moves{protocol.FollowUpHeld: protocol.FollowUpRelease}},
		{"the turn completes", end(nil), moves{protocol.FollowUpQueued: protocol.FollowUpStart}},
		{"the turn is cancelled", end(cancelled), moves{protocol.FollowUpQueued: protocol.FollowUpHold}},
		{"the turn is cancelled with its queue", end(func(f *turnlog.Finish) { cancelled(f); f.DropQueue = true }), moves{protocol.FollowUpQueued: protocol.FollowUpCancel}},
		{"the conversation is deleted", deleteConversation, moves{protocol.FollowUpQueued: protocol.FollowUpCancel, protocol.FollowUpHeld: protocol.FollowUpCancel}},
		{"the project is archived", archive, moves{protocol.FollowUpQueued: protocol.FollowUpHold}},
		{"the account is disabled", disable, moves{protocol.FollowUpQueued: protocol.FollowUpHold}},
	} {
		q := newQueueInEveryState(w)
		change.does(q)
		for from, to := range q.states() {
			want := protocol.Transition[protocol.FollowUpState, protocol.FollowUpTrigger]{From: from, To: from}
			if trigger, is := change.moves[from]; is {
				want = transition(t, from, trigger)
				made[want] = true
			}
			if to != want.To {
				t.Errorf("%s: an item that was %s is %s, want %s", change.name, from, to, want.To)
			}
		}
		if !q.ended {
			end(cancelled)(q)
		}
	}
	for _, row := range protocol.FollowUpTransitions {
		if !made[row] {
			t.Errorf("nothing makes the transition %s of an item that is %s", row.Trigger, row.From)
		}
	}
}

// transition returns the transition of the table.
func transition(t *testing.T, from protocol.FollowUpState, trigger protocol.FollowUpTrigger) protocol.Transition[protocol.FollowUpState, protocol.FollowUpTrigger] {
	t.Helper()
	for _, row := range protocol.FollowUpTransitions {
		if row.From == from && row.Trigger == trigger {
			return row
		}
	}
	t.Fatalf("the table has no transition %s from %s", trigger, from)
	return protocol.Transition[protocol.FollowUpState, protocol.FollowUpTrigger]{}
}
