package audit_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestAuditIsAppendOnlyAndChained(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	session := protocol.NewSessionID()
	for range 3 {
		if err := db.Audit.Record(t.Context(), account, "test.event", &session, map[string]any{"count": 1}, audit.Requester{RequestID: "req", Address: "10.0.0.0/24"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Audit.Record(t.Context(), pg.NoAccount, "test.nobody", nil, nil, audit.Requester{}); err != nil {
		t.Fatal(err)
	}
	verify := func(want int64) {
		t.Helper()
		if broken := pgtest.BrokenEntry(t, db, account); broken != want {
			t.Errorf("broken at %d, want %d", broken, want)
		}
	}
	verify(0)
	if seen, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[int], `select count(*) from audit`); err != nil || seen != 3 {
		t.Errorf("the account sees %d entries (%v)", seen, err)
	}
	for _, sql := range []string{`update audit set event = 'x'`, `delete from audit`, `insert into audit select * from audit`, `select * from audit_heads`} {
		if _, err := db.Exec(t.Context(), account, sql); err == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
	for name, damage := range map[string]struct {
		sql, undo string
		broken    int64
	}{
		"changed": {`update audit set event = 'changed' where n = 2`, `update audit set event = 'test.event' where n = 2`, 2},
		"cut off": {`update audit set n = 30 where n = 3`, `update audit set n = 3 where n = 30`, 3},
		"detail":  {`update audit set detail = '{"count": 2}' where n = 1`, `update audit set detail = '{"count": 1}' where n = 1`, 1},
	} {
		database.Admin(t, damage.sql)
		if broken := pgtest.BrokenEntry(t, db, account); broken != damage.broken {
			t.Errorf("%s: broken at %d, want %d", name, broken, damage.broken)
		}
		database.Admin(t, damage.undo)
		verify(0)
	}
	database.Admin(t, `delete from audit where n = 3`)
	verify(3)
	database.Admin(t, `delete from audit where n = 1 and event = 'test.event'`)
	verify(2)
}
