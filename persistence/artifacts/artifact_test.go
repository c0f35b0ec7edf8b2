package artifacts_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/persistence"
	"turnstone/persistence/artifacts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/files"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/projects"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// fixture is a conversation with a live turn, whose model writes.
type fixture struct {
	*storetest.World
	turn  *storetest.Turn
	calls int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := storetest.NewWorld(t)
	return &fixture{World: w, turn: w.Start(w.Request(nil, "write something"))}
}

// write returns a call that creates an artifact.
func (f *fixture) write(kind protocol.ArtifactKind, content string) *turnlog.ArtifactWrite {
	f.calls++
	spec := f.turn.Spec
	return &turnlog.ArtifactWrite{
		Scope:  turnlog.Scope{AccountID: f.Account, ConversationID: spec.ConversationID},
		TurnID: spec.TurnID, ToolID: protocol.DeriveToolID(spec.TurnID, f.calls), Kind: kind, Title: "Plan", Content: &content,
	}
}

// edit returns a call that changes an artifact.
func (f *fixture) edit(of *protocol.Artifact, edits ...turnlog.Replacement) *turnlog.ArtifactWrite {
	w := f.write("", "")
	w.Artifact, w.BaseVersion, w.Title, w.Content, w.Edits = of.ArtifactID, of.Version, "", nil, edits
	return w
}

func (f *fixture) written(w *turnlog.ArtifactWrite) *protocol.Artifact {
	f.Helper()
	made, err := f.DB.Artifacts.WriteByCall(f.Context(), w)
	f.Must(err)
	return made
}

// refused checks that a call is refused with a code, and that its text has all of the words.
func (f *fixture) refused(w *turnlog.ArtifactWrite, code protocol.ToolErrorCode, words ...string) {
	f.Helper()
	_, err := f.DB.Artifacts.WriteByCall(f.Context(), w)
	var refusal *turnlog.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		f.Fatalf("%v, want %s", err, code)
	}
	for _, word := range words {
		if !strings.Contains(refusal.Detail, word) {
			f.Errorf("%q has no %q", refusal.Detail, word)
		}
	}
}

func (f *fixture) put(a *protocol.Artifact, content string) (*protocol.Artifact, error) {
	return f.DB.Artifacts.Put(f.Context(), f.Account, &artifacts.Change{ArtifactID: a.ArtifactID, Version: &a.Version}, "", content)
}

func (f *fixture) wantContent(id protocol.ArtifactID, version int64, want string) {
	f.Helper()
	got, err := f.DB.Artifacts.Content(f.Context(), f.Account, id, nil)
	f.Must(err)
	if got.Content != want || got.Version != version || got.Bytes != len(want) {
		f.Errorf("version %d is %q, want %d and %q", got.Version, got.Content, version, want)
	}
}

func TestTheModelAndTheUserWriteVersions(t *testing.T) {
	f := newFixture(t)
	made := f.written(f.write(protocol.ArtifactDocument, "one\ntwo\n"))
	if made.Version != 1 || made.CreatedBy != protocol.ByModel || *made.MessageID != f.turn.Spec.AssistantMessageID || made.Title != "Plan" || made.Bytes != 8 || len(made.SHA256) != 64 {
		t.Fatalf("%+v", made)
	}
	second := f.written(f.edit(made, turnlog.Replacement{Old: "two", New: "three"}, turnlog.Replacement{Old: "one\n", New: ""}))
	f.wantContent(made.ArtifactID, 2, "three\n")
	third, err := f.put(second, "by hand\n")
	f.Must(err)
	if third.Version != 3 || third.CreatedBy != protocol.ByUser {
		t.Errorf("%+v", third)
	}
	again, err := f.put(third, "by hand\n")
	f.Must(err)
	if again.Version != 3 {
		t.Errorf("a repetition made version %d", again.Version)
	}
	restored, err := f.DB.Artifacts.Restore(t.Context(), f.Account, &artifacts.Change{ArtifactID: made.ArtifactID, Version: &third.Version}, 1)
	f.Must(err)
	f.wantContent(made.ArtifactID, 4, "one\ntwo\n")
	versions, next, err := f.DB.Artifacts.Versions(t.Context(), f.Account, made.ArtifactID, nil, 3)
	f.Must(err)
	if len(versions) != 3 || *next != 2 || versions[0].CreatedBy != protocol.ByUser || versions[2].MessageID == nil || versions[0].SHA256 != made.SHA256 || restored.Version != 4 {
		t.Errorf("%+v, %v", versions, next)
	}
	diff, err := f.DB.Artifacts.Diff(t.Context(), f.Account, made.ArtifactID, 2, 4)
	f.Must(err)
	if diff.Added != 2 || diff.Removed != 1 || diff.From != 2 || diff.To != 4 {
		t.Errorf("%+v", diff)
	}
}

func TestAWriteOnAStaleBaseOverwritesNothingAndShowsWhatChanged(t *testing.T) {
	f := newFixture(t)
	made := f.written(f.write(protocol.ArtifactDocument, "one\ntwo\nthree\n"))
	_, err := f.put(made, "one\nTWO by the user\nthree\n")
	f.Must(err)
	f.refused(f.edit(made, turnlog.Replacement{Old: "three", New: "3"}), turnlog.RefusedStale, "version 2", "the user wrote", "-two", "+TWO by the user", "version 1")
	whole := f.write("", "all new")
	whole.Artifact, whole.BaseVersion = made.ArtifactID, 1
	f.refused(whole, turnlog.RefusedStale)
	whole.BaseVersion = 7
	f.refused(whole, turnlog.RefusedStale, "no version 7")
	f.wantContent(made.ArtifactID, 2, "one\nTWO by the user\nthree\n")

	_, err = f.put(made, "stale")
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	var conflict *protocol.Error
	if errors.As(err, &conflict); conflict.Current.(*protocol.Artifact).Version != 2 {
		t.Errorf("current is %+v", conflict.Current)
	}
	_, err = f.DB.Artifacts.Put(t.Context(), f.Account, &artifacts.Change{ArtifactID: made.ArtifactID}, "", "no version")
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	_, err = f.DB.Artifacts.Restore(t.Context(), f.Account, &artifacts.Change{ArtifactID: made.ArtifactID, Version: &made.Version}, 1)
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
}

func TestWhatACallHasWrittenIsFound(t *testing.T) {
	f := newFixture(t)
	w := f.write(protocol.ArtifactTable, "a,b\n")
	for _, written := range []bool{false, true} {
		if written {
			f.written(w)
		}
		all, err := f.DB.Artifacts.WrittenByCall(t.Context(), w.Scope, []protocol.ToolID{protocol.DeriveWriteID(w.ToolID, 1), w.ToolID})
		found := all[w.ToolID]
		if err != nil || (len(all) == 1) != written || written && (found == nil || found.Title != "Plan" || found.Version != 1) {
			t.Errorf("written: %t: %+v, %v", written, all, err)
		}
	}
}

func TestACallThatRunsAgainWritesOnce(t *testing.T) {
	f := newFixture(t)
	create := f.write(protocol.ArtifactDocument, "one")
	made := f.written(create)
	if again := f.written(create); again.ArtifactID != made.ArtifactID || again.Version != 1 {
		t.Errorf("%+v", again)
	}
	edit := f.edit(made, turnlog.Replacement{Old: "one", New: "one one"})
	f.written(edit)
	current, err := f.DB.Artifacts.Artifact(t.Context(), f.Account, made.ArtifactID)
	f.Must(err)
	_, err = f.put(current, "later")
	f.Must(err)
	again := f.written(edit)
	if again.Version != 2 || again.CreatedBy != protocol.ByModel || again.Bytes != 7 {
		t.Errorf("the call gets %+v", again)
	}
	f.wantContent(made.ArtifactID, 3, "later")
	// Two runs at the same time, as after a takeover of a node that is not dead.
	both := f.write(protocol.ArtifactDocument, "both")
	for _, err := range storetest.Together(8, func(int) error {
		_, err := f.DB.Artifacts.WriteByCall(t.Context(), both)
		return err
	}) {
		f.Must(err)
	}
	if n := f.Count(`select count(*) from artifact_versions`); n != 4 {
		t.Errorf("%d versions", n)
	}
}

func TestAWrongWriteTellsTheModelWhy(t *testing.T) {
	f := newFixture(t)
	made := f.written(f.write(protocol.ArtifactDocument, "a b a"))
	f.refused(f.edit(made, turnlog.Replacement{Old: "a", New: "c"}), turnlog.RefusedInput, "edit 1 occurs 2 times")
	f.refused(f.edit(made, turnlog.Replacement{Old: "b", New: "c"}, turnlog.Replacement{Old: "b", New: "d"}), turnlog.RefusedInput, "edit 2 does not occur")
	f.refused(f.edit(made, turnlog.Replacement{Old: "", New: "c"}), turnlog.RefusedInput)
	f.refused(f.edit(made, turnlog.Replacement{Old: "b", New: strings.Repeat("x", protocol.MaxArtifactBytes)}), turnlog.RefusedSize, "at most 1048576", "Nothing was stored")
	f.refused(f.write(protocol.ArtifactDocument, strings.Repeat("x", protocol.MaxArtifactBytes+1)), turnlog.RefusedSize)
	f.refused(f.write(protocol.ArtifactTable, "a,b\n1"), turnlog.RefusedInput, "line 2", "first row, which has 2")
	f.refused(f.write(protocol.ArtifactDocument, "a\x00"), turnlog.RefusedInput)
	missing := f.edit(&protocol.Artifact{ArtifactID: protocol.NewArtifactID(), Version: 1}, turnlog.Replacement{Old: "a", New: "b"})
	f.refused(missing, turnlog.RefusedMissing)
	f.wantContent(made.ArtifactID, 1, "a b a")
	if n := f.Count(`select count(*) from artifacts`); n != 1 {
		t.Errorf("%d artifacts", n)
	}
	largest := f.written(f.write(protocol.ArtifactDocument, strings.Repeat("ü", protocol.MaxArtifactBytes/2)))
	if largest.Bytes != protocol.MaxArtifactBytes {
		t.Errorf("%+v", largest)
	}
}

func TestACallReachesOnlyTheArtifactsOfItsConversation(t *testing.T) {
	f := newFixture(t)
	made := f.written(f.write(protocol.ArtifactDocument, "mine"))
	elsewhere := storetest.NewConversation(t, f.DB, f.Account, "elsewhere").ConversationID
	w := f.edit(made, turnlog.Replacement{Old: "mine", New: "yours"})
	w.ConversationID = elsewhere
	f.refused(w, turnlog.RefusedMissing)
	_, err := f.DB.Artifacts.ReadForCall(t.Context(), w.Scope, made.ArtifactID, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	w.Scope = turnlog.Scope{AccountID: f.OtherAccount(), ConversationID: f.turn.Spec.ConversationID}
	f.refused(w, turnlog.RefusedMissing)
	_, err = f.DB.Artifacts.ReadForCall(t.Context(), w.Scope, made.ArtifactID, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = f.DB.Artifacts.Artifact(t.Context(), w.AccountID, made.ArtifactID)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, _, err = f.DB.Artifacts.List(t.Context(), w.AccountID, f.turn.Spec.ConversationID, nil, 10)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, _, err = f.DB.Artifacts.Versions(t.Context(), w.AccountID, made.ArtifactID, nil, 10)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = f.DB.Artifacts.Put(t.Context(), w.AccountID, &artifacts.Change{ArtifactID: made.ArtifactID, Version: &made.Version}, "", "theirs")
	storetest.WantCode(t, err, protocol.CodeNotFound)
	listed, err := f.DB.Artifacts.ListForCall(t.Context(), turnlog.Scope{AccountID: f.Account, ConversationID: f.turn.Spec.ConversationID}, 10)
	f.Must(err)
	if len(listed) != 1 {
		t.Errorf("%+v", listed)
	}
}

func TestOfTwoEditorsExactlyOneWins(t *testing.T) {
	f := newFixture(t)
	made := f.written(f.write(protocol.ArtifactDocument, "start"))
	for round := range 10 {
		current, err := f.DB.Artifacts.Artifact(t.Context(), f.Account, made.ArtifactID)
		f.Must(err)
		calls := make([]*turnlog.ArtifactWrite, 4)
		for i := range calls {
			content := fmt.Sprintf("model %d %d", round, i)
			calls[i] = f.write("", content)
			calls[i].Artifact, calls[i].BaseVersion = made.ArtifactID, current.Version
		}
		won := 0
		for i, err := range storetest.Together(8, func(i int) error {
			if i < 4 {
				_, err := f.DB.Artifacts.WriteByCall(t.Context(), calls[i])
				return err
			}
			_, err := f.put(current, fmt.Sprintf("user %d %d", round, i))
			return err
		}) {
			var refusal *turnlog.Refusal
			switch {
			case err == nil:
				won++
			case i < 4 && (!errors.As(err, &refusal) || refusal.Code != turnlog.RefusedStale):
				t.Errorf("a call: %v", err)
			case i >= 4 && protocol.CodeOf(err) != protocol.CodeStaleVersion:
				t.Errorf("a user: %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d editors of version %d succeeded", won, current.Version)
		}
	}
}

func TestTheOldestVersionsAreDropped(t *testing.T) {
	f := newFixture(t)
	a := f.written(f.write(protocol.ArtifactDocument, "0"))
	var err error
	for i := range protocol.MaxArtifactVersions + 5 {
		a, err = f.put(a, fmt.Sprint(i+1))
		f.Must(err)
	}
	if n := f.Count(`select count(*) from artifact_versions`); n != protocol.MaxArtifactVersions {
		t.Errorf("%d versions", n)
	}
	six := int64(6)
	_, err = f.DB.Artifacts.Content(t.Context(), f.Account, a.ArtifactID, &six)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = f.DB.Artifacts.Restore(t.Context(), f.Account, &artifacts.Change{ArtifactID: a.ArtifactID, Version: &a.Version}, 6)
	storetest.WantCode(t, err, protocol.CodeInvalid)
	f.wantTotals()
}

// wantTotals checks that what the account stores has the bytes of all versions.
func (f *fixture) wantTotals() {
	f.Helper()
	counted, is := f.Count(`select coalesce(sum(artifact_bytes), 0) from file_totals`), f.Count(`select coalesce(sum(bytes), 0) from artifact_versions`)
	if counted != is {
		f.Errorf("%d bytes are counted, and %d are stored", counted, is)
	}
}

func TestArtifactsCountInTheQuota(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, Objects: database.Objects(t), FileQuota: files.Quota{Bytes: 1000, Files: 10}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := storetest.NewWorldOn(t, database, db)
	f := &fixture{World: w, turn: w.Start(w.Request(nil, "write"))}
	made := f.written(f.write(protocol.ArtifactDocument, strings.Repeat("x", 600)))
	f.refused(f.write(protocol.ArtifactDocument, strings.Repeat("y", 401)), turnlog.RefusedSize, "400 bytes of storage left")
	_, err = f.put(made, strings.Repeat("z", 401))
	storetest.WantCode(t, err, protocol.CodeTooLarge)
	used, limit, err := db.Uploads.Stored(t.Context(), f.Account)
	f.Must(err)
	if used.Bytes != 600 || limit.Bytes != 1000 {
		t.Errorf("%+v of %+v", used, limit)
	}
	f.wantTotals()
}

func TestAConversationHasABoundedNumberOfArtifacts(t *testing.T) {
	f := newFixture(t)
	f.Database.Admin(t, `insert into artifacts (account_id, artifact_id, conversation_id, kind, title, version, created_by, bytes, sha256)
		select $1, gen_random_uuid(), $2, 'code', 'x', 1, 'model', 0, sha256('') from generate_series(1, $3::int)`,
		f.Account, f.turn.Spec.ConversationID, protocol.MaxArtifacts)
	f.refused(f.write(protocol.ArtifactDocument, "one more"), turnlog.RefusedTooMany, "200 artifacts")
}

func TestAListOfManyArtifactsReadsItsPage(t *testing.T) {
	f := newFixture(t)
	const many = 100_000
	f.Database.Admin(t, `insert into artifacts (account_id, artifact_id, conversation_id, kind, title, version, created_by, bytes, sha256)
		select $1, gen_random_uuid(), $2, 'code', 'x' || n, 1, 'model', 0, sha256('') from generate_series(1, $3::int) n`,
		f.Account, f.turn.Spec.ConversationID, many)
	f.Database.Admin(t, `analyze artifacts`)
	before := f.Count(`select idx_tup_fetch + seq_tup_read from pg_stat_user_tables where relname = 'artifacts'`)
	seen := map[protocol.ArtifactID]bool{}
	var after *protocol.ArtifactID
	for range 5 {
		page, next, err := f.DB.Artifacts.List(t.Context(), f.Account, f.turn.Spec.ConversationID, after, 100)
		f.Must(err)
		if len(page) != 100 || next == nil || !slices.IsSortedFunc(page, func(a, b protocol.Artifact) int { return strings.Compare(b.ArtifactID.String(), a.ArtifactID.String()) }) {
			t.Fatalf("%d artifacts, %v", len(page), next)
		}
		for _, a := range page {
			seen[a.ArtifactID] = true
		}
		after = next
	}
	if len(seen) != 500 {
		t.Errorf("%d different artifacts", len(seen))
	}
	storetest.Eventually(t, func() bool { // the statistics are written when the connection is idle
		return f.Count(`select idx_tup_fetch + seq_tup_read from pg_stat_user_tables where relname = 'artifacts'`) > before
	})
	if read := f.Count(`select idx_tup_fetch + seq_tup_read from pg_stat_user_tables where relname = 'artifacts'`) - before; read > 5000 {
		t.Errorf("%d rows were read for 500", read)
	}
}

func TestArtifactsOfADeletedProjectAreHiddenAndThoseOfAnArchivedOneStay(t *testing.T) {
	f := newFixture(t)
	f.turn.End(nil)
	made := f.written(f.write(protocol.ArtifactDocument, "text"))
	project, err := f.DB.Projects.CreateProject(t.Context(), f.Account, "P", nil)
	f.Must(err)
	version := int64(1)
	_, err = f.DB.Conversations.MoveConversation(t.Context(), f.Account, &conversations.Move{ConversationID: made.ConversationID, ProjectID: &project.ProjectID, Version: &version})
	f.Must(err)
	archived, err := f.DB.Projects.SetArchived(t.Context(), f.Account, &projects.Change{ProjectID: project.ProjectID, Version: &project.Version}, true)
	f.Must(err)
	_, err = f.put(made, "changed")
	storetest.WantCode(t, err, protocol.CodeConflict)
	f.refused(f.edit(made, turnlog.Replacement{Old: "text", New: "other"}), turnlog.RefusedProject, "archived")
	f.wantContent(made.ArtifactID, 1, "text")
	_, _, err = f.DB.Projects.DeleteProject(t.Context(), f.Account, &projects.Deletion{Change: projects.Change{ProjectID: project.ProjectID, Version: &archived.Version}})
	f.Must(err)
	_, err = f.DB.Artifacts.Artifact(t.Context(), f.Account, made.ArtifactID)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = f.DB.Artifacts.Content(t.Context(), f.Account, made.ArtifactID, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = f.put(made, "changed")
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestArtifactsEndWithTheirConversation(t *testing.T) {
	f := newFixture(t)
	f.turn.End(nil)
	made := f.written(f.write(protocol.ArtifactDocument, "text"))
	for i := range 30 {
		var err error
		made, err = f.put(made, fmt.Sprint(i))
		f.Must(err)
	}
	_, err := f.DB.Conversations.DeleteConversation(t.Context(), f.Account, &conversations.Deletion{ConversationID: made.ConversationID})
	f.Must(err)
	_, err = f.DB.Artifacts.Artifact(t.Context(), f.Account, made.ArtifactID)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	for done := false; !done; {
		done, err = f.DB.Conversations.PurgeConversation(t.Context(), f.Account, made.ConversationID, 7)
		f.Must(err)
	}
	if n := f.Count(`select (select count(*) from artifacts) + (select count(*) from artifact_versions) + (select sum(artifact_bytes) from file_totals)`); n != 0 {
		t.Errorf("%d rows and bytes are left", n)
	}
}

// show ends the turn with an answer that shows versions.
func (f *fixture) show(versions ...*protocol.Artifact) {
	f.turn.End(func(finish *turnlog.Finish) {
		for _, a := range versions {
			id := a.ArtifactID
			finish.Parts = append(finish.Parts, protocol.Part{Type: protocol.PartArtifact, PartID: protocol.NewPartID(), ArtifactID: &id, Version: a.Version, Kind: string(a.Kind), Title: a.Title, CreatedBy: a.CreatedBy},
				protocol.Part{Type: protocol.PartText, PartID: protocol.NewPartID(), Text: "a\x00b"})
		}
	})
}

func TestAForkHasCopiesOfTheArtifactsThatItShows(t *testing.T) {
	f := newFixture(t)
	shown := f.written(f.write(protocol.ArtifactDocument, "one"))
	hidden := f.written(f.write(protocol.ArtifactDocument, "hidden"))
	second := f.written(f.edit(shown, turnlog.Replacement{Old: "one", New: "two"}))
	f.show(second)
	_, err := f.put(second, "by the user")
	f.Must(err)
	fork, err := f.DB.Conversations.ForkConversation(t.Context(), f.Account, shown.ConversationID, f.turn.Spec.AssistantMessageID, "", nil)
	f.Must(err)
	copies, _, err := f.DB.Artifacts.List(t.Context(), f.Account, fork.ConversationID, nil, 10)
	f.Must(err)
	if len(copies) != 1 || copies[0].ArtifactID == shown.ArtifactID || copies[0].ArtifactID == hidden.ArtifactID || copies[0].Version != 2 || copies[0].CreatedBy != protocol.ByModel {
		t.Fatalf("%+v", copies)
	}
	f.wantContent(copies[0].ArtifactID, 2, "two")
	message, err := f.DB.Conversations.GetMessage(t.Context(), f.Account, *fork.HeadMessageID)
	f.Must(err)
	i := slices.IndexFunc(message.Parts, func(p protocol.Part) bool { return p.Type == protocol.PartArtifact })
	if *message.Parts[i].ArtifactID != copies[0].ArtifactID || message.Parts[i].Version != 2 {
		t.Errorf("%+v", message.Parts[i])
	}
	// The copy is independent.
	_, err = f.put(&copies[0], "in the fork")
	f.Must(err)
	f.wantContent(shown.ArtifactID, 3, "by the user")
	f.wantTotals()
}
