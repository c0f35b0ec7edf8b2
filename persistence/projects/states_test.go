package projects_test

import (
	"maps"
	"slices"
	"testing"

	"turnstone/persistence/audit"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

func TestAProjectMovesOnlyAsTheTableOfStatesAllows(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	changes := map[protocol.ProjectTrigger]func(*projects.Change){
		protocol.ProjectArchive:   func(change *projects.Change) { _, _ = db.Projects.SetArchived(t.Context(), account, change, true) },
		protocol.ProjectUnarchive: func(change *projects.Change) { _, _ = db.Projects.SetArchived(t.Context(), account, change, false) },
		protocol.ProjectDelete: func(change *projects.Change) {
			_, _, _ = db.Projects.DeleteProject(t.Context(), account, &projects.Deletion{Change: *change})
		},
		protocol.ProjectRestore: func(change *projects.Change) {
			_, _ = db.Projects.RestoreProject(t.Context(), account, change, audit.Requester{})
		},
	}
	changes[protocol.ProjectRestoreArchived] = changes[protocol.ProjectRestore]
	pgtest.CheckTransitions(t, protocol.ProjectTransitions, protocol.ProjectStates, slices.Collect(maps.Keys(changes)),
		func(state protocol.ProjectState, next protocol.ProjectTrigger) pgtest.Object[protocol.ProjectState, protocol.ProjectTrigger] {
			id := newProject(t, db, account, "A").ProjectID
			object := pgtest.Object[protocol.ProjectState, protocol.ProjectTrigger]{
				State: func() protocol.ProjectState { return readProject(t, db, account, id).State },
				Fire: func(trigger protocol.ProjectTrigger) {
					changes[trigger](&projects.Change{ProjectID: id, Version: &readProject(t, db, account, id).Version})
				},
			}
			if state == protocol.ProjectArchived || state == protocol.ProjectDeleted && next == protocol.ProjectRestoreArchived {
				object.Fire(protocol.ProjectArchive)
			}
			if state == protocol.ProjectDeleted {
				object.Fire(protocol.ProjectDelete)
			}
			return object
		})
}
