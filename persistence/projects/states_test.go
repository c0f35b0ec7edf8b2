package projects_test

import (
	"context"
	"testing"

	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// stateChanges are the requests that change the state of a project. Whether one is refused is tested elsewhere.
var stateChanges = map[protocol.ProjectTrigger]func(context.Context, *persistence.Stores, protocol.AccountID, *projects.Change){
	protocol.ProjectArchive: func(ctx context.Context, db *persistence.Stores, account protocol.AccountID, change *projects.Change) {
		_, _ = db.Projects.SetArchived(ctx, account, change, true)
	},
	protocol.ProjectUnarchive: func(ctx context.Context, db *persistence.Stores, account protocol.AccountID, change *projects.Change) {
		_, _ = db.Projects.SetArchived(ctx, account, change, false)
	},
	protocol.ProjectDelete: func(ctx context.Context, db *persistence.Stores, account protocol.AccountID, change *projects.Change) {
		_, _, _ = db.Projects.DeleteProject(ctx, account, &projects.Deletion{Change: *change})
	},
	protocol.ProjectRestore: func(ctx context.Context, db *persistence.Stores, account protocol.AccountID, change *projects.Change) {
		_, _ = db.Projects.RestoreProject(ctx, account, change, audit.Requester{})
	},
}

func TestAProjectMovesOnlyAsTheTableOfStatesAllows(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	made := map[protocol.Transition[protocol.ProjectState, protocol.ProjectTrigger]]bool{}
	for _, from := range []struct {
		state    protocol.ProjectState
		archived bool // a deleted one: before it was deleted
	}{{protocol.ProjectActive, false}, {protocol.ProjectArchived, true}, {protocol.ProjectDeleted, false}, {protocol.ProjectDeleted, true}} {
		for trigger, change := range stateChanges {
			id := newProject(t, db, account, "A").ProjectID
			request := func() *projects.Change {
				return &projects.Change{ProjectID: id, Version: &readProject(t, db, account, id).Version}
			}
			if from.archived {
				stateChanges[protocol.ProjectArchive](t.Context(), db, account, request())
			}
			if from.state == protocol.ProjectDeleted {
				stateChanges[protocol.ProjectDelete](t.Context(), db, account, request())
			}
			if state := readProject(t, db, account, id).State; state != from.state {
				t.Fatalf("the project is %s, want %s", state, from.state)
			}
			change(t.Context(), db, account, request())
			if trigger == protocol.ProjectRestore && from.archived {
				trigger = protocol.ProjectRestoreArchived
			}
			want, legal := protocol.NextProjectState(from.state, trigger)
			if !legal {
				want = from.state
			}
			made[protocol.Transition[protocol.ProjectState, protocol.ProjectTrigger]{From: from.state, Trigger: trigger, To: want}] = legal
			if state := readProject(t, db, account, id).State; state != want {
				t.Errorf("%s: a project that was %s is %s, want %s", trigger, from.state, state, want)
			}
		}
	}
	for _, row := range protocol.ProjectTransitions {
		if !made[row] {
			t.Errorf("nothing makes the transition %s of a project that is %s", row.Trigger, row.From)
		}
	}
}
