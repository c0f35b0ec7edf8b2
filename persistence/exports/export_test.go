package exports_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"turnstone/persistence/conversations"
	"turnstone/persistence/exports"
	"turnstone/persistence/projects"
	"turnstone/persistence/shares"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// archiveOf exports an account and returns the files of the archive by path, with the paths in their order.
func archiveOf(w *storetest.World, account protocol.AccountID) (files map[string][]byte, paths []string) {
	w.Helper()
	export, err := w.DB.Exports.Begin(w.Context(), account)
	w.Must(err)
	defer export.Close()
	var archive bytes.Buffer
	w.Must(export.WriteArchive(&archive))
	reader, err := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	w.Must(err)
	files = map[string][]byte{}
	for _, f := range reader.File {
		content, err := f.Open()
		w.Must(err)
		text, err := io.ReadAll(content)
		w.Must(err)
		files[f.Name], paths = text, append(paths, f.Name)
	}
	return files, paths
}

// branched creates a conversation with two versions of its first message and two of its first answer, a follow-up and a
// draft.
func branched(w *storetest.World) protocol.ConversationID {
	w.Helper()
	first := w.Start(w.Request(nil, "first question"))
	id := first.Spec.ConversationID
	w.Database.Admin(w.T, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position) values ($1, $2, $3, 'held', 'later', 1)`,
		w.Account, protocol.NewFollowUpID(), id)
	first.End(nil)
	regenerate := w.Request(&id, "")
	regenerate.Branch = &protocol.BranchRequest{MessageID: first.Spec.AssistantMessageID, Mode: protocol.BranchRegenerate}
	w.Start(regenerate).End(nil)
	edit := w.Request(&id, "another first question")
	edit.Branch = &protocol.BranchRequest{MessageID: first.Spec.UserMessageID, Mode: protocol.BranchEdit}
	w.Start(edit).End(nil)
	w.Start(w.Request(&id, "second question")).End(nil)
	_, err := w.DB.Drafts.PutDraft(w.Context(), w.Account, id, "a draft", nil, nil)
	w.Must(err)
	_, err = w.DB.Conversations.SetTitle(w.Context(), w.Account, id, "Branched / \u202eevil", nil)
	w.Must(err)
	return id
}

func TestAnArchiveHasEverythingAndItsManifestProvesIt(t *testing.T) {
	w := storetest.NewWorld(t)
	id := branched(w)
	hidden, err := w.DB.Conversations.CreateConversation(t.Context(), w.Account, &conversations.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: "secret", Temporary: true,
	})
	w.Must(err)
	other := w.OtherAccount()
	foreign := storetest.NewConversation(t, w.DB, other, "foreign")
	project := projectWith(w, "Tides", "Be brief.", "Be kind.")
	gone := projectWith(w, "Gone", "A secret.")
	version := int64(1)
	_, _, err = w.DB.Projects.DeleteProject(t.Context(), w.Account, &projects.Deletion{Change: projects.Change{ProjectID: gone, Version: &version}})
	w.Must(err)
	share, err := w.DB.Shares.Create(t.Context(), w.Account, &shares.NewShare{
		ShareID: protocol.NewShareID(), ConversationID: id, Days: 1, TokenHash: make([]byte, 32), SessionID: protocol.NewSessionID(),
	})
	w.Must(err)
	for version, text := range []string{"I am a nurse.", "I was a nurse."} {
		_, err = w.DB.Accounts.PutInstructions(t.Context(), w.Account, new(int64(version)), text)
		w.Must(err)
	}
	_, err = w.DB.Memory.SetConsent(t.Context(), w.Account, protocol.MemoryConsent{Source: protocol.SourceLocation, Granted: true})
	w.Must(err)
	for _, at := range []protocol.ConversationID{id, hidden.ConversationID} {
		_, err = w.DB.Memory.PutLocation(t.Context(), w.Account, at, &protocol.LocationContext{Latitude: 53.3671, ExpiresAt: time.Now().Add(time.Hour)})
		w.Must(err)
	}
	for owner, prompt := range map[protocol.AccountID]protocol.Prompt{
		w.Account: {ProjectID: &project, Name: "tide", Text: "When is high tide in {{place}}?"}, other: {Name: "foreign", Text: "secret"},
	} {
		_, err = w.DB.Prompts.Create(t.Context(), owner, &prompt)
		w.Must(err)
	}
	w.Database.Admin(t, `insert into prompts (account_id, prompt_id, project_id, name, text) values ($1, gen_random_uuid(), $2, 'gone', 'secret')`, w.Account, gone)
	files, paths := archiveOf(w, w.Account)
	for path, text := range files {
		if bytes.Contains(text, []byte("secret")) || strings.Contains(path, hidden.ConversationID.String()) || strings.Contains(path, foreign.ConversationID.String()) {
			t.Errorf("%s has a temporary or a foreign conversation", path)
		}
	}
	var manifest protocol.ExportManifest
	w.Must(json.Unmarshal(files["manifest.json"], &manifest))
	if paths[len(paths)-1] != "manifest.json" || len(manifest.Files) != len(paths)-1 {
		t.Fatalf("files %v, manifest %+v", paths, manifest)
	}
	for i, f := range manifest.Files {
		sum := sha256.Sum256(files[f.Path])
		if f.Path != paths[i] || f.Size != int64(len(files[f.Path])) || f.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%+v does not describe %s", f, paths[i])
		}
	}
	want := map[string]int64{"conversations": 1, "messages": 7, "branches": 3, "follow_ups": 1, "feedback": 0, "drafts": 1, "usage_records": 4, "projects": 1, "instructions": 2, "account_instructions": 2, "prompts": 1, "shares": 1, "location_contexts": 1}
	for kind, n := range want {
		if manifest.Counts[kind] != n {
			t.Errorf("%d %s, want %d", manifest.Counts[kind], kind, n)
		}
	}
	for path, parts := range map[string][]string{
		"projects.json":             {project.String(), `"name":"Tides"`, `"memory_scope":"account"`},
		"instructions.json":         {project.String(), `"version":1,"content":"Be brief."`, `"version":2,"content":"Be kind."`},
		"account_instructions.json": {`"version":1,"content":"I am a nurse."`, `"version":2,"content":"I was a nurse."`},
		"prompts.json":              {project.String(), `"name":"tide"`, "{{place}}"},
		"memory_sources.json":       {`"source":"location","granted":true`},
		"location_contexts.json":    {id.String(), `"latitude":53.37`},
		"shares.json":               {share.ShareID.String(), id.String()},
	} {
		for _, part := range parts {
			if !bytes.Contains(files[path], []byte(part)) {
				t.Errorf("%s has no %s: %s", path, part, files[path])
			}
		}
	}
	var conversation protocol.ConversationExport
	w.Must(json.Unmarshal(files["conversations/"+id.String()+".json"], &conversation))
	checkTree(t, &conversation)
	text := string(files["conversations/"+id.String()+".md"])
	for _, part := range []string{"# Branched /", "a draft", "another first question", "second question"} {
		if strings.Count(text, part) != 1 {
			t.Errorf("the Markdown has %d times %q:\n%s", strings.Count(text, part), part, text)
		}
	}
	if n := strings.Count(text, "\n## User, ") + strings.Count(text, "\n## Assistant, "); n != 7 {
		t.Errorf("the Markdown has %d messages:\n%s", n, text)
	}
}

// projectWith creates a project with versions of its instructions.
func projectWith(w *storetest.World, name string, instructions ...string) protocol.ProjectID {
	w.Helper()
	project, err := w.DB.Projects.CreateProject(w.Context(), w.Account, name, nil)
	w.Must(err)
	for n, content := range instructions {
		version := int64(n)
		_, err := w.DB.Projects.PutInstructions(w.Context(), w.Account, &projects.Change{ProjectID: project.ProjectID, Version: &version}, content)
		w.Must(err)
	}
	return project.ProjectID
}

func checkTree(t *testing.T, c *protocol.ConversationExport) {
	t.Helper()
	known := map[protocol.MessageID]bool{}
	for _, m := range c.Messages {
		if m.ParentMessageID != nil && !known[*m.ParentMessageID] {
			t.Errorf("the parent of %s does not precede it", m.MessageID)
		}
		if known[m.MessageID] {
			t.Errorf("%s is there twice", m.MessageID)
		}
		known[m.MessageID] = true
	}
	active := 0
	for _, b := range c.Branches {
		if b.HeadMessageID != nil && !known[*b.HeadMessageID] {
			t.Errorf("the head of %s is missing", b.BranchID)
		}
		if b.Active {
			active++
		}
	}
	if len(known) != c.Conversation.MessageCount || active != 1 || c.Draft.Content != "a draft" || len(c.FollowUps) != 1 {
		t.Errorf("%d of %d messages, %d active branches: %+v", len(known), c.Conversation.MessageCount, active, c)
	}
}

func TestAnAccountHasOneExportAtATime(t *testing.T) {
	w := storetest.NewWorld(t)
	first, err := w.DB.Exports.Begin(t.Context(), w.Account)
	w.Must(err)
	_, err = w.DB.Exports.Begin(t.Context(), w.Account)
	storetest.WantCode(t, err, protocol.CodeConflict)
	if running, is := err.(*protocol.Error).Current.(*exports.Running); !is || running.StartedAt.IsZero() {
		t.Errorf("current is %+v", err)
	}
	elsewhere, err := w.DB.Exports.Begin(t.Context(), w.OtherAccount())
	w.Must(err)
	elsewhere.Close()
	// A crash leaves the lease, which then expires.
	w.Database.Admin(t, `update exports set expires_at = now() - interval '1 second'`)
	second, err := w.DB.Exports.Begin(t.Context(), w.Account)
	w.Must(err)
	first.Close() // does not end the lease of the second
	_, err = w.DB.Exports.Begin(t.Context(), w.Account)
	storetest.WantCode(t, err, protocol.CodeConflict)
	second.Close()
	if n := w.Count(`select count(*) from exports`); n != 0 {
		t.Errorf("%d leases are left", n)
	}
}

// An export that ends while another one starts is a reason to start, not to fail.
func TestAnExportStartsOrAnotherOneIsRunning(t *testing.T) {
	w := storetest.NewWorld(t)
	const callers, rounds = 8, 50
	w.Must(errors.Join(storetest.Together(callers, func(int) error {
		for range rounds {
			export, err := w.DB.Exports.Begin(t.Context(), w.Account)
			switch {
			case err == nil:
				export.Close()
			case protocol.CodeOf(err) != protocol.CodeConflict:
				return err
			}
		}
		return nil
	})...))
}

// onWrite is a writer that calls a function before the first write that contains a text.
type onWrite struct {
	bytes.Buffer
	text string
	call func()
}

func (o *onWrite) Write(p []byte) (int, error) {
	if o.call != nil && bytes.Contains(p, []byte(o.text)) {
		o.call()
		o.call = nil
	}
	return o.Buffer.Write(p)
}

func TestADeletionDuringAnExportLeavesAFileThatSaysSo(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "question"))
	turn.End(nil)
	id := turn.Spec.ConversationID
	long := strings.Repeat("x", 1<<20)
	w.Database.Admin(t, `update messages set parts = json_build_array(json_build_object('type', 'text', 'text', $2::text)) where account_id = $1`, w.Account, long)
	for name, write := range map[string]func(*exports.Document, context.Context, io.Writer) error{
		"json": (*exports.Document).WriteJSON, "markdown": (*exports.Document).WriteMarkdown,
	} {
		w.Database.Admin(t, `update conversations set deleted_at = null`)
		document, err := w.DB.Exports.Conversation(t.Context(), w.Account, id)
		w.Must(err)
		to := &onWrite{text: "xxxx", call: func() { w.Database.Admin(t, `update conversations set deleted_at = now()`) }}
		w.Must(write(document, t.Context(), to))
		if !strings.Contains(to.String(), "deleted while it was exported") {
			t.Errorf("%s: the end of the file is %q", name, to.String()[max(0, to.Len()-200):])
		}
		if name == "json" && !json.Valid(to.Bytes()) {
			t.Error("the file is not JSON")
		}
	}
	_, err := w.DB.Exports.Conversation(t.Context(), w.Account, id)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = w.DB.Exports.Conversation(t.Context(), w.OtherAccount(), id)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestAnExportEndsWithItsReader(t *testing.T) {
	w := storetest.NewWorld(t)
	branched(w)
	export, err := w.DB.Exports.Begin(t.Context(), w.Account)
	w.Must(err)
	defer export.Close()
	gone := errors.New("the reader is gone")
	if err := export.WriteArchive(failing{gone}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestAnArchiveOfManyConversationsIsWhole(t *testing.T) {
	w := storetest.NewWorld(t)
	const n = 1001 // two full pages and a third
	w.Database.Admin(t, `
		with made as (
			insert into conversations (account_id, conversation_id, title, active_branch_id)
			select $1, gen_random_uuid(), n::text, gen_random_uuid() from generate_series(1, $2::int) n
			returning account_id, conversation_id, active_branch_id
		), branch as (
			insert into branches (account_id, branch_id, conversation_id) select account_id, active_branch_id, conversation_id from made
		)
		insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
		select account_id, active_branch_id, active_branch_id, 1, 2147483647 from made`, w.Account, n)
	files, _ := archiveOf(w, w.Account)
	titles := map[string]bool{}
	for path, text := range files {
		if strings.HasPrefix(path, "conversations/") && strings.HasSuffix(path, ".json") {
			var c protocol.ConversationExport
			w.Must(json.Unmarshal(text, &c))
			titles[c.Conversation.Title] = true
		}
	}
	if len(titles) != n {
		t.Errorf("%d of %d conversations were exported", len(titles), n)
	}
}
