package pg_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
)

// enginePolicies are the tables whose rows of all accounts the engine may read or change, and what it does there. What it may do beyond
// that is limited by its grants, which name columns. A new line is a decision: a statement of a request never runs as the engine.
var enginePolicies = map[string]string{
	"turns ALL":                "claims, and the state of each append",
	"turn_events ALL":          "the journal appends events",
	"turn_records ALL":         "the journal appends records",
	"turn_replays ALL":         "turns that have ended are counted",
	"approvals ALL":            "the journal stores approvals with their records",
	"conversations ALL":        "temporary conversations that have expired, stalled queues, names for the search",
	"follow_ups ALL":           "stalled queues",
	"projects ALL":             "deleted projects whose content is erased",
	"idempotency ALL":          "keys that have expired",
	"audit SELECT":             "accounts with entries that have expired",
	"token_days ALL":           "days that have passed",
	"token_reservations ALL":   "reservations that have expired",
	"feed_items ALL":           "the newest changes of all accounts, for the hub, and those that have expired",
	"messages SELECT":          "the search reads texts",
	"search_rows ALL":          "the index of the search",
	"search_pending ALL":       "what the search has to read",
	"shares ALL":               "shares that have expired",
	"share_pages ALL":          "the pages of shares that have expired",
	"share_files ALL":          "the files of shares that have expired",
	"share_artifacts ALL":      "the artifacts of shares that have expired",
	"imports SELECT":           "imports that nobody continues",
	"uploads ALL":              "claims, and uploads that have expired",
	"files SELECT":             "objects without a row, deleted files, names for the search",
	"message_files SELECT":     "the search reads which files a message has",
	"file_text_chunks SELECT":  "the search reads texts of files",
	"mails ALL":                "mails that have expired",
	"artifacts SELECT":         "the search reads titles of artifacts",
	"artifact_versions SELECT": "the search reads texts of artifacts",
	"location_contexts ALL":    "places that have expired",
	"research_tasks ALL":       "claims",
}

func TestTheEngineSeesOnlyTheTablesThatWereReviewed(t *testing.T) {
	db := pgtest.New(t)
	found, err := pg.Rows(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[string],
		`select tablename || ' ' || cmd from pg_policies where policyname <> 'own' and roles && array[$1::name, 'public'] order by 1`, pg.EngineRole)
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(maps.Keys(enginePolicies)); !slices.Equal(slices.Sorted(slices.Values(found)), want) {
		t.Errorf("policies of the engine:\n%q, want\n%q", found, want)
	}
}

// TestEveryTableOfAccountsShowsAnAccountItsOwnRows checks that the policy own of each table names the account of the statement, for
// reads and for writes.
func TestEveryTableOfAccountsShowsAnAccountItsOwnRows(t *testing.T) {
	db := pgtest.New(t)
	const own = `(account_id = (NULLIF(current_setting('turnstone.account_id'::text, true), ''::text))::uuid)`
	found, err := pg.Rows(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[string], `
		select c.relname from pg_class c
		left join pg_policies p on p.schemaname = 'public' and p.tablename = c.relname and p.policyname = 'own'
		where c.relnamespace = 'public'::regnamespace and c.relrowsecurity
		  and (p.qual is distinct from $1 or coalesce(p.with_check, p.qual) is distinct from $1 or not c.relforcerowsecurity)
		order by 1`, own)
	if err != nil || !slices.Equal(found, []string{"audit"}) { // only its functions write to it, as its owner
		t.Errorf("tables with another policy: %q, %v", found, err)
	}
}
