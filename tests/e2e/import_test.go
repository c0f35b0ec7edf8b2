package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

var importKills = flag.Int("imports.kills", 2, "kills of TestAKillAtAnyStepOfAnImportLosesAndRepeatsNothing, at random steps; 0: at every step")

// stepsSQL counts the rows that an import of an account writes, also those of transactions that are rolled back. The row of the number
// in import_steps waits for a lock.
const stepsSQL = `
create table import_steps (account_id uuid primary key, at int not null);
create sequence import_step;
create function import_step() returns trigger language plpgsql security definer as $$
declare
    stop int;
begin
    select at into stop from public.import_steps where account_id = new.account_id;
    if stop is not null and not (tg_table_name = 'imports' and to_jsonb(new) ->> 'state' in ('receiving', 'queued')) and nextval('public.import_step') = stop then
        perform pg_advisory_xact_lock(39);
    end if;
    return new;
end $$;
do $$
declare
    name text;
begin
    foreach name in array array['imports', 'import_items', 'import_sources', 'uploads', 'files', 'conversations', 'branches', 'messages', 'artifacts', 'artifact_versions'] loop
        execute format('create trigger import_step before insert or update on %I for each row execute function import_step()', name);
    end loop;
end $$`

// importedSQL describes everything that an account has of an import.
const importedSQL = `
select format('%s, %s conversations, %s messages, %s files, %s artifacts, report %s; ', state, imported, messages, files, artifacts, report -> 'reasons')
    || (select string_agg(filename || ' ' || encode(sha256, 'hex'), ',' order by filename) from files where account_id = $1)
    || (select string_agg(title || ' ' || message_count || (deleted_at is null), ',' order by title) from conversations where account_id = $1)
    || (select string_agg(role || ' ' || cardinality(attachments) || depth, ',' order by depth) from messages where account_id = $1)
    || (select string_agg(version || content, ',' order by version) from artifact_versions where account_id = $1)
    || (select count(*) from import_items where account_id = $1) || (select count(*) from import_sources where account_id = $1)
from imports where account_id = $1`

// importArchive is an export of ChatGPT with two files, and an artifact with two versions.
func importArchive(t *testing.T) client.Content {
	t.Helper()
	return client.Content(archived(t, "conversations.json", `[{"id":"x","title":"Tides","mapping":{
	"1":{"id":"1","message":{"author":{"role":"user"},"metadata":{"attachments":[{"id":"file-AAA","name":"map.txt"}]},"content":{"content_type":"multimodal_text","parts":["A map"]}}},
	"2":{"id":"2","parent":"1","message":{"author":{"role":"tool","name":"dalle.text2im"},"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"sediment://file_bbb"}]}}},
	"3":{"id":"3","parent":"2","message":{"author":{"role":"assistant"},"recipient":"canmore.create_textdoc","content":{"content_type":"code","text":"{\"name\":\"Plan\",\"type\":\"document\",\"content\":\"one\"}"}}},
	"4":{"id":"4","parent":"3","message":{"author":{"role":"assistant"},"recipient":"canmore.update_textdoc","content":{"content_type":"code","text":"{\"updates\":[{\"pattern\":\"one\",\"replacement\":\"two\"}]}"}}}}}]`,
		"file-AAA-map.txt", "map", "file_bbb-made.txt", "made"))
}

// importing is a site whose imports can be stopped at each of their steps.
type importing struct {
	*sitetest.Site
	t    *testing.T
	node *sitetest.Process
	db   *pgx.Conn
}

func (s *importing) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(sitetest.Within(s.t, sitetest.HangGuard), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *importing) count(sql string) (n int) {
	s.t.Helper()
	if err := s.db.QueryRow(sitetest.Within(s.t, sitetest.HangGuard), sql).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// run imports the archive into a new account, and kills the program at a step; 0: at none. It returns what the account has in the end.
func (s *importing) run(step int) (outcome string) {
	s.t.Helper()
	u := sitetest.NewUser(s.t, s.Base)
	var account protocol.Account
	u.Get(s.t, "/account", &account)
	id := uuid.UUID(account.AccountID).String()
	s.exec(`delete from import_steps`) // what is written for the account before does not count
	s.exec(`alter sequence import_step restart`)
	s.exec(`insert into import_steps values ($1, $2)`, id, step)
	if step > 0 {
		s.exec(`select pg_advisory_lock(39)`)
	}
	path := "/account/imports/" + u.Do(s.t, http.MethodPost, "/account/imports", importArchive(s.t), "Content-Type", "application/zip").Text(s.t, http.StatusAccepted, "import_id")
	ended := func() bool {
		var state protocol.Import
		u.Get(s.t, path, &state)
		return state.State == protocol.ImportCompleted || state.State == protocol.ImportFailed
	}
	const waiting = `from pg_locks where locktype = 'advisory' and not granted`
	is := func() bool { return s.count(`select count(*) `+waiting) > 0 }
	if step > 0 {
		sitetest.Eventually(s.t, fmt.Sprintf("the import is at step %d", step), func() bool { return is() || ended() }) // uploads have a step more or less
	}
	switch {
	case step > 0 && is():
		over := u.Ledger.Plan()
		s.node.Kill()
		// What follows is that of the minutes after which an import and a job have certainly ended with their process.
		s.exec(`select pg_terminate_backend(pid) ` + waiting)
		s.exec(`select pg_advisory_unlock(39)`)
		s.exec(`update imports set active_at = now() - interval '10 minutes' where account_id = $1`, id)
		s.exec(`update river.river_job set state = 'available', scheduled_at = now() where state = 'running'`)
		s.node = s.Start()
		over()
	case step > 0:
		s.exec(`select pg_advisory_unlock(39)`)
	}
	sitetest.Eventually(s.t, fmt.Sprintf("the import that was killed at step %d ends", step), ended)
	if err := s.db.QueryRow(sitetest.Within(s.t, sitetest.HangGuard), importedSQL, id).Scan(&outcome); err != nil {
		s.t.Fatal(err)
	}
	return outcome
}

// TestAKillAtAnyStepOfAnImportLosesAndRepeatsNothing imports an archive undisturbed, and then kills the program while an import writes
// one of its rows. The next process ends it with the same result.
func TestAKillAtAnyStepOfAnImportLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	s := &importing{Site: sitetest.NewSite(t), t: t}
	s.node = s.Start()
	s.db = superuser(t, s.Site)
	s.exec(stepsSQL)
	want := s.run(0)
	steps := s.count(`select last_value from import_step`)
	t.Logf("%d steps: %s", steps, want)
	killed := rand.Perm(steps)
	if *importKills > 0 {
		killed = killed[:*importKills]
	}
	for _, n := range killed {
		if got := s.run(n + 1); got != want {
			t.Errorf("killed at step %d:\ngot  %s\nwant %s", n+1, got, want)
		}
	}
}
