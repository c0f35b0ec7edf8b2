package audit_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

// agedAudit is an audit chain whose first entries are 401 days old.
type agedAudit struct {
	pgtest.Database
	*persistence.Stores
	t       *testing.T
	account protocol.AccountID
}

// ageSQL dates the first entries of a chain back by 401 days and computes the hashes of the chain again.
const ageSQL = `
do $$
declare
    entry audit;
    before bytea := ''::bytea;
begin
    for entry in select * from audit where account_id = '%s' order by n loop
        if entry.n <= %s then entry.at := entry.at - interval '401 days'; end if;
        entry.previous := before;
        before := audit_hash(before, entry.account_id, entry.n, entry.at, entry.event, entry.session_id, entry.request_id, entry.address, entry.detail);
        update audit a set at = entry.at, previous = entry.previous, hash = before where a.account_id = entry.account_id and a.n = entry.n;
        update audit_heads h set hash = before where h.account_id = entry.account_id;
    end loop;
end
$$`

func newAgedAudit(t *testing.T, entries, old int) *agedAudit {
	t.Helper()
	database := pgtest.NewDatabase(t)
	a := &agedAudit{Database: database, Stores: database.Open(t), t: t}
	a.account = pgtest.Account(t, a.Stores)
	a.add(entries)
	a.age(old)
	a.verify(0)
	return a
}

func (a *agedAudit) add(entries int) {
	a.t.Helper()
	for range entries {
		if err := a.Audit.Record(a.t.Context(), a.account, "test.event", nil, nil, audit.Requester{}); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *agedAudit) age(old int) {
	a.Admin(a.t, fmt.Sprintf(ageSQL, protocol.NodeID(a.account).String(), strconv.Itoa(old)))
}

func (a *agedAudit) expire() {
	a.t.Helper()
	if err := a.Audit.ExpireNow(context.WithoutCancel(a.t.Context())); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agedAudit) verify(want int64) {
	a.t.Helper()
	if broken := pgtest.BrokenEntry(a.t, a.Stores, a.account); broken != want {
		a.t.Errorf("broken at %d, want %d", broken, want)
	}
}

func (a *agedAudit) left() []int64 {
	a.t.Helper()
	left, err := pg.Rows(a.t.Context(), a.DB, a.account, pgx.RowTo[int64], `select n from audit order by n`)
	if err != nil {
		a.t.Fatal(err)
	}
	return left
}

func TestExpiredAuditEntriesAreReplacedByACheckpoint(t *testing.T) {
	a := newAgedAudit(t, 5, 3)
	a.expire()
	if left := a.left(); !slices.Equal(left, []int64{4, 5, 6}) { // 6 is the checkpoint
		t.Fatalf("remaining entries: %v", left)
	}
	a.verify(0)
	a.expire() // nothing more expires
	a.add(2)
	a.verify(0)
	if left := a.left(); !slices.Equal(left, []int64{4, 5, 6, 7, 8}) {
		t.Errorf("remaining entries: %v", left)
	}
}

func TestTamperingAfterACheckpointIsDetected(t *testing.T) {
	a := newAgedAudit(t, 5, 3)
	a.expire()
	a.add(2) // 4, 5, the checkpoint 6, 7, 8
	for name, damage := range map[string]struct {
		sql    string
		broken int64
	}{
		"an entry":                       {`update audit set event = 'changed' where n = 5`, 5},
		"the number of the checkpoint":   {`update audit set detail = jsonb_set(detail, '{n}', '4') where n = 6`, 4},
		"the hash of the checkpoint":     {`update audit set detail = jsonb_set(detail, '{hash}', '"00"') where n = 6`, 4},
		"the first entry is removed":     {`delete from audit where n = 4`, 5},
		"the checkpoint is removed":      {`delete from audit where n = 6`, 4},
		"an entry in between is removed": {`delete from audit where n = 7`, 8},
		"the last entry is removed":      {`delete from audit where n = 8`, 8},
		"another checkpoint is claimed": {`update audit set event = 'audit.expired',
			detail = jsonb_build_object('n', 5, 'hash', (select encode(hash, 'hex') from audit where n = 5)) where n = 8; delete from audit where n < 6`, 8},
	} {
		a.Admin(t, `create table kept as select * from audit`)
		a.Admin(t, damage.sql)
		if broken := pgtest.BrokenEntry(t, a.Stores, a.account); broken != damage.broken {
			t.Errorf("%s: broken at %d, want %d", name, broken, damage.broken)
		}
		a.Admin(t, `delete from audit; insert into audit select * from kept; drop table kept`)
		a.verify(0)
	}
}

func TestAChainOfOldEntriesOnlyIsReducedToItsCheckpoints(t *testing.T) {
	a := newAgedAudit(t, 2500, 2500)
	a.expire()
	if left := a.left(); !slices.Equal(left, []int64{2501, 2502, 2503}) { // one for each transaction
		t.Errorf("remaining entries: %v", left)
	}
	a.verify(0)
	a.add(1)
	a.verify(0)
}

func TestABrokenChainDoesNotExpire(t *testing.T) {
	a := newAgedAudit(t, 5, 4)
	a.Admin(t, `update audit set event = 'changed' where n = 2`)
	a.expire()
	if left := a.left(); !slices.Equal(left, []int64{2, 3, 4, 5, 6}) { // the intact entry 1 has expired
		t.Errorf("remaining entries: %v", left)
	}
	a.verify(2)
	a.expire()
	a.verify(2)
}

func TestOnlyTheExpiryOfTheOwnerShortensTheAudit(t *testing.T) {
	a := newAgedAudit(t, 3, 2)
	for _, sql := range []string{
		`delete from audit`, `select audit_expire('` + protocol.NodeID(a.account).String() + `', 10)`,
		`select audit_extend('` + protocol.NodeID(a.account).String() + `', 'audit.expired', null, '', '', '{"n": 2}')`,
		`select audit_append('` + protocol.NodeID(a.account).String() + `', 'audit.expired', null, '', '', '{"n": 2}')`,
	} {
		if _, err := a.Exec(t.Context(), a.account, sql); err == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
	a.verify(0)
}
