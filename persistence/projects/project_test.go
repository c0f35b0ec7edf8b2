package projects_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/projects"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func newProject(t testing.TB, db *persistence.Stores, account protocol.AccountID, name string) *protocol.Project {
	t.Helper()
	project, err := db.Projects.CreateProject(t.Context(), account, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func newConversation(t testing.TB, db *persistence.Stores, account protocol.AccountID, project *protocol.ProjectID) *protocol.Conversation {
	t.Helper()
	c, err := db.Conversations.CreateConversation(t.Context(), account, &conversations.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: "A", ProjectID: project,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readProject(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ProjectID) *protocol.Project {
	t.Helper()
	project, err := db.Projects.Project(t.Context(), account, id)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func deleteProject(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ProjectID) *protocol.Project {
	t.Helper()
	version := readProject(t, db, account, id).Version
	project, live, err := db.Projects.DeleteProject(t.Context(), account, &projects.Deletion{Change: projects.Change{ProjectID: id, Version: &version}})
	if err != nil || len(live) > 0 {
		t.Fatalf("deleting: live %v, %v", live, err)
	}
	return project
}

func restoreProject(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ProjectID) *protocol.Project {
	t.Helper()
	version := readProject(t, db, account, id).Version
	project, err := db.Projects.RestoreProject(t.Context(), account, &projects.Change{ProjectID: id, Version: &version}, audit.Requester{})
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// kindsOf returns the kinds of the work history of a project, the oldest first.
func kindsOf(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ProjectID) (kinds []protocol.WorkKind) {
	t.Helper()
	for after := (*protocol.WorkID)(nil); ; {
		page, next, err := db.Projects.ListWork(t.Context(), account, id, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, work := range page {
			kinds = append(kinds, work.Kind)
		}
		if after = next; next == nil {
			slices.Reverse(kinds)
			return kinds
		}
	}
}

func TestChangesOfAProjectFollowTheVersionRule(t *testing.T) {
	db := pgtest.New(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	id := newProject(t, db, account, "First").ProjectID
	by := func(version ...int64) *projects.Change {
		change := &projects.Change{ProjectID: id}
		if len(version) > 0 {
			change.Version = &version[0]
		}
		return change
	}
	rename := func(account protocol.AccountID, change *projects.Change, name string) (*protocol.Project, error) {
		return db.Projects.Rename(t.Context(), account, change, name)
	}
	archive := func(change *projects.Change, archived bool) (*protocol.Project, error) {
		return db.Projects.SetArchived(t.Context(), account, change, archived)
	}
	for _, step := range []struct {
		name    string
		run     func() (*protocol.Project, error)
		code    protocol.Code // empty: succeeds
		version int64         // afterwards
	}{
		{"another account", func() (*protocol.Project, error) { return rename(other, by(1), "Theirs") }, protocol.CodeNotFound, 1},
		{"no version", func() (*protocol.Project, error) { return rename(account, by(), "Second") }, protocol.CodeVersionRequired, 1},
		{"a stale version", func() (*protocol.Project, error) { return rename(account, by(7), "Second") }, protocol.CodeStaleVersion, 1},
		{"the stored name", func() (*protocol.Project, error) { return rename(account, by(1), "First") }, "", 1},
		{"the stored name without a version", func() (*protocol.Project, error) { return rename(account, by(), "First") }, protocol.CodeVersionRequired, 1},
		{"a name", func() (*protocol.Project, error) { return rename(account, by(1), "Second") }, "", 2},
		{"a repetition", func() (*protocol.Project, error) { return rename(account, by(1), "Second") }, protocol.CodeStaleVersion, 2},
		{"not archived", func() (*protocol.Project, error) { return archive(by(2), false) }, "", 2},
		{"not archived, without a version", func() (*protocol.Project, error) { return archive(by(), false) }, protocol.CodeVersionRequired, 2},
		{"archived", func() (*protocol.Project, error) { return archive(by(2), true) }, "", 3},
		{"a name in the archive", func() (*protocol.Project, error) { return rename(account, by(3), "Third") }, protocol.CodeConflict, 3},
		{"active again", func() (*protocol.Project, error) { return archive(by(3), false) }, "", 4},
		{"restored", func() (*protocol.Project, error) {
			return db.Projects.RestoreProject(t.Context(), account, by(4), audit.Requester{})
		}, protocol.CodeConflict, 4},
		{"deleted", func() (*protocol.Project, error) { return deleteProject(t, db, account, id), nil }, "", 5},
		{"a name of a deleted one", func() (*protocol.Project, error) { return rename(account, by(5), "Third") }, protocol.CodeConflict, 5},
		{"the stored name of a deleted one", func() (*protocol.Project, error) { return rename(account, by(5), "Second") }, protocol.CodeConflict, 5},
		{"archiving a deleted one", func() (*protocol.Project, error) { return archive(by(5), true) }, protocol.CodeConflict, 5},
		{"deleted again", func() (*protocol.Project, error) {
			project, _, err := db.Projects.DeleteProject(t.Context(), account, &projects.Deletion{Change: *by(5)})
			return project, err
		}, protocol.CodeConflict, 5},
		{"restored by another account", func() (*protocol.Project, error) {
			return db.Projects.RestoreProject(t.Context(), other, by(5), audit.Requester{})
		}, protocol.CodeNotFound, 5},
		{"restored with a stale version", func() (*protocol.Project, error) {
			return db.Projects.RestoreProject(t.Context(), account, by(4), audit.Requester{})
		}, protocol.CodeStaleVersion, 5},
		{"restored", func() (*protocol.Project, error) { return restoreProject(t, db, account, id), nil }, "", 6},
	} {
		got, err := step.run()
		if step.code == "" && err != nil || step.code != "" && protocol.CodeOf(err) != step.code {
			t.Fatalf("%s: %v, want %q", step.name, err, step.code)
		}
		var conflict *protocol.Error
		if errors.As(err, &conflict) && step.code != protocol.CodeNotFound {
			got, _ = conflict.Current.(*protocol.Project)
		}
		if stored := readProject(t, db, account, id); stored.Version != step.version || step.code != protocol.CodeNotFound && (got == nil || got.Version != step.version) {
			t.Errorf("%s: stored %+v, returned %+v", step.name, stored, got)
		}
	}
	want := []protocol.WorkKind{
		protocol.WorkProjectCreated, protocol.WorkProjectRenamed, protocol.WorkProjectArchived, protocol.WorkProjectUnarchived,
		protocol.WorkProjectDeleted, protocol.WorkProjectRestored,
	}
	if got := kindsOf(t, db, account, id); !slices.Equal(got, want) {
		t.Errorf("the work history is %v, want %v", got, want)
	}
	if _, _, err := db.Projects.ListWork(t.Context(), other, id, nil, 10); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account reads the work history: %v", err)
	}
}

func TestARestoredProjectIsArchivedIfItWas(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	project := newProject(t, db, account, "A")
	if _, err := db.Projects.SetArchived(t.Context(), account, &projects.Change{ProjectID: project.ProjectID, Version: &project.Version}, true); err != nil {
		t.Fatal(err)
	}
	if deleted := deleteProject(t, db, account, project.ProjectID); deleted.State != protocol.ProjectDeleted || deleted.PurgeAt == nil {
		t.Errorf("%+v", deleted)
	}
	if restored := restoreProject(t, db, account, project.ProjectID); restored.State != protocol.ProjectArchived || restored.PurgeAt != nil {
		t.Errorf("%+v", restored)
	}
}

func TestProjectsAreListedByState(t *testing.T) {
	db := pgtest.New(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	newProject(t, db, other, "theirs")
	ids := map[string]protocol.ProjectID{}
	for _, name := range []string{"a", "b", "c", "d"} {
		ids[name] = newProject(t, db, account, name).ProjectID
	}
	one := int64(1)
	if _, err := db.Projects.SetArchived(t.Context(), account, &projects.Change{ProjectID: ids["b"], Version: &one}, true); err != nil {
		t.Fatal(err)
	}
	deleteProject(t, db, account, ids["c"])
	for state, want := range map[protocol.ProjectState]string{
		protocol.ProjectActive: "d a", protocol.ProjectArchived: "b", protocol.ProjectDeleted: "c", "": "d c b a",
	} {
		var names []string
		for after := (*protocol.ProjectID)(nil); ; {
			page, next, err := db.Projects.ListProjects(t.Context(), account, state, after, 1)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page {
				names = append(names, page[i].Name)
			}
			if after = next; next == nil {
				break
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %s, want %s", state, got, want)
		}
	}
}

func TestSettingsAndInstructionsHaveVersionsOfTheirOwn(t *testing.T) {
	db := pgtest.New(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	id := newProject(t, db, account, "A").ProjectID
	coding, none, one := protocol.ProfileCoding, int64(0), int64(1)
	change := func(version *int64) *projects.Change { return &projects.Change{ProjectID: id, Version: version} }
	settings := protocol.DefaultProjectSettings()
	off := false
	settings.DefaultProfile, settings.Tools = &coding, protocol.ToolChoice{Off: []string{"calculate"}, WebSearch: &off}

	_, err := db.Projects.PutSettings(t.Context(), account, change(nil), settings)
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	_, err = db.Projects.PutSettings(t.Context(), other, change(&none), settings)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	stored, err := db.Projects.PutSettings(t.Context(), account, change(&none), settings)
	if err != nil || stored.Version != 1 || *stored.DefaultProfile != coding {
		t.Fatalf("%+v, %v", stored, err)
	}
	if stored, err = db.Projects.PutSettings(t.Context(), account, change(&one), settings); err != nil || stored.Version != 1 {
		t.Fatalf("repeated: %+v, %v", stored, err)
	}
	_, err = db.Projects.PutSettings(t.Context(), account, change(nil), settings)
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	_, err = db.Projects.PutSettings(t.Context(), account, change(&none), protocol.DefaultProjectSettings())
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	if stored, err := db.Projects.Settings(t.Context(), account, id); err != nil || stored.Version != 1 || !slices.Equal(stored.Tools.Off, []string{"calculate"}) || stored.Tools.WebSearch == nil || *stored.Tools.WebSearch {
		t.Errorf("%+v, %v", stored, err)
	}

	_, err = db.Projects.PutInstructions(t.Context(), account, change(&one), "Be brief.")
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	_, err = db.Projects.PutInstructions(t.Context(), other, change(&none), "Be brief.")
	storetest.WantCode(t, err, protocol.CodeNotFound)
	for i, content := range []string{"Be brief.", "Be long.", ""} {
		version := int64(i)
		stored, err := db.Projects.PutInstructions(t.Context(), account, change(&version), content)
		if err != nil || stored.Version != version+1 || stored.Content != content || stored.UpdatedAt == nil {
			t.Fatalf("%+v, %v", stored, err)
		}
	}
	three := int64(3)
	_, err = db.Projects.PutInstructions(t.Context(), account, change(nil), "")
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	if stored, err := db.Projects.PutInstructions(t.Context(), account, change(&three), ""); err != nil || stored.Version != 3 {
		t.Errorf("repeated: %+v, %v", stored, err)
	}
	if old, err := db.Projects.Instructions(t.Context(), account, id, &one); err != nil || old.Content != "Be brief." {
		t.Errorf("the first version: %+v, %v", old, err)
	}
	_, err = db.Projects.Instructions(t.Context(), other, id, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	if project := readProject(t, db, account, id); project.Version != 1 {
		t.Errorf("the version of the project is %d", project.Version)
	}
	if _, err := db.Projects.SetArchived(t.Context(), account, change(&one), true); err != nil {
		t.Fatal(err)
	}
	three = 3
	_, err = db.Projects.PutInstructions(t.Context(), account, change(&three), "New.")
	storetest.WantCode(t, err, protocol.CodeConflict)
	_, err = db.Projects.PutSettings(t.Context(), account, change(&one), protocol.DefaultProjectSettings())
	storetest.WantCode(t, err, protocol.CodeConflict)
}

func TestConversationsMoveUnderTheVersionRule(t *testing.T) {
	db := pgtest.New(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	a, b := newProject(t, db, account, "A").ProjectID, newProject(t, db, account, "B").ProjectID
	theirs := newProject(t, db, other, "Theirs").ProjectID
	missing := protocol.NewProjectID()
	c := newConversation(t, db, account, nil)
	move := func(account protocol.AccountID, project *protocol.ProjectID, version int64) (*protocol.Conversation, error) {
		request := &conversations.Move{ConversationID: c.ConversationID, ProjectID: project}
		if version > 0 {
			request.Version = &version
		}
		return db.Conversations.MoveConversation(t.Context(), account, request)
	}
	for _, step := range []struct {
		name    string
		account protocol.AccountID
		to      *protocol.ProjectID
		version int64
		code    protocol.Code
		want    int64
	}{
		{"of another account", other, &theirs, 1, protocol.CodeNotFound, 1},
		{"into another account's project", account, &theirs, 1, protocol.CodeNotFound, 1},
		{"into a missing project", account, &missing, 1, protocol.CodeNotFound, 1},
		{"out of no project", account, nil, 1, "", 1},
		{"out of no project, without a version", account, nil, 0, protocol.CodeVersionRequired, 1},
		{"without a version", account, &a, 0, protocol.CodeVersionRequired, 1},
		{"in", account, &a, 1, "", 2},
		{"again", account, &a, 2, "", 2},
		{"again, without a version", account, &a, 0, protocol.CodeVersionRequired, 2},
		{"a stale version", account, &b, 1, protocol.CodeStaleVersion, 2},
		{"across", account, &b, 2, "", 3},
		{"back", account, &a, 3, "", 4},
		{"out", account, nil, 4, "", 5},
		{"in again", account, &b, 5, "", 6},
	} {
		got, err := move(step.account, step.to, step.version)
		if step.code == "" && err != nil || step.code != "" && protocol.CodeOf(err) != step.code {
			t.Fatalf("%s: %v, want %q", step.name, err, step.code)
		}
		if err == nil && got.Version != step.want {
			t.Errorf("%s: %+v", step.name, got)
		}
	}
	one := int64(1)
	if _, err := db.Projects.SetArchived(t.Context(), account, &projects.Change{ProjectID: a, Version: &one}, true); err != nil {
		t.Fatal(err)
	}
	_, err := move(account, &a, 6)
	storetest.WantCode(t, err, protocol.CodeConflict)
	_, err = db.Conversations.CreateConversation(t.Context(), account, &conversations.NewConversation{ConversationID: protocol.NewConversationID(), ProjectID: &a})
	storetest.WantCode(t, err, protocol.CodeConflict)
	if n := readProject(t, db, account, a).ConversationCount; n != 0 {
		t.Errorf("A counts %d conversations", n)
	}
	if n := readProject(t, db, account, b).ConversationCount; n != 1 {
		t.Errorf("B counts %d conversations", n)
	}
	want := []protocol.WorkKind{
		protocol.WorkProjectCreated, protocol.WorkConversationIn, protocol.WorkConversationOut, protocol.WorkConversationIn, protocol.WorkConversationOut,
		protocol.WorkProjectArchived,
	}
	if got := kindsOf(t, db, account, a); !slices.Equal(got, want) {
		t.Errorf("the work history of A is %v, want %v", got, want)
	}
	targets, _, err := db.Conversations.ListMoveTargets(t.Context(), account, c.ConversationID, nil, 10)
	if err != nil || len(targets) != 0 {
		t.Errorf("targets %+v, %v: one project is archived, and the conversation is in the other", targets, err)
	}
	third := newProject(t, db, account, "C").ProjectID
	if targets, _, err = db.Conversations.ListMoveTargets(t.Context(), account, c.ConversationID, nil, 10); err != nil || len(targets) != 1 || targets[0].ProjectID != third {
		t.Errorf("targets %+v, %v", targets, err)
	}
	_, _, err = db.Conversations.ListMoveTargets(t.Context(), other, c.ConversationID, nil, 10)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestATemporaryConversationCannotMove(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	project := newProject(t, db, account, "A").ProjectID
	c, err := db.Conversations.CreateConversation(t.Context(), account, &conversations.NewConversation{ConversationID: protocol.NewConversationID(), Temporary: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Conversations.MoveConversation(t.Context(), account, &conversations.Move{ConversationID: c.ConversationID, ProjectID: &project, Version: &c.Version})
	storetest.WantCode(t, err, protocol.CodeConflict)
	if targets, _, err := db.Conversations.ListMoveTargets(t.Context(), account, c.ConversationID, nil, 10); err != nil || len(targets) != 0 {
		t.Errorf("targets %+v, %v", targets, err)
	}
}

func TestSimultaneousMovesLeaveTheCountsRight(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	a, b := newProject(t, db, account, "A").ProjectID, newProject(t, db, account, "B").ProjectID
	var all []*protocol.Conversation
	for i := range 8 {
		project := &a
		if i%2 == 0 {
			project = &b
		}
		all = append(all, newConversation(t, db, account, project))
	}
	for _, err := range storetest.Together(len(all), func(i int) error {
		to := &b
		if i%2 == 0 {
			to = &a
		}
		_, err := db.Conversations.MoveConversation(t.Context(), account, &conversations.Move{ConversationID: all[i].ConversationID, ProjectID: to, Version: &all[i].Version})
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	for _, id := range []protocol.ProjectID{a, b} {
		if n := readProject(t, db, account, id).ConversationCount; n != 4 {
			t.Errorf("%d conversations are counted", n)
		}
	}
	if _, err := db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: all[0].ConversationID}); err != nil {
		t.Fatal(err)
	}
	if n := readProject(t, db, account, a).ConversationCount; n != 3 {
		t.Errorf("after a deletion, %d conversations are counted", n)
	}
	kinds := kindsOf(t, db, account, a)
	if kinds[len(kinds)-1] != protocol.WorkConversationDeleted {
		t.Errorf("the work history is %v", kinds)
	}
}

func TestADeletionAndMovesExcludeEachOther(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	project := newProject(t, db, account, "A")
	inside, outside := newConversation(t, db, account, &project.ProjectID), newConversation(t, db, account, nil)
	failures := storetest.Together(3, func(i int) error {
		switch i {
		case 0:
			_, _, err := db.Projects.DeleteProject(t.Context(), account, &projects.Deletion{Change: projects.Change{ProjectID: project.ProjectID, Version: &project.Version}})
			return err
		case 1:
			_, err := db.Conversations.MoveConversation(t.Context(), account, &conversations.Move{ConversationID: inside.ConversationID, Version: &inside.Version})
			return err
		default:
			_, err := db.Conversations.MoveConversation(t.Context(), account, &conversations.Move{ConversationID: outside.ConversationID, ProjectID: &project.ProjectID, Version: &outside.Version})
			return err
		}
	})
	if failures[0] != nil {
		t.Fatal(failures[0])
	}
	for i, c := range []*protocol.Conversation{inside, outside} {
		err := failures[i+1]
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("move %d: %v", i, err)
		}
		_, readErr := db.Conversations.Conversation(t.Context(), account, c.ConversationID)
		if visible := readErr == nil; visible != (i == 0 && err == nil || i == 1 && err != nil) {
			t.Errorf("move %d: %v, and the conversation is visible: %v", i, err, visible)
		}
	}
}

func TestAPurgeErasesADueProjectInSteps(t *testing.T) {
	db, database := openDatabase(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	project, kept := newProject(t, db, account, "A").ProjectID, newProject(t, db, other, "Kept").ProjectID
	none := int64(0)
	if _, err := db.Projects.PutInstructions(t.Context(), account, &projects.Change{ProjectID: project, Version: &none}, "Be brief."); err != nil {
		t.Fatal(err)
	}
	var ids []protocol.ConversationID
	for range 5 {
		ids = append(ids, newConversation(t, db, account, &project).ConversationID)
	}
	newConversation(t, db, other, &kept)
	deleteProject(t, db, account, project)
	purge := func() bool {
		done, err := db.Projects.PurgeProject(t.Context(), account, project, 2, db.Conversations.EraseOfProject)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if !purge() || readProject(t, db, account, project).ConversationCount != 5 {
		t.Fatal("a project was purged before its time")
	}
	database.Admin(t, `update projects set purge_at = now() - interval '1 second' where project_id = $1`, project)
	version := int64(2)
	_, err := db.Projects.RestoreProject(t.Context(), account, &projects.Change{ProjectID: project, Version: &version}, audit.Requester{})
	storetest.WantCode(t, err, protocol.CodeConflict)
	steps := 1
	for ; !purge(); steps++ {
	}
	if steps < 4 {
		t.Errorf("12 rows were erased in %d steps of 2", steps)
	}
	if !purge() { // a repetition finds nothing
		t.Error("a purged project is purged again")
	}
	_, err = db.Projects.Project(t.Context(), account, project)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	for _, id := range ids {
		for done := false; !done; {
			if done, err = db.Conversations.PurgeConversation(t.Context(), account, id, 100); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := readProject(t, db, other, kept).ConversationCount; n != 1 {
		t.Errorf("the other account has %d conversations", n)
	}
	events := eventsOf(t, db, account)
	if !slices.Contains(events, string(projects.EventProjectDeleted)) || !slices.Contains(events, string(projects.EventProjectPurged)) {
		t.Errorf("the audit contains %v", events)
	}
}

func TestTheListFollowsADeletionAndARestorationBeforeTheIndexesDo(t *testing.T) {
	db, database := openDatabase(t)
	account := pgtest.Account(t, db)
	project := newProject(t, db, account, "A").ProjectID
	const many = 450 // more than one deletion moves at once
	insertConversations(t, database, account, project, many)
	outside := newConversation(t, db, account, nil).ConversationID
	listed := func() (n int) {
		for after := (*conversations.ConversationPosition)(nil); ; {
			page, next, err := db.Conversations.ListConversations(t.Context(), account, &conversations.ConversationFilter{}, after, 100)
			if err != nil {
				t.Fatal(err)
			}
			n += len(page)
			if after = next; next == nil {
				return n
			}
		}
	}
	reindex := func() {
		for done := false; !done; {
			var err error
			if done, err = db.Projects.Reindex(t.Context(), account, project, 100); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := listed(); n != many+1 {
		t.Fatalf("%d conversations are listed", n)
	}
	deleteProject(t, db, account, project)
	if n := listed(); n != 1 {
		t.Errorf("after the deletion, %d conversations are listed", n)
	}
	restoreProject(t, db, account, project) // before the job has run
	reindex()
	if n := listed(); n != many+1 {
		t.Errorf("after the restoration, %d conversations are listed", n)
	}
	deleteProject(t, db, account, project)
	reindex()
	if page, _, err := db.Conversations.ListConversations(t.Context(), account, &conversations.ConversationFilter{ProjectID: &project}, nil, 100); err != nil || len(page) != 0 {
		t.Errorf("the list of the deleted project has %d conversations, %v", len(page), err)
	}
	restoreProject(t, db, account, project)
	page, _, err := db.Conversations.ListConversations(t.Context(), account, &conversations.ConversationFilter{}, nil, 100)
	if err != nil || len(page) != 100 {
		t.Fatalf("%d conversations, %v", len(page), err)
	}
	for i := range page[1:] { // the first pages are complete before the job has run
		if c := page[1+i]; c.ConversationID == outside {
			t.Errorf("the newest conversation is listed at %d", i+1)
		}
	}
	reindex()
	if n := listed(); n != many+1 {
		t.Errorf("after the job, %d conversations are listed", n)
	}
	if n := readProject(t, db, account, project).ConversationCount; n != many {
		t.Errorf("%d conversations are counted", n)
	}
}

func openDatabase(t *testing.T) (*persistence.Stores, pgtest.Database) {
	t.Helper()
	database := pgtest.NewDatabase(t)
	return database.Open(t), database
}

func insertConversations(t *testing.T, database pgtest.Database, account protocol.AccountID, project protocol.ProjectID, n int) {
	t.Helper()
	for _, sql := range []string{`
		insert into conversations (account_id, conversation_id, active_branch_id, project_id, last_activity_at)
		select $1, md5($2::uuid || '/' || n)::uuid, md5($2::uuid || '/' || n)::uuid, $2, now() - n * interval '1 second'
		from generate_series(1, $3::int) n`, `
		insert into branches (account_id, branch_id, conversation_id)
		select account_id, active_branch_id, conversation_id from conversations where account_id = $1 and project_id = $2 and $3::int > 0`} {
		database.Admin(t, sql, account, project, n)
	}
}

func eventsOf(t *testing.T, db *persistence.Stores, account protocol.AccountID) []string {
	t.Helper()
	events, err := pg.Rows(t.Context(), db.DB, account, pgx.RowTo[string], `select event from audit where account_id = $1 order by n`, account)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestAProjectIsFoundByItsNameAmongOneHundredThousandWithoutReadingTheirNames(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	kept := newProject(t, db, account, "Sea and Shore")
	archived := newProject(t, db, account, "ÉTUDE")
	database.Admin(t, `alter table projects disable trigger user`) // no triggers: the rows are only read
	database.Admin(t, `insert into projects (account_id, project_id, name)
		select $1, gen_random_uuid(), case when n % 2 = 0 then 'Project ' || n else 'The same' end from generate_series(1, 100000) n`, pg.UUIDText(account))
	database.Admin(t, `analyze projects`)
	for name, want := range map[string]*protocol.ProjectID{"sea AND shore": &kept.ProjectID, "étude": &archived.ProjectID, kept.ProjectID.String(): &kept.ProjectID, "nowhere": nil} {
		got, err := db.Projects.Named(t.Context(), account, name)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"the same", "nowhere", "project 500"} {
		var pages int
		err := db.DB.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
			rows, err := tx.Query(ctx, "explain (analyze, buffers, timing off, format json) "+projects.NamedSQL, pgx.QueryExecModeSimpleProtocol,
				pgx.NamedArgs{"account": pg.UUIDText(account), "name": name, "project": nil})
			if err != nil {
				return err
			}
			plan, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			var explained []struct {
				Plan struct {
					Hit  int `json:"Shared Hit Blocks"`
					Read int `json:"Shared Read Blocks"`
				}
			}
			err = json.Unmarshal([]byte(plan), &explained)
			if pages = explained[0].Plan.Hit + explained[0].Plan.Read; pages > 30 {
				t.Error(plan)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if pages > 30 {
			t.Errorf("%s: %d pages are read", name, pages)
		}
	}
}
