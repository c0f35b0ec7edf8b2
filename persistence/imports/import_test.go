package imports_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/artifacts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/files"
	"turnstone/persistence/imports"
	"turnstone/persistence/jobs"
	"turnstone/persistence/objects"
	"turnstone/persistence/objects/disk"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
	"turnstone/protocol/uploadlog"
)

// upload receives a file and runs its import, as the job does.
func upload(w *storetest.World, account protocol.AccountID, file []byte) *protocol.Import {
	w.Helper()
	received, err := w.DB.Imports.Receive(w.Context(), account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	if received.State != protocol.ImportQueued || received.Size != int64(len(file)) {
		w.Fatalf("received %+v", received)
	}
	return run(w, account, received.ImportID)
}

func run(w *storetest.World, account protocol.AccountID, id protocol.ImportID) *protocol.Import {
	w.Helper()
	w.Must(w.DB.Imports.Continue(w.Context(), imports.RunArgs{AccountID: account, ImportID: id}, receiver(w).receive))
	done, err := w.DB.Imports.Import(w.Context(), account, id)
	w.Must(err)
	return done
}

func exported(w *storetest.World, account protocol.AccountID) []byte {
	w.Helper()
	export, err := w.DB.Exports.Begin(w.Context(), account)
	w.Must(err)
	defer export.Close()
	var archive bytes.Buffer
	w.Must(export.WriteArchive(&archive))
	return archive.Bytes()
}

// trees describes every conversation of an account without its identifiers: title, times, draft and, node by node, the
// path from the first message to each message.
func trees(w *storetest.World, account protocol.AccountID) []string {
	w.Helper()
	found, next, err := w.DB.Conversations.ListConversations(w.Context(), account, &conversations.ConversationFilter{}, nil, 100)
	w.Must(err)
	if next != nil {
		w.Fatal("more conversations than the test reads")
	}
	var all []string
	for i := range found {
		all = append(all, treeOf(w, account, &found[i]))
	}
	slices.Sort(all)
	return all
}

func treeOf(w *storetest.World, account protocol.AccountID, c *protocol.Conversation) string {
	w.Helper()
	page, err := w.DB.Conversations.ConversationPage(w.Context(), account, c.ConversationID)
	w.Must(err)
	paths := map[protocol.MessageID]string{}
	active := ""
	branches, _, err := w.DB.Conversations.ListBranches(w.Context(), account, c.ConversationID, protocol.BranchID{}, 100)
	w.Must(err)
	for _, b := range branches {
		path := ""
		var parent *protocol.MessageID
		for after := 0; ; {
			messages, err := w.DB.Conversations.Messages(w.Context(), account, &conversations.MessageQuery{
				ConversationID: c.ConversationID, BranchID: &b.BranchID, Newer: true, After: after, Limit: 100,
			})
			w.Must(err)
			for _, m := range messages.Messages {
				if (parent == nil) != (m.ParentMessageID == nil) || parent != nil && *parent != *m.ParentMessageID {
					w.Errorf("%s is not the parent of the next message", parent)
				}
				parent = &m.MessageID
				path += fmt.Sprintf("\n  %d of %d %s %s %s", m.SiblingIndex, m.SiblingCount, m.Role, m.Status, m.CreatedAt.UTC().Format(protocol.TimeFormat))
				for _, p := range m.Parts {
					path += fmt.Sprintf(" %s:%q", p.Type, p.Text+p.Code)
				}
				paths[m.MessageID] = path
			}
			if after = messages.Last; !messages.Newer {
				break
			}
		}
		if b.Active {
			active = path
		}
	}
	text := fmt.Sprintf("%s %s %s %s draft %q", c.Title, c.TitleSource, c.CreatedAt.UTC().Format(protocol.TimeFormat), c.LastActivityAt.UTC().Format(protocol.TimeFormat), page.Draft.Content)
	var list []string
	for _, path := range paths {
		list = append(list, path)
	}
	slices.Sort(list)
	return text + strings.Join(list, "\n--") + "\nactive" + active
}

// populate creates conversations with several versions of messages.
func populate(w *storetest.World) {
	w.Helper()
	first := w.Start(w.Request(nil, "first question"))
	id := first.Spec.ConversationID
	first.End(nil)
	regenerate := w.Request(&id, "")
	regenerate.Branch = &protocol.BranchRequest{MessageID: first.Spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	second := w.Start(regenerate)
	second.End(nil)
	w.Start(w.Request(&id, "and then?")).End(nil)
	edit := w.Request(&id, "another first question")
	edit.Branch = &protocol.BranchRequest{MessageID: first.Spec.UserMessageID, Mode: protocol.BranchEdit}
	w.Start(edit).End(nil)
	nested := w.Request(&id, "")
	nested.Branch = &protocol.BranchRequest{MessageID: second.Spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	w.Start(nested).End(nil)
	_, err := w.DB.Drafts.PutDraft(w.Context(), w.Account, id, "a draft", nil, nil)
	w.Must(err)
	_, err = w.DB.Conversations.SetTitle(w.Context(), w.Account, id, "Branched ☂", nil)
	w.Must(err)
	w.Start(w.Request(nil, "a conversation without a title")).End(nil)
	storetest.NewConversation(w.T, w.DB, w.Account, "empty")
}

func TestAnExportImportedIntoAnotherAccountGivesTheSameTrees(t *testing.T) {
	w := storetest.NewWorld(t)
	populate(w)
	archive := exported(w, w.Account)
	other := w.OtherAccount()
	done := upload(w, other, archive)
	if done.State != protocol.ImportCompleted || done.Imported != 3 || done.Skipped != 0 || done.Source == nil || *done.Source != protocol.ImportFromTurnstone {
		t.Fatalf("%+v", done)
	}
	want := trees(w, w.Account)
	if got := trees(w, other); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n\n"), strings.Join(want, "\n\n"))
	}
	// The same export again, into both accounts, and one conversation of it.
	for _, account := range []protocol.AccountID{other, w.Account} {
		before := trees(w, account)
		again := upload(w, account, archive)
		if again.State != protocol.ImportCompleted || again.Imported != 0 || again.Report.Reasons[protocol.ImportAlreadyImported] < 2 {
			t.Errorf("again: %+v", again)
		}
		if !slices.Equal(trees(w, account), before) {
			t.Error("importing the same export again changed the account")
		}
	}
}

// The file of one conversation has its artifacts with all versions, and restores them; as Markdown, it shows the newest ones.
func TestTheFileOfOneConversationHasItsArtifacts(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "write"))
	turn.End(nil)
	other := w.Start(w.Request(nil, "write more"))
	other.End(nil)
	write := func(of *storetest.Turn, call int, kind protocol.ArtifactKind, title, content string) *protocol.Artifact {
		made, err := w.DB.Artifacts.WriteByCall(t.Context(), &turnlog.ArtifactWrite{
			Scope: turnlog.Scope{AccountID: w.Account, ConversationID: of.Spec.ConversationID}, TurnID: of.Spec.TurnID,
			ToolID: protocol.DeriveToolID(of.Spec.TurnID, call), Kind: kind, Title: title, Content: &content,
		})
		w.Must(err)
		return made
	}
	plan := write(turn, 1, protocol.ArtifactCode, "Plan", "one")
	for n := range 5 { // more than one page of versions
		_, err := w.DB.Artifacts.Put(t.Context(), w.Account, &artifacts.Change{ArtifactID: plan.ArtifactID, Version: new(plan.Version + int64(n))}, "Plan", fmt.Sprint("fence ``` ", n))
		w.Must(err)
	}
	write(turn, 2, protocol.ArtifactTable, "Table", "a,b\n")
	write(other, 1, protocol.ArtifactDocument, "Another", "of another conversation")

	document, err := w.DB.Exports.Conversation(t.Context(), w.Account, turn.Spec.ConversationID)
	w.Must(err)
	var file, text bytes.Buffer
	w.Must(document.WriteJSON(t.Context(), &file))
	w.Must(document.WriteMarkdown(t.Context(), &text))
	for _, want := range []string{"# Artifact: Plan\n\n- Version: 6\n", "\n````\nfence ``` 4\n````\n", "# Artifact: Table\n", "\n```csv\na,b\n```\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), "fence ``` 3") || strings.Contains(text.String()+file.String(), "of another conversation") {
		t.Errorf("the text is\n%s", &text)
	}
	account := w.OtherAccount()
	done := upload(w, account, file.Bytes())
	if done.State != protocol.ImportCompleted || done.Imported != 1 || done.Artifacts != 2 || len(done.Report.Entries) != 0 {
		t.Errorf("%+v", done)
	}
	const versionsSQL = `select string_agg(format('%s %s %s %s', a.kind, v.title, v.version, v.content), '; ' order by v.title, v.version)
		from artifact_versions v join artifacts a using (account_id, artifact_id) join conversations c using (account_id, conversation_id)
		where account_id = $1 and a.kind <> 'document'`
	var versions [2]string
	for i, of := range []protocol.AccountID{w.Account, account} {
		w.Must(w.AdminConn().QueryRow(t.Context(), versionsSQL, of).Scan(&versions[i]))
	}
	if versions[0] != versions[1] {
		t.Errorf("%s became %s", versions[0], versions[1])
	}
	if again := upload(w, account, file.Bytes()); again.Imported != 0 || again.State != protocol.ImportCompleted {
		t.Errorf("again: %+v", again)
	}
	damaged := strings.Replace(file.String(), `"kind":"table"`, `"kind":"chair"`, 1)
	if done := upload(w, w.OtherAccount(), []byte(damaged)); done.Imported != 1 || done.Artifacts != 1 || done.Report.Reasons[protocol.ImportUnreadable] != 1 {
		t.Errorf("damaged: %+v", done)
	}
}

func TestImportedConversationsCanBeContinuedAndAreImportedAgainOnceDeleted(t *testing.T) {
	w := storetest.NewWorld(t)
	file := []byte(`[{"uuid":"x","name":"Tides","created_at":"2025-03-01T10:00:00Z","updated_at":"2025-03-01T10:05:00Z","chat_messages":[
		{"uuid":"1","sender":"human","text":"Why?","created_at":"2025-03-01T10:00:01Z"},{"uuid":"2","sender":"assistant","text":"Gravity.","created_at":"2025-03-01T10:00:02Z"}]}]`)
	if done := upload(w, w.Account, file); done.Imported != 1 || done.Messages != 2 {
		t.Fatalf("%+v", done)
	}
	list := func() protocol.Conversation {
		found, _, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &conversations.ConversationFilter{}, nil, 10)
		w.Must(err)
		if len(found) != 1 {
			t.Fatalf("%d conversations", len(found))
		}
		return found[0]
	}
	c := list()
	if c.Version != 1 || c.ArchivedAt != nil || c.Unread || c.Title != "Tides" || !c.LastActivityAt.Equal(time.Date(2025, 3, 1, 10, 5, 0, 0, time.UTC)) || c.MessageCount != 2 {
		t.Errorf("%+v", c)
	}
	w.Start(w.Request(&c.ConversationID, "And at night?")).End(nil)
	if c = list(); c.MessageCount != 4 {
		t.Errorf("after a turn: %+v", c)
	}
	_, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: c.ConversationID})
	w.Must(err)
	if done := upload(w, w.Account, file); done.Imported != 1 {
		t.Errorf("after a deletion: %+v", done)
	}
	if list().ConversationID == c.ConversationID {
		t.Error("the deleted conversation is back")
	}
}

func TestAnAccountHasOneImportAtATimeAndCanCancelIt(t *testing.T) {
	w := storetest.NewWorld(t)
	file := []byte(`{"uuid":"x","chat_messages":[{"uuid":"1","sender":"human","text":"x"}]}`)
	open, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), -1)
	w.Must(err)
	_, err = w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), -1)
	storetest.WantCode(t, err, protocol.CodeConflict)
	if current := err.(*protocol.Error).Current.(*protocol.Import); current == nil || current.ImportID != open.ImportID {
		t.Errorf("current is %+v", current)
	}
	cancelled, err := w.DB.Imports.Cancel(t.Context(), w.Account, open.ImportID)
	if err != nil || cancelled.State != protocol.ImportCancelled || cancelled.FinishedAt == nil {
		t.Fatalf("%+v %v", cancelled, err)
	}
	_, err = w.DB.Imports.Cancel(t.Context(), w.Account, open.ImportID)
	storetest.WantCode(t, err, protocol.CodeConflict)
	if done := run(w, w.Account, open.ImportID); done.State != protocol.ImportCancelled || w.Count(`select count(*) from conversations`) != 0 {
		t.Errorf("a cancelled import ran: %+v", done)
	}
	if n := w.Count(`select count(*) from imports where stored`); n != 0 {
		t.Error("the upload was not deleted")
	}
	other := w.OtherAccount()
	for _, err := range []error{
		second(w.DB.Imports.Cancel(t.Context(), other, open.ImportID)), second(w.DB.Imports.Import(t.Context(), other, open.ImportID)),
	} {
		storetest.WantCode(t, err, protocol.CodeNotFound)
	}
	page, next, err := w.DB.Imports.ListImports(t.Context(), other, nil, 10)
	if err != nil || len(page) != 0 || next != nil {
		t.Errorf("the list of another account has %v (%v)", page, err)
	}
	upload(w, w.Account, file)
	page, next, err = w.DB.Imports.ListImports(t.Context(), w.Account, nil, 1)
	if err != nil || len(page) != 1 || next == nil {
		t.Fatalf("%v %v %v", page, next, err)
	}
	page, next, err = w.DB.Imports.ListImports(t.Context(), w.Account, next, 1)
	if err != nil || len(page) != 1 || page[0].ImportID != open.ImportID || next != nil {
		t.Errorf("%v %v %v", page, next, err)
	}
}

func second[T any](_ T, err error) error { return err }

// broken is a body that ends with an error.
type broken struct{ left int }

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), b.left)
	b.left -= n
	return n, nil
}

func TestAnUploadThatEndsEarlyFailsAndLeavesNothing(t *testing.T) {
	w := storetest.NewWorld(t)
	_, err := w.DB.Imports.Receive(t.Context(), w.Account, &broken{9 << 20}, 20<<20)
	storetest.WantCode(t, err, protocol.CodeInvalidBody)
	_, err = w.DB.Imports.Receive(t.Context(), w.Account, strings.NewReader(""), 0)
	storetest.WantCode(t, err, protocol.CodeInvalidBody)
	_, err = w.DB.Imports.Receive(t.Context(), w.Account, strings.NewReader(""), protocol.MaxImportBytes+1)
	storetest.WantCode(t, err, protocol.CodeTooLarge)
	if n := w.Count(`select count(*) from imports where state = 'failed' and not stored and failure is not null`); n != 1 {
		t.Errorf("%d uploads have failed", n)
	}
	// A node that receives an upload fails.
	w.Database.Admin(t, `insert into imports (account_id, import_id, active_at) values ($1, $2, now() - interval '2 minutes')`, w.Account, protocol.NewImportID())
	w.Must(w.DB.Imports.Sweep(t.Context()))
	if n := w.Count(`select count(*) from imports where state = 'failed'`); n != 2 || w.Jobs("run_import") != 1 {
		t.Errorf("%d uploads have failed, %d jobs", n, w.Jobs("run_import"))
	}
	w.Database.Admin(t, `update imports set size = 4294967296 where account_id = $1 and not stored`, w.Account)
	_, err = w.DB.Imports.Receive(t.Context(), w.Account, strings.NewReader("x"), 1)
	storetest.WantCode(t, err, protocol.CodeRateLimited)
	if wait := err.(*protocol.Error).RetryAfter; wait < 23*3600 || wait > 24*3600 {
		t.Errorf("retry after %d s", wait)
	}
}

// paused is a body of two chunks of an upload, which calls between before the second one.
type paused struct {
	left    []io.Reader
	between func()
}

func (b *paused) Read(p []byte) (int, error) {
	n, err := b.left[0].Read(p)
	if errors.Is(err, io.EOF) && len(b.left) > 1 {
		b.left = b.left[1:]
		b.between()
		return b.left[0].Read(p)
	}
	return n, err
}

// What a cancel or the erasure of the account deletes does not contain the chunk that is received meanwhile.
func TestAnImportThatEndsWhileItIsReceivedLeavesNoObject(t *testing.T) {
	w := storetest.NewWorld(t)
	queue, err := jobs.NewQueue(w.DB.DB)
	w.Must(err)
	local, err := disk.Open(t.TempDir())
	w.Must(err)
	defer func() { _ = local.Close() }()
	store := &failingStore{Store: local}
	s := imports.New(w.DB.DB, queue, store, w.DB.Files, files.Quota{})
	receive := func(end func(imports.RunArgs)) (id imports.RunArgs, left int) {
		chunk := strings.Repeat("x", 8<<20)
		body := &paused{left: []io.Reader{strings.NewReader(chunk), strings.NewReader(chunk)}}
		body.between = func() {
			open, _, err := s.ListImports(t.Context(), w.Account, nil, 1)
			w.Must(err)
			id = imports.RunArgs{AccountID: w.Account, ImportID: open[0].ImportID}
			end(id)
		}
		if _, err := s.Receive(t.Context(), w.Account, body, -1); err == nil {
			t.Error("the import was received")
		}
		objects, err := local.List(t.Context(), imports.Prefix(w.Account), "", 10)
		w.Must(err)
		return id, len(objects)
	}
	cancel := func(id imports.RunArgs) {
		w.Must(second(s.Cancel(t.Context(), w.Account, id.ImportID)))
		w.Must(s.Continue(t.Context(), id, nil))
	}
	if _, left := receive(cancel); left > 0 {
		t.Errorf("%d objects of a cancelled import are left", left)
	}
	erase := func(id imports.RunArgs) {
		w.Database.Admin(t, `delete from imports where import_id = $1`, id.ImportID)
		w.Must(second(objects.DeleteAll(t.Context(), store, imports.Prefix(w.Account))))
	}
	if _, left := receive(erase); left > 0 {
		t.Errorf("%d objects of an erased account are left", left)
	}
	// The object store fails when the late chunk is deleted; the sweep lets it be deleted later.
	id, left := receive(func(id imports.RunArgs) { cancel(id); store.keeps = true })
	if left != 1 {
		t.Errorf("%d objects, want 1", left)
	}
	store.keeps = false
	w.Database.Admin(t, `update imports set active_at = now() - interval '2 minutes' where stored`)
	before := w.Jobs("run_import")
	w.Must(s.Sweep(t.Context()))
	if w.Jobs("run_import") != before+1 {
		t.Fatal("the sweep ignores the object")
	}
	w.Must(s.Continue(t.Context(), id, nil))
	if found, err := local.List(t.Context(), imports.Prefix(w.Account), "", 10); err != nil || len(found) > 0 {
		t.Errorf("%v is left after the sweep (%v)", found, err)
	}
}

func TestAFileWithoutConversationsFails(t *testing.T) {
	w := storetest.NewWorld(t)
	for _, file := range []string{"PK", "hello", "{}", "[]", `{"mapping":{}}`} {
		done := upload(w, w.Account, []byte(file))
		if done.Imported != 0 || done.State == protocol.ImportCompleted && done.Skipped == 0 {
			t.Errorf("%s: %+v", file, done)
		}
	}
}

// largeExport is an export with one conversation of n messages, which are longer than one transaction writes.
func largeExport(n int) []byte {
	var file bytes.Buffer
	file.WriteString(`[{"uuid":"small","name":"small","chat_messages":[{"uuid":"1","sender":"human","text":"x"}]},{"uuid":"large","name":"large","chat_messages":[`)
	text := strings.Repeat("word ", 200)
	for i := range n {
		if i > 0 {
			file.WriteString(",")
		}
		fmt.Fprintf(&file, `{"uuid":"%d","sender":%q,"text":"%d %s"}`, i, []string{"human", "assistant"}[i%2], i, text)
	}
	file.WriteString(`]}]`)
	return file.Bytes()
}

// failingStore is an object store that fails after a number of reads, and deletes nothing while keeps is set.
type failingStore struct {
	objects.Store
	reads int
	keeps bool
}

var errStore = errors.New("the object store is down")

func (f *failingStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if f.reads--; f.reads < 0 {
		return nil, protocol.Errorf(protocol.CodeUnavailable, "%w", errStore)
	}
	return f.Store.Get(ctx, key, offset, length)
}

func (f *failingStore) Delete(ctx context.Context, key string) error {
	if f.keeps {
		return protocol.Errorf(protocol.CodeUnavailable, "%w", errStore)
	}
	return f.Store.Delete(ctx, key)
}

func TestAnInterruptedImportContinuesWithoutDuplicates(t *testing.T) {
	w := storetest.NewWorld(t)
	queue, err := jobs.NewQueue(w.DB.DB)
	w.Must(err)
	local, err := disk.Open(t.TempDir())
	w.Must(err)
	defer func() { _ = local.Close() }()
	store := &failingStore{Store: local}
	s := imports.New(w.DB.DB, queue, store, w.DB.Files, files.Quota{})
	const n = 1500
	file := largeExport(n)
	received, err := s.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	args := imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}
	if err := s.Continue(t.Context(), args, nil); !errors.Is(err, errStore) {
		t.Fatalf("got %v", err)
	}
	store.reads = 100
	// The node fails after it has written a part of the large conversation.
	w.Database.Admin(t, `create function die() returns trigger language plpgsql as $$ begin
		if (select count(*) from messages) > 600 then raise exception 'killed' using errcode = '57P01'; end if; return null; end $$`)
	w.Database.Admin(t, `create trigger die after insert on messages for each statement execute function die()`)
	if err := s.Continue(t.Context(), args, nil); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Fatalf("got %v", err)
	}
	w.Database.Admin(t, `drop trigger die on messages`)
	if visible := trees(w, w.Account); len(visible) != 1 || w.Count(`select count(*) from messages`) <= 1 {
		t.Errorf("%d conversations are visible", len(visible))
	}
	for range 2 {
		w.Must(s.Continue(t.Context(), args, nil))
	}
	done, err := s.Import(t.Context(), w.Account, received.ImportID)
	w.Must(err)
	if done.State != protocol.ImportCompleted || done.Imported != 2 || done.Messages != n+1 || done.ReadBytes != done.Size {
		t.Errorf("%+v", done)
	}
	found, _, err := w.DB.Conversations.ListConversations(t.Context(), w.Account, &conversations.ConversationFilter{}, nil, 10)
	if err != nil || len(found) != 2 || found[0].MessageCount+found[1].MessageCount != n+1 {
		t.Errorf("%+v %v", found, err)
	}
	if w.Jobs("purge_conversation") != 1 {
		t.Error("the part that the dead run has written is not purged")
	}
	if left, err := local.List(t.Context(), imports.Prefix(w.Account), "", 10); err != nil || len(left) > 0 {
		t.Errorf("%v is left of the upload (%v)", left, err)
	}
}

// The import that refuses the new one ends before it is read for the response.
func TestAnImportIsNotRefusedBecauseOfOneThatHasEnded(t *testing.T) {
	w := storetest.NewWorld(t)
	w.Database.Admin(t, `create sequence tries`)
	w.Database.Admin(t, `grant usage on sequence tries to turnstone_app`)
	w.Database.Admin(t, `create function refuse() returns trigger language plpgsql as $$ begin
		if nextval('tries') = 1 then raise exception 'there is one' using errcode = '23505', constraint = 'imports_open'; end if; return new; end $$`)
	w.Database.Admin(t, `create trigger refuse before insert on imports for each row execute function refuse()`)
	file := largeExport(1)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	if err != nil || received.State != protocol.ImportQueued {
		t.Errorf("%+v, %v", received, err)
	}
}

// The reply to the commit that queues an import is lost, so its reception seems to have failed.
func TestAnImportThatWasQueuedKeepsItsUpload(t *testing.T) {
	w := storetest.NewWorld(t)
	file := largeExport(3)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	w.DB.Imports.Discard(t.Context(), w.Account, received.ImportID)
	if done := run(w, w.Account, received.ImportID); done.State != protocol.ImportCompleted || done.Imported != 2 {
		t.Errorf("%+v", done)
	}
}

func TestAnImportOfADeadNodeContinuesAtOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	survivor := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: survivor}))
	file := largeExport(3)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	w.Database.Admin(t, `update imports set state = 'running', run = 1, active_at = now(), node_id = $1`, w.Node)
	continues := func(on protocol.NodeID) *protocol.Import {
		w.Must(w.DB.Imports.On(on).Continue(t.Context(), imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}, receiver(w).receive))
		found, err := w.DB.Imports.Import(t.Context(), w.Account, received.ImportID)
		w.Must(err)
		return found
	}
	if active := continues(survivor); active.State != protocol.ImportRunning || active.Imported != 0 {
		t.Errorf("the run of a living node was ended: %+v", active)
	}
	w.Database.Admin(t, `update nodes set dead = true where node_id = $1`, w.Node)
	// It was paused, and does not know yet that it is dead.
	if active := continues(w.Node); active.State != protocol.ImportRunning || active.Imported != 0 {
		t.Errorf("the dead node runs it again: %+v", active)
	}
	if done := continues(survivor); done.State != protocol.ImportCompleted || done.Imported != 2 {
		t.Errorf("%+v", done)
	}
	if lost := w.Count(`select lost_runs from imports`); lost != 1 {
		t.Errorf("%d lost runs are counted", lost)
	}
}

func TestAnImportWhoseRunsEndWithTheirProcessesFails(t *testing.T) {
	w := storetest.NewWorld(t)
	file := largeExport(3)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	// A run that was stopped properly does not count: a node was drained.
	w.Database.Admin(t, `update imports set state = 'running', run = 1, active_at = '-infinity'`)
	args := imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}
	for lost := range 2 {
		// The process of a run ends after its claim, so nothing shows activity any more.
		w.Database.Admin(t, `create or replace function die() returns trigger language plpgsql as $$ begin raise exception 'killed' using errcode = '57P01'; end $$`)
		w.Database.Admin(t, `create or replace trigger die before update on imports for each row when (old.state = 'running' and new.run = old.run) execute function die()`)
		if err := w.DB.Imports.Continue(t.Context(), args, nil); protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Fatalf("got %v", err)
		}
		w.Database.Admin(t, `drop trigger die on imports`)
		if n := w.Count(`select lost_runs from imports`); n != lost {
			t.Fatalf("%d lost runs are counted, want %d", n, lost)
		}
		w.Database.Admin(t, `update imports set active_at = now() - interval '2 minutes'`)
	}
	w.Must(w.DB.Imports.Sweep(t.Context()))
	done := run(w, w.Account, received.ImportID)
	if done.State != protocol.ImportFailed || done.Failure == nil || !strings.Contains(*done.Failure, "interrupted twice") || done.FinishedAt == nil {
		t.Errorf("%+v", done)
	}
	if n := w.Count(`select count(*) from imports where stored`); n != 0 {
		t.Error("the upload is still stored")
	}
	if done := upload(w, w.Account, file); done.State != protocol.ImportCompleted {
		t.Errorf("the next import: %+v", done)
	}
}

// expiring is a context whose deadline passes when a test says so.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// An import whose time is over while it writes a conversation in several transactions names that conversation until its purge
// is enqueued.
func TestAFailedImportPurgesTheConversationThatItWasWriting(t *testing.T) {
	w := storetest.NewWorld(t)
	file := largeExport(1500)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	// The second transaction of the large conversation waits for a lock of the test.
	conn := w.AdminConn()
	_, err = conn.Exec(t.Context(), `select pg_advisory_lock(4711)`)
	w.Must(err)
	w.Database.Admin(t, `create function wait() returns trigger language plpgsql as $$ begin
		if (select count(*) from messages) > 600 then perform pg_advisory_xact_lock(4711); end if; return null; end $$`)
	w.Database.Admin(t, `create trigger wait after insert on messages for each statement execute function wait()`)
	// The upload cannot be marked as deleted at first, so that the state after the failure shows.
	w.Database.Admin(t, `create function keep() returns trigger language plpgsql as $$ begin raise exception 'killed' using errcode = '57P01'; end $$`)
	w.Database.Admin(t, `create trigger keep before update on imports for each row when (old.state = 'failed') execute function keep()`)
	args := imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}
	ctx := expiring{t.Context(), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- w.DB.Imports.Continue(ctx, args, nil) }()
	watch := w.AdminConn()
	storetest.Eventually(t, func() (waits bool) {
		w.Must(watch.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits))
		return waits
	})
	close(ctx.done)
	if err := <-ended; err == nil {
		t.Fatal("the failed import was cleaned up although its row could not change")
	}
	_, err = conn.Exec(t.Context(), `select pg_advisory_unlock(4711)`)
	w.Must(err)
	failed, err := w.DB.Imports.Import(t.Context(), w.Account, received.ImportID)
	w.Must(err)
	if failed.State != protocol.ImportFailed || failed.Failure == nil || !strings.Contains(*failed.Failure, "longer than") {
		t.Errorf("%+v", failed)
	}
	if n := w.Count(`select count(*) from imports i join conversations c on c.conversation_id = i.unfinished_id where i.stored and c.deleted_at is not null`); n != 1 {
		t.Error("the failed import does not name the conversation that it was writing")
	}
	w.Database.Admin(t, `drop trigger keep on imports`)
	for range 2 {
		w.Must(w.DB.Imports.Continue(t.Context(), args, nil))
	}
	if n := w.Count(`select count(*) from imports where stored or unfinished_id is not null`); n != 0 {
		t.Error("the upload or the unfinished conversation is still named")
	}
	if visible := trees(w, w.Account); len(visible) != 1 || w.Jobs("purge_conversation") != 1 {
		t.Errorf("%d conversations are visible, %d purges", len(visible), w.Jobs("purge_conversation"))
	}
}

func TestAnImportWaitsWhileTheDiskOfTheDatabaseIsNearlyFull(t *testing.T) {
	full := true
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, Objects: database.Objects(t), CheckSpace: func() error {
		if full {
			return protocol.Errorf(protocol.CodeUnavailable, "the disk is nearly full")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := storetest.NewWorldOn(t, database, db)
	file := largeExport(3)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	args := imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}
	for range 3 { // waiting is no failure
		if err := w.DB.Imports.Continue(t.Context(), args, nil); protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Fatalf("got %v", err)
		}
	}
	if n := w.Count(`select count(*) from messages`); n != 0 {
		t.Errorf("%d messages were written", n)
	}
	full = false
	if done := run(w, w.Account, received.ImportID); done.State != protocol.ImportCompleted || done.Messages != 4 {
		t.Errorf("%+v", done)
	}
}

func TestACancelStopsARunningImport(t *testing.T) {
	w := storetest.NewWorld(t)
	file := largeExport(1500)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(file), int64(len(file)))
	w.Must(err)
	w.Database.Admin(t, `create function cancel() returns trigger language plpgsql security definer as $$ begin
		if (select count(*) from messages) > 600 then update imports set state = 'cancelled', finished_at = now(); end if; return null; end $$`)
	w.Database.Admin(t, `create trigger cancel after insert on messages for each statement execute function cancel()`)
	done := run(w, w.Account, received.ImportID)
	// The cancel is a part of the transaction that it stops, so it is rolled back; the next run sees the import again.
	w.Database.Admin(t, `drop trigger cancel on messages`)
	if done.State == protocol.ImportCompleted {
		t.Fatalf("%+v", done)
	}
	if _, err := w.DB.Imports.Cancel(t.Context(), w.Account, received.ImportID); err != nil {
		t.Fatal(err)
	}
	if done = run(w, w.Account, received.ImportID); done.State != protocol.ImportCancelled || w.Jobs("purge_conversation") != 1 {
		t.Errorf("%+v, %d purges", done, w.Jobs("purge_conversation"))
	}
	if visible := trees(w, w.Account); len(visible) != 1 {
		t.Errorf("%d conversations are visible", len(visible))
	}
}

// ownArchive is an archive of this service with a project, files and a conversation that names them.
func ownArchive(w *storetest.World, files ...string) (archive []byte, contents map[string]string) {
	w.Helper()
	project, conversation, message := protocol.NewProjectID(), protocol.NewConversationID(), protocol.NewMessageID()
	var list, attached []string
	contents = map[string]string{}
	parts := []string{}
	for i, content := range files {
		id := protocol.DeriveFileID(protocol.NewUploadID())
		sum := sha256.Sum256([]byte(content))
		list = append(list, fmt.Sprintf(`{"file_id":%q,"filename":"%d.txt","media_type":"text/plain","size":%d,"sha256":"%x","project_ids":[%q],"path":"files/%s"}`, id, i, len(content), sum, project, id))
		attached = append(attached, fmt.Sprintf("%q", id))
		contents[id.String()] = content
		parts = append(parts, "files/"+id.String(), content)
	}
	parts = append(parts, "manifest.json", `{"format":"turnstone.export"}`,
		"projects.json", fmt.Sprintf(`{"projects":[{"project_id":%q,"name":"Tides"}]}`, project),
		"instructions.json", fmt.Sprintf(`{"instructions":[{"project_id":%[1]q,"version":1,"content":"Be brief."},{"project_id":%[1]q,"version":2,"content":"Be kind."}]}`, project),
		"prompts.json", fmt.Sprintf(`{"prompts":[{"prompt_id":%q,"project_id":%q,"name":"tide","text":"When is high tide in {{place}}?"}]}`, protocol.NewPromptID(), project),
		"files.json", `{"files":[`+strings.Join(list, ",")+`]}`,
		"conversations/"+conversation.String()+".json", fmt.Sprintf(`{"format":"turnstone.conversation","conversation":{"conversation_id":%q,"title":"c","project_id":%q},"branches":[],
			"messages":[{"message_id":%q,"role":"user","status":"complete","parts":[],"attachments":[%s]}]}`, conversation, project, message, strings.Join(attached, ",")))
	return zipped(w, parts...), contents
}

// zipped returns an archive of files: their names and contents.
func zipped(w *storetest.World, parts ...string) []byte {
	w.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(parts); i += 2 {
		to, err := z.Create(parts[i])
		w.Must(err)
		_, err = io.WriteString(to, parts[i+1])
		w.Must(err)
	}
	w.Must(z.Close())
	return out.Bytes()
}

func TestAFollowUpThatHadOnlyALostFileIsNotImported(t *testing.T) {
	w := storetest.NewWorld(t)
	id := protocol.NewConversationID()
	done := upload(w, w.Account, fmt.Appendf(nil, `{"format":"turnstone.conversation","conversation":{"conversation_id":%q,"title":"c"},
		"follow_ups":[{"follow_up_id":"a","state":"held","content":"","attachments":[%q]},{"follow_up_id":"b","state":"held","content":"Next","attachments":[%[2]q]}],
		"messages":[{"message_id":%q,"role":"user","status":"complete","parts":[{"type":"text","text":"Tides"}]}]}`, id, protocol.DeriveFileID(protocol.NewUploadID()), protocol.NewMessageID()))
	if n := w.Count(`select count(*) from follow_ups where content = 'Next'`); n != 1 || w.Count(`select count(*) from follow_ups`) != 1 {
		t.Errorf("%d follow-ups with text", n)
	}
	if done.Report.Reasons[protocol.ImportFollowUpsSkipped] != 1 || done.Report.Reasons[protocol.ImportAttachmentsAbsent] == 0 {
		t.Errorf("%+v", done.Report)
	}
}

// Every step of an archive can be the last one of a process.
func TestAnArchiveWhoseImportIsInterruptedIsImportedOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	archive, _ := ownArchive(w, "one", "two", "three")
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(archive), int64(len(archive)))
	w.Must(err)
	args := imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}
	fake := receiver(w)
	w.Database.Admin(t, `create function die() returns trigger language plpgsql as $$ begin raise exception 'killed' using errcode = '57P01'; end $$`)
	for part := range 8 { // a project, two versions of instructions, a prompt, three files, a conversation
		column := "parts"
		if part == 7 {
			column = "handled"
		}
		w.Database.Admin(t, fmt.Sprintf(`create or replace trigger die before update of %[1]s on imports for each row when (new.%[1]s > old.%[1]s and new.parts + new.handled > %[2]d) execute function die()`, column, part))
		if err := w.DB.Imports.Continue(t.Context(), args, fake.receive); protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Fatalf("part %d: got %v", part, err)
		}
		w.Database.Admin(t, `drop trigger die on imports`)
	}
	done := run(w, w.Account, received.ImportID)
	if done.State != protocol.ImportCompleted || done.Projects != 1 || done.Files != 3 || done.Imported != 1 || len(done.Report.Reasons) != 0 {
		t.Errorf("%+v", done)
	}
	for sql, want := range map[string]int{
		`select count(*) from projects where instructions_version = 2 and file_count = 3 and conversation_count = 1`: 1,
		`select count(*) from project_instructions`: 2, `select count(*) from prompts join projects using (account_id, project_id)`: 1, `select count(*) from files`: 3, `select count(*) from message_files`: 3, `select count(*) from conversations`: 1,
	} {
		if n := w.Count(sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
}

func TestFilesThatAreNotImportedAreReportedWithTheReason(t *testing.T) {
	w := storetest.NewWorld(t)
	archive, _ := ownArchive(w, "refused", "over", "failed", "kept")
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(archive), int64(len(archive)))
	w.Must(err)
	fake := receiver(w)
	fake.refuse = func(spec *uploadlog.Spec) error {
		if spec.Filename == "1.txt" {
			return protocol.Errorf(protocol.CodeTooLarge, "You have 0 bytes of storage left.")
		}
		return nil
	}
	fake.fail = func(spec *uploadlog.Spec) *protocol.Upload {
		switch spec.Filename {
		case "0.txt":
			return &protocol.Upload{State: protocol.UploadRejected, Failure: &protocol.UploadFailure{Code: protocol.UploadMalware, Detail: "The file has malware."}}
		case "2.txt":
			return &protocol.Upload{State: protocol.UploadFailed, Failure: &protocol.UploadFailure{Code: protocol.UploadNoVerdict, Detail: "The scanner gave no verdict."}}
		}
		return nil
	}
	w.Must(w.DB.Imports.Continue(t.Context(), imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}, fake.receive))
	done, err := w.DB.Imports.Import(t.Context(), w.Account, received.ImportID)
	w.Must(err)
	want := map[protocol.ImportReason]int64{
		protocol.ImportFilesRefused: 1, protocol.ImportFilesOverLimit: 1, protocol.ImportFilesFailed: 1, protocol.ImportAttachmentsLost: 3,
	}
	if done.State != protocol.ImportCompleted || done.Files != 1 || !maps.Equal(done.Report.Reasons, want) || done.Report.Entries[0].Detail != "The file has malware." {
		t.Errorf("%+v", done)
	}
	if n := w.Count(`select count(*) from messages where json_array_length(parts) = 3 and parts::text like '%0.txt%' and cardinality(attachments) = 1`); n != 1 {
		t.Error("the message does not name its absent files")
	}
	// The reasons are gone: the same archive has the files.
	if again := upload(w, w.Account, archive); again.Files != 3 || again.Report.Reasons[protocol.ImportAlreadyImported] != 4 {
		t.Errorf("again: %+v", again)
	}
}

func TestAnAccountThatHasInstructionsKeepsThem(t *testing.T) {
	w := storetest.NewWorld(t)
	archive := zipped(w, "manifest.json", `{"format":"turnstone.export"}`,
		"account_instructions.json", `{"account_instructions":[{"version":1,"content":"older"},{"version":2,"content":"I am a nurse."}]}`)
	other := w.OtherAccount()
	_, err := w.DB.Accounts.PutInstructions(t.Context(), other, new(int64), "I am a cook.")
	w.Must(err)
	for account, want := range map[protocol.AccountID]string{w.Account: "I am a nurse.", other: "I am a cook."} {
		done := upload(w, account, archive)
		kept := int64(0)
		if account == other {
			kept = 1
		}
		if found, err := w.DB.Accounts.Instructions(t.Context(), account); err != nil || found.Content != want || found.Version != 1 || done.Report.Reasons[protocol.ImportAccountKept] != kept {
			t.Errorf("%+v, %v, %+v", found, err, done)
		}
	}
}

func TestAnImportWaitsForInstructionsThatTheAccountWrites(t *testing.T) {
	w := storetest.NewWorld(t)
	archive := zipped(w, "manifest.json", `{"format":"turnstone.export"}`, "account_instructions.json", `{"account_instructions":[{"version":1,"content":"I am a nurse."}]}`)
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(archive), int64(len(archive)))
	w.Must(err)
	imported := make(chan error, 1)
	w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, accounts.LockAccountSQL, w.Account); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into account_instructions (account_id, version, content) values ($1, 1, 'I am a cook.')`, w.Account); err != nil {
			return err
		}
		go func() {
			imported <- w.DB.Imports.Continue(t.Context(), imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}, nil)
		}()
		storetest.AwaitLocked(t, w.Database, "select from accounts")
		return nil
	}))
	if err := <-imported; err != nil {
		t.Error(err)
	}
	if found, err := w.DB.Accounts.Instructions(t.Context(), w.Account); err != nil || found.Content != "I am a cook." || found.Version != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestPromptsThatAreNotImportedAreReported(t *testing.T) {
	w := storetest.NewWorld(t)
	prompts := func(name string, project any) []byte {
		text, err := json.Marshal(map[string]any{"prompts": []any{map[string]any{"prompt_id": protocol.NewPromptID(), "project_id": project, "name": name, "text": "theirs"}}})
		w.Must(err)
		return zipped(w, "manifest.json", `{"format":"turnstone.export"}`, "prompts.json", string(text))
	}
	_, err := w.DB.Prompts.Create(t.Context(), w.Account, &protocol.Prompt{Name: "greet", Text: "mine"})
	w.Must(err)
	want := func(what string, done *protocol.Import, reasons map[protocol.ImportReason]int64, stored int) {
		t.Helper()
		if done.State != protocol.ImportCompleted || !maps.Equal(done.Report.Reasons, reasons) || w.Count(`select count(*) from prompts`) != stored {
			t.Errorf("%s: %+v", what, done)
		}
	}
	want("the name of another one", upload(w, w.Account, prompts("Greet", nil)), map[protocol.ImportReason]int64{protocol.ImportAlreadyImported: 1}, 1)
	want("an absent project", upload(w, w.Account, prompts("leave", protocol.NewProjectID())), map[protocol.ImportReason]int64{protocol.ImportProjectAbsent: 1}, 2)
	w.Database.Admin(t, `insert into prompts (account_id, prompt_id, name, text) select $1, gen_random_uuid(), 'p' || n, 'x' from generate_series(3, $2) n`, w.Account, protocol.MaxPrompts)
	want("over the limit", upload(w, w.Account, prompts("one-more", nil)), map[protocol.ImportReason]int64{protocol.ImportArchiveLimit: 1}, protocol.MaxPrompts)
	if n := w.Count(`select count(*) from prompts where text = 'mine' and name = 'greet'`); n != 1 {
		t.Error("an import has replaced a prompt of the account")
	}
}

func TestAnImportWaitsForAPromptThatTheAccountWrites(t *testing.T) {
	w := storetest.NewWorld(t)
	archive := zipped(w, "manifest.json", `{"format":"turnstone.export"}`, "prompts.json", fmt.Sprintf(`{"prompts":[{"prompt_id":%q,"name":"greet","text":"theirs"}]}`, protocol.NewPromptID()))
	received, err := w.DB.Imports.Receive(t.Context(), w.Account, bytes.NewReader(archive), int64(len(archive)))
	w.Must(err)
	imported := make(chan error, 1)
	w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, accounts.LockAccountSQL, w.Account); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into prompts (account_id, prompt_id, name, text) values ($1, $2, 'greet', 'mine')`, w.Account, protocol.NewPromptID()); err != nil {
			return err
		}
		go func() {
			imported <- w.DB.Imports.Continue(t.Context(), imports.RunArgs{AccountID: w.Account, ImportID: received.ImportID}, nil)
		}()
		storetest.AwaitLocked(t, w.Database, "select from accounts")
		return nil
	}))
	if err := <-imported; err != nil {
		t.Error(err)
	}
	if n := w.Count(`select count(*) from prompts where text = 'mine'`); n != 1 || w.Count(`select count(*) from prompts`) != 1 {
		t.Errorf("%d prompts of the account are left", n)
	}
}

func TestInstructionsOfAnAbsentProjectAreReported(t *testing.T) {
	w := storetest.NewWorld(t)
	done := upload(w, w.Account, zipped(w, "manifest.json", `{"format":"turnstone.export"}`,
		"instructions.json", fmt.Sprintf(`{"instructions":[{"project_id":%q,"version":1,"content":"Be brief."}]}`, protocol.NewProjectID()),
		"conversations.json", fmt.Sprintf(`{"format":"turnstone.conversation","conversation":{"conversation_id":%q,"title":"c"},
			"messages":[{"message_id":%q,"role":"user","status":"complete","parts":[{"type":"text","text":"Tides"}]}]}`, protocol.NewConversationID(), protocol.NewMessageID())))
	if done.Imported != 1 || done.Report.Reasons[protocol.ImportUnreadable] != 1 {
		t.Errorf("%+v", done)
	}
}

func TestAReportIsBounded(t *testing.T) {
	w := storetest.NewWorld(t)
	var file bytes.Buffer
	out := zip.NewWriter(&file)
	f, err := out.Create("conversations.json")
	w.Must(err)
	const n = 3 * protocol.MaxImportEntries
	_, _ = io.WriteString(f, "[")
	for i := range n {
		if i > 0 {
			_, _ = io.WriteString(f, ",")
		}
		fmt.Fprintf(f, `{"uuid":"%d","name":%q,"chat_messages":[]}`, i, strings.Repeat("long ", 100))
	}
	_, _ = io.WriteString(f, "]")
	w.Must(out.Close())
	done := upload(w, w.Account, file.Bytes())
	if done.Skipped != n || len(done.Report.Entries) != protocol.MaxImportEntries || done.Report.Reasons[protocol.ImportNoMessages] != n || done.Report.MoreEntries == 0 {
		t.Errorf("%d skipped, %d entries, %d more, %v", done.Skipped, len(done.Report.Entries), done.Report.MoreEntries, done.Report.Reasons)
	}
}

func TestALinesFileIsImportedWithTitlesAndTheArchive(t *testing.T) {
	w := storetest.NewWorld(t)
	const line = `{"id":%q,"title":%s,"create_time":1700000000000,"update_time":1700000300000,"is_archived":%t,"mapping":{"n":{"id":"n",
		"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Why are there two tides a day?"]}}}}}`
	var file []byte
	file = fmt.Appendf(file, line+"\n", "a", "null", true)
	file = fmt.Appendf(file, line+"\n", "b", `"Named"`, false)
	done := upload(w, w.Account, file)
	if done.State != protocol.ImportCompleted || done.Imported != 2 || len(done.Report.Reasons) != 0 {
		t.Errorf("%+v", done)
	}
	for _, sql := range []string{
		`select count(*) from conversations where title = 'Why are there two tides a day?' and title_source = 'auto' and archived_at = '2023-11-14 22:18:20Z'`,
		`select count(*) from conversations where title = 'Named' and title_source = 'user' and archived_at is null and created_at = '2023-11-14 22:13:20Z'`,
	} {
		if n := w.Count(sql); n != 1 {
			t.Errorf("%s: %d", sql, n)
		}
	}
	if again := upload(w, w.Account, file); again.Skipped != 2 || again.Report.Reasons[protocol.ImportAlreadyImported] != 2 {
		t.Errorf("again: %+v", again)
	}
}
