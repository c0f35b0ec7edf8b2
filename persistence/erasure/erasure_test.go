package erasure_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/erasure"
	"turnstone/persistence/operator"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/turnlog"
	"turnstone/protocol/uploadlog"
)

const canary = "canary-7f3a9"

// accountTables returns the tables that have an account_id, without partitions, and their number of rows of an account.
func accountTables(w *storetest.World, account protocol.AccountID) map[string]int {
	w.Helper()
	conn := w.AdminConn()
	rows, err := conn.Query(w.Context(), `
		select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		  and a.attname = 'account_id' and not a.attisdropped`)
	w.Must(err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.Must(err)
	counts := map[string]int{}
	for _, name := range names {
		var n int
		w.Must(conn.QueryRow(w.Context(), `select count(*) from `+pgx.Identifier{name}.Sanitize()+` where account_id = $1`, account).Scan(&n))
		counts[name] = n
	}
	return counts
}

// stays lists the tables whose rows an erasure keeps. In the tables of moving, triggers, jobs and Begin add or delete rows,
// so the report may have another number of rows than there were before.
var (
	stays  = map[string]bool{"audit": true, "audit_heads": true}
	moving = map[string]bool{"account_identities": true, "feed_items": true, "mails": true, "search_pending": true, "search_rows": true}
)

// populate fills every table that has rows of accounts with texts that contain the canary. A new table needs rows here:
// the test of the erasure fails without them.
func populate(w *storetest.World) {
	w.Helper()
	w.Database.Admin(w.T, `update accounts set email = $2, email_key = $2, display_name = $2, password_hash = 'x' where account_id = $1`, w.Account, canary+"@example.com")
	turn := w.Start(w.Request(nil, canary+" question"))
	turn.Append(3)
	turn.End(func(f *turnlog.Finish) { f.Parts[0].Text = canary + " answer" })
	id := turn.Spec.ConversationID
	_, err := w.DB.Drafts.PutDraft(w.Context(), w.Account, id, canary+" draft", nil, nil)
	w.Must(err)
	_, err = w.DB.Conversations.SetTitle(w.Context(), w.Account, id, canary+" title", nil)
	w.Must(err)
	live := w.Start(w.Request(nil, canary+" live"))
	live.Append(2)
	w.Queued(live.Spec.ConversationID, canary+" follow-up")
	_, err = w.DB.Usage.RecordUsage(w.Context(), w.Account, id, canary, 1, "unit", nil)
	w.Must(err)
	_, err = w.DB.Accounts.PutSettings(w.Context(), w.Account, accounts.DefaultSettings(), nil)
	w.Must(err)
	now := time.Now()
	w.Must(w.DB.Accounts.CreateSession(w.Context(), w.Account, &accounts.NewSession{
		SessionID: protocol.NewSessionID(), TokenHash: []byte("hash"), UserAgent: canary, At: now, ExpiresAt: now.Add(time.Hour),
	}, audit.Requester{}))
	w.Must(w.DB.Accounts.LinkIdentity(w.Context(), w.Account, accounts.Identity{Issuer: "https://issuer.example", Subject: canary}, audit.Requester{}))
	w.Must(w.DB.Audit.Record(w.Context(), w.Account, audit.EventSignedIn, nil, nil, audit.Requester{}))
	export, err := w.DB.Exports.Begin(w.Context(), w.Account)
	w.Must(err)
	w.Cleanup(export.Close)
	file := `{"uuid":"` + canary + `","name":"` + canary + `","chat_messages":[{"uuid":"1","sender":"human","text":"` + canary + `"}]}`
	_, err = w.DB.Imports.Receive(w.Context(), w.Account, strings.NewReader(file), -1)
	w.Must(err)
	for _, sql := range []string{
		`insert into import_sources (account_id, source_hash, conversation_id) values ($1, 'hash', gen_random_uuid())`,
		`insert into import_items (account_id, kind, source_id, import_id, name) values ($1, 'file', gen_random_uuid(), gen_random_uuid(), 'canary-7f3a9')`,
		`update conversations set metadata = '{"canary-7f3a9": "canary-7f3a9"}' where account_id = $1`, // its trigger fills conversation_metadata
		`insert into token_days (account_id, day, used) values ($1, now(), 1)`,
		`insert into passkeys (account_id, passkey_id, credential_id, public_key, sign_count, aaguid, name, backup_eligible, backed_up, created_at)
			values ($1, gen_random_uuid(), 'canary-7f3a9', 'canary-7f3a9', 1, gen_random_uuid(), 'canary-7f3a9', false, false, now())`,
		`insert into token_reservations (account_id, reservation_id, day, tokens, expires_at) values ($1, gen_random_uuid(), now(), 1, now() + interval '1 hour')`,
		`insert into turn_records (account_id, turn_id, kind, key, sequence, body) select account_id, turn_id, 'step', 'canary-7f3a9', 1, '{}' from turns where account_id = $1 limit 1`,
		`insert into projects (account_id, project_id, name) values ($1, gen_random_uuid(), 'canary-7f3a9')`,
		`insert into project_instructions (account_id, project_id, version, content) select account_id, project_id, 1, 'canary-7f3a9' from projects where account_id = $1`,
		`insert into account_instructions (account_id, version, content) values ($1, 1, 'canary-7f3a9')`,
		`insert into prompts (account_id, prompt_id, project_id, name, description, text) select account_id, gen_random_uuid(), project_id, 'canary-7f3a9', 'canary-7f3a9', 'canary-7f3a9' from projects where account_id = $1`,
		`insert into project_work (account_id, work_id, project_id, kind) select account_id, gen_random_uuid(), project_id, 'project_created' from projects where account_id = $1`,
		`insert into shares (account_id, share_id, conversation_id, token_hash, title, message_count, page_count, expires_at)
			select account_id, gen_random_uuid(), conversation_id, sha256('token'), 'canary-7f3a9', 1, 1, now() + interval '1 hour' from conversations where account_id = $1 limit 1`,
		`insert into share_pages (account_id, share_id, page, messages) select account_id, share_id, 1, '["canary-7f3a9"]' from shares where account_id = $1`,
		`insert into search_rows (account_id, kind, id, conversation_id, at, n, tokens)
			select account_id, 'conversation', conversation_id, conversation_id, now(), 1, 'canary-7f3a9'::tsvector from conversations where account_id = $1 limit 1`,
		`insert into uploads (account_id, upload_id, filename, media_type, size, purpose, object_name, next_sequence, created_at, expires_at)
			values ($1, gen_random_uuid(), 'canary-7f3a9', 'text/plain', 1, 'library', 'canary-7f3a9', 2, now(), now() + interval '1 hour')`,
		`insert into upload_events (account_id, upload_id, first_sequence, last_sequence, frames) select account_id, upload_id, 1, 1, 'canary-7f3a9' from uploads where account_id = $1`,
		`insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
			values ($1, gen_random_uuid(), 'canary-7f3a9', 'text/plain', 'text', 1, sha256('x'), 'canary-7f3a9', 'none', now(), now(), now())`,
		`insert into project_files (account_id, project_id, file_id) select p.account_id, p.project_id, f.file_id from projects p join files f using (account_id) where account_id = $1`,
		`insert into message_files (account_id, file_id, message_id) select f.account_id, f.file_id, m.message_id from files f join messages m using (account_id) where f.account_id = $1`,
		`insert into share_files (account_id, share_id, n, file_id, filename) select s.account_id, s.share_id, 1, f.file_id, 'canary-7f3a9' from shares s join files f using (account_id) where s.account_id = $1`,
		`insert into file_texts (account_id, file_id, state, size) select account_id, file_id, 'done', 12 from files where account_id = $1`,
		`insert into file_text_chunks (account_id, file_id, start_at, end_at, text, blocks) select account_id, file_id, 0, 12, 'canary-7f3a9', '[]' from files where account_id = $1`,
		`insert into file_pages (account_id, file_id, page, picture) select account_id, file_id, 2, 'canary-7f3a9' from files where account_id = $1`,
		`insert into mails (account_id, mail_id, kind, recipient, expires_at) values ($1, gen_random_uuid(), 'password_reset', 'canary-7f3a9@example.com', now() + interval '1 hour')`,
		`update accounts set pending_email = 'canary-7f3a9@example.net', pending_email_expires_at = now() + interval '1 day' where account_id = $1`,
		`insert into approvals (account_id, approval_id, turn_id, conversation_id, body, tool_name, resource, definition, created_at, expires_at)
			select account_id, gen_random_uuid(), turn_id, conversation_id, '{"input": "canary-7f3a9"}', 'x', 'canary-7f3a9', 'x', now(), now() from turns where account_id = $1 limit 1`,
		`insert into artifacts (account_id, artifact_id, conversation_id, kind, title, version, created_by, bytes, sha256)
			select account_id, gen_random_uuid(), conversation_id, 'document', 'canary-7f3a9', 1, 'user', 12, sha256('x') from conversations where account_id = $1 limit 1`,
		`insert into artifact_versions (account_id, artifact_id, version, title, created_by, content, bytes, sha256)
			select account_id, artifact_id, 1, 'canary-7f3a9', 'user', 'canary-7f3a9', 12, sha256('x') from artifacts where account_id = $1`,
		`insert into research_tasks (account_id, task_id, conversation_id, question, state, spec, body, version, next_sequence, next_entry, created_at)
			select account_id, gen_random_uuid(), conversation_id, 'canary-7f3a9', 'running', '{"Question": "canary-7f3a9"}', '{"question": "canary-7f3a9"}', 1, 2, 2, now() from conversations where account_id = $1 limit 1`,
		`insert into research_events (account_id, task_id, first_sequence, last_sequence, frames) select account_id, task_id, 1, 1, 'canary-7f3a9' from research_tasks where account_id = $1`,
		`insert into research_entries (account_id, task_id, number, body) select account_id, task_id, 1, 'canary-7f3a9' from research_tasks where account_id = $1`,
		`insert into research_sources (account_id, task_id, ordinal, body) select account_id, task_id, 0, '"canary-7f3a9"' from research_tasks where account_id = $1`,
		`insert into share_artifacts (account_id, share_id, n, artifact_id, version, kind, title, content, bytes, sha256)
			select s.account_id, s.share_id, 1, a.artifact_id, 1, 'document', 'canary-7f3a9', 'canary-7f3a9', 12, sha256('x') from shares s join artifacts a using (account_id) where s.account_id = $1`,
		`insert into memory_consents (account_id, source, granted, precise) values ($1, 'location', true, true)`,
		`insert into location_contexts (account_id, conversation_id, latitude, longitude, accuracy_m, place, precise, expires_at)
			select account_id, conversation_id, 1, 2, 3, 'canary-7f3a9', true, now() + interval '1 hour' from conversations where account_id = $1 limit 1`,
		`insert into file_totals (account_id, bytes, files) values ($1, 1, 1) on conflict do nothing`,
		`insert into idempotency (account_id, key_hash, path, body_hash, status, body) values ($1, 'hash', '/', '', 201, 'canary-7f3a9')`,
	} {
		w.Database.Admin(w.T, sql, w.Account)
	}
}

// storeObjects stores objects of an account in quarantine and as files.
func storeObjects(w *storetest.World, account protocol.AccountID, content string) {
	w.Helper()
	store := w.Database.Objects(w.T)
	for _, key := range []string{uploadlog.QuarantinePrefix(account, "name") + "1", uploadlog.ObjectKey(account, "name")} {
		_, err := store.Put(w.Context(), key, strings.NewReader(content), int64(len(content)))
		w.Must(err)
	}
}

// dump returns every row of every table as text.
func dump(w *storetest.World) string {
	w.Helper()
	conn := w.AdminConn()
	rows, err := conn.Query(w.Context(), `select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('public', 'river')`)
	w.Must(err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.Must(err)
	var all strings.Builder
	for _, table := range tables {
		rows, err := conn.Query(w.Context(), `select t::text from `+table+` t`)
		w.Must(err)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.Must(err)
		for _, text := range texts {
			all.WriteString(table + " " + text + "\n")
		}
	}
	return all.String()
}

// inDump reports whether a text is in the rows, also in those that are shown as hexadecimal digits.
func inDump(w *storetest.World, text string) []string {
	w.Helper()
	var lines []string
	hex := strings.ToLower(strings.ReplaceAll(bytesHex(text), " ", ""))
	for line := range strings.SplitSeq(dump(w), "\n") {
		if strings.Contains(line, text) || strings.Contains(line, hex) {
			lines = append(lines, line)
		}
	}
	return lines
}

func bytesHex(text string) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for i := range len(text) {
		out.WriteByte(digits[text[i]>>4])
		out.WriteByte(digits[text[i]&15])
	}
	return out.String()
}

func inFolder(t *testing.T, folder, text string) (found int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(at string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(at)
		if bytes.Contains(content, []byte(text)) {
			found++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAnErasureLeavesNothingOfTheAccountAndSurvivesACrash(t *testing.T) {
	w := storetest.NewWorld(t)
	populate(w)
	storeObjects(w, w.Account, canary)
	before := accountTables(w, w.Account)
	for table, n := range before {
		if n == 0 {
			t.Errorf("populate stores no row in %s: add one", table)
		}
	}
	other := w.OtherAccount()
	otherTitle := storetest.NewConversation(t, w.DB, other, "another account").Title
	storeObjects(w, other, otherTitle)
	folder := w.Database.ObjectFolder(t)
	if len(inDump(w, canary)) == 0 || inFolder(t, folder, canary) != 3 { // an import and two objects of files
		t.Fatal("the canary was not stored")
	}
	id, err := w.DB.Erasures.Begin(t.Context(), w.Account, time.Now(), nil, audit.Requester{})
	w.Must(err)
	job := erasure.EraseArgs{AccountID: w.Account, ErasureID: id}
	// At once: no session, no sign-in, the address is free, and a second request finds no account.
	if n := w.Count(`select count(*) from sessions where revoked_at is null`); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	_, err = w.DB.Accounts.CredentialsByEmail(t.Context(), canary+"@example.com")
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = w.DB.Accounts.CredentialsByIdentity(t.Context(), accounts.Identity{Issuer: "https://issuer.example", Subject: canary})
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, _, err = w.DB.Passkeys.CredentialsByPasskey(t.Context(), []byte(canary))
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = w.DB.Erasures.Begin(t.Context(), w.Account, time.Now(), nil, audit.Requester{})
	storetest.WantCode(t, err, protocol.CodeNotFound)
	hash := "hash"
	again := protocol.NewAccountID()
	w.Must(w.DB.Accounts.Register(t.Context(), &accounts.NewAccount{
		Account: protocol.Account{AccountID: again, Email: "x@example.com"}, EmailKey: canary + "@example.com", PasswordHash: &hash, CreatedAt: time.Now(),
	}, nil, nil, audit.Requester{}))
	w.Database.Admin(t, `update accounts set email_key = 'x@example.com' where account_id = $1`, again)

	// The process ends after some steps; another one continues.
	for range 5 {
		done, err := w.DB.Erasures.Step(t.Context(), job, 3)
		if err != nil || done {
			t.Fatal(done, err)
		}
	}
	w.Database.Admin(t, `update accounts set erasing_at = now() - interval '1 hour' where account_id = $1`, w.Account)
	elsewhere := w.Database.Open(t)
	var changes clocktest.Changes
	runner, err := elsewhere.StartJobs(t.Context(), persistence.JobWorkers{
		Observe: changes.Job,
		Cancel:  operator.Cancel{Turn: func(context.Context, protocol.AccountID, protocol.TurnID) error { return nil }},
	})
	w.Must(err)
	var report *erasure.Report
	changes.Await(t, "the account is erased", func() bool {
		report, err = w.DB.Erasures.Erasure(t.Context(), id)
		w.Must(err)
		return report.FinishedAt != nil
	})
	w.Must(runner.Close(context.WithoutCancel(t.Context())))

	for table, n := range accountTables(w, w.Account) {
		switch {
		case stays[table]:
		case n != 0:
			t.Errorf("%d rows are left in %s", n, table)
		case !moving[table] && report.Counts[table] != int64(before[table]):
			t.Errorf("the report has %d rows of %s, want %d", report.Counts[table], table, before[table])
		}
	}
	if report.Subject != w.Account {
		t.Errorf("%+v", report)
	}
	if lines := inDump(w, canary); len(lines) > 0 {
		t.Errorf("the canary is left: %s", lines)
	}
	if n := inFolder(t, folder, canary); n != 0 {
		t.Errorf("the canary is left in %d objects", n)
	}
	if len(inDump(w, otherTitle)) == 0 || inFolder(t, folder, otherTitle) != 2 {
		t.Error("another account was erased")
	}
	events := w.Count(`select count(*) from audit where event in ('account.erasure_requested', 'account.erased')`)
	if broken := pgtest.BrokenEntry(t, w.DB, w.Account); broken != 0 || events != 2 {
		t.Errorf("%d events, the audit breaks at %d", events, broken)
	}
	// The job runs again after its result was lost.
	done, err := w.DB.Erasures.Step(t.Context(), job, 3)
	if err != nil || !done {
		t.Errorf("another step: %v %v", done, err)
	}
}

func TestTheRenewalOfASessionDoesNotChangeWhatIsConfirmed(t *testing.T) {
	w := storetest.NewWorld(t)
	now := time.Now()
	session := func(token string, at time.Time) *accounts.NewSession {
		return &accounts.NewSession{
			TokenHash: []byte(token), KeyVersion: 1, SessionID: protocol.NewSessionID(), At: at, ExpiresAt: at.Add(time.Hour),
		}
	}
	w.Must(w.DB.Accounts.CreateSession(t.Context(), w.Account, session("expired", now.Add(-2*time.Hour)), audit.Requester{}))
	first := session("first", now)
	w.Must(w.DB.Accounts.CreateSession(t.Context(), w.Account, first, audit.Requester{}))
	next := *first
	next.TokenHash, next.At = []byte("next"), now.Add(time.Second)
	rotated, err := w.DB.Accounts.RotateSession(t.Context(), w.Account, first.TokenHash, &next, 0, audit.Requester{})
	w.Must(err)
	counts, err := w.DB.Erasures.Count(t.Context(), w.Account)
	w.Must(err)
	if !rotated || counts["sessions"] != 1 {
		t.Errorf("rotated: %t, %d sessions", rotated, counts["sessions"])
	}
}

func TestAnAccountThatIsNotBeingErasedLosesNothing(t *testing.T) {
	w := storetest.NewWorld(t)
	storetest.NewConversation(t, w.DB, w.Account, "kept")
	done, err := w.DB.Erasures.Step(t.Context(), erasure.EraseArgs{AccountID: w.Account, ErasureID: protocol.NewErasureID()}, 10)
	if err != nil || !done || w.Count(`select count(*) from conversations`) != 1 {
		t.Errorf("%v %v", done, err)
	}
	_, err = w.DB.Erasures.Erasure(t.Context(), protocol.NewErasureID())
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

// ofTheAccount has the tables that keep rows when all conversations and projects of an account are deleted for good. A table that
// is in neither this list nor a purge fails the test below.
var ofTheAccount = func() map[string]bool {
	tables := map[string]bool{}
	for names := range strings.FieldsSeq(`
		accounts account_identities account_instructions account_settings memory_consents passkeys sessions mails audit audit_heads
		idempotency feed_items exports imports import_items import_sources token_days token_reservations
		usage_records usage_days usage_conversation_days
		files file_pages file_texts file_text_chunks file_totals uploads upload_events search_pending
		conversations`) { // files of the library, with their texts and their rows of the search; tombstones of conversations
		tables[names] = true
	}
	return tables
}()

func TestAPurgeOfAllConversationsAndProjectsLeavesOnlyWhatIsOfTheAccount(t *testing.T) {
	w := storetest.NewWorld(t)
	populate(w)
	w.Database.Admin(t, `update turns set state = 'completed', accepting = false, finished_at = now() where account_id = $1 and state <> 'completed'`, w.Account)
	w.Database.Admin(t, `update conversations set live_turn_id = null where account_id = $1`, w.Account)
	for _, id := range identifiers[protocol.ConversationID](w, `select conversation_id from conversations where account_id = $1`) {
		live, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id, Tasks: 1})
		if err != nil || live != nil {
			t.Fatalf("%+v (%v)", live, err)
		}
		for done := false; !done; {
			done, err = w.DB.Conversations.PurgeConversation(t.Context(), w.Account, id, 100)
			w.Must(err)
		}
	}
	w.Database.Admin(t, `update projects set deleted_at = now(), purge_at = now() where account_id = $1`, w.Account)
	for _, id := range identifiers[protocol.ProjectID](w, `select project_id from projects where account_id = $1`) {
		for done := false; !done; {
			var err error
			done, err = w.DB.Projects.PurgeProject(t.Context(), w.Account, id, 100, w.DB.Conversations.EraseOfProject)
			w.Must(err)
		}
	}
	for table, n := range accountTables(w, w.Account) {
		switch {
		case n > 0 && !ofTheAccount[table]:
			t.Errorf("%d rows are left in %s: delete them in the purge of what they belong to, or add the table to ofTheAccount", n, table)
		case n == 0 && ofTheAccount[table]:
			t.Errorf("no row is left in %s, which is in ofTheAccount", table)
		}
	}
}

func identifiers[T any](w *storetest.World, sql string) []T {
	w.Helper()
	rows, err := w.AdminConn().Query(w.Context(), sql, w.Account)
	w.Must(err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[T])
	w.Must(err)
	return found
}
