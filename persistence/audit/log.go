package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Log stores security events. Its methods may be called from any goroutine.
type Log struct{ db *pg.DB }

// New returns a store without state in memory.
func New(db *pg.DB) *Log { return &Log{db} }

// Requester identifies the request that caused an entry. It holds no content of the request.
type Requester struct {
	RequestID string
	Address   string // network prefix only
}

// AppendAuditSQL appends an entry to the hash chain of an account.
const AppendAuditSQL = `select audit_append($1, $2, $3, $4, $5, $6)`

// Queue adds the statement that appends an entry, so that it is stored with the rest of the batch.
func (r Requester) Queue(batch *pgx.Batch, account protocol.AccountID, event SecurityEvent, session *protocol.SessionID) {
	batch.Queue(AppendAuditSQL, account, string(event), session, r.RequestID, r.Address, []byte("{}"))
}

// Record appends a single entry. account is pg.NoAccount if no account is known; detail has identifiers and counts
// only.
func (s *Log) Record(ctx context.Context, account protocol.AccountID, event SecurityEvent, session *protocol.SessionID, detail map[string]any, by Requester) error {
	text, err := json.Marshal(detail)
	if err != nil || detail == nil {
		text = []byte("{}")
	}
	_, err = s.db.Exec(ctx, account, AppendAuditSQL, account, string(event), session, by.RequestID, by.Address, text)
	return err
}

// Position is the position after an entry in the list, which is in descending order of the numbers.
type Position struct{ Number int64 }

const listEntriesSQL = `
	select n as number, event, at, nullif(nullif(address, ''), 'unknown') as address, session_id,
		case when jsonb_typeof(detail->'count') = 'number' then (detail->>'count')::bigint else 1 end as count
	from audit where account_id = @account and n < @before and event <> 'audit.expired' order by n desc limit @limit`

// ListEntries returns a page of the entries of an account, the newest first. next is nil at the end. The checkpoints that
// replace expired entries are left out.
func (s *Log) ListEntries(ctx context.Context, account protocol.AccountID, after *Position, limit int) (page []protocol.SecurityLogEntry, next *Position, err error) {
	if after == nil {
		after = &Position{Number: math.MaxInt64}
	}
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.SecurityLogEntry], listEntriesSQL, pgx.NamedArgs{
		"account": account, "before": after.Number, "limit": limit + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	return pg.NextPage(page, limit, func(last *protocol.SecurityLogEntry) Position { return Position{Number: last.Number} })
}

const (
	auditExpireInterval = time.Hour
	auditExpireAccounts = 10_000 // expired entries that one run reads to find their accounts
	auditExpireRows     = 1000   // entries that one transaction removes
)

// Retention is how long the entries of the audit are kept, and the reports of erasures.
const Retention = "400 days"

// expireAuditArgs is the job that removes audit entries older than Retention.
type expireAuditArgs struct{}

func (expireAuditArgs) Kind() string { return "expire_audit" }

// ExpiryJob returns the job that removes old entries.
func (s *Log) ExpiryJob() jobs.Job {
	return jobs.New(func(ctx context.Context, _ expireAuditArgs) error { return s.expireAudit(ctx) }).Every(auditExpireInterval, expireAuditArgs{})
}

const (
	expiredAuditSQL = `
	select distinct account_id from (
		select account_id from audit where at < date_trunc('day', now(), 'UTC') - '` + Retention + `'::interval order by at limit $1) x`
	expireAuditSQL = `select audit_expire($1, $2)`
)

// expireAudit removes expired entries, one chain after the other, and each removal appends a checkpoint to the chain;
// migrations/011_audit_expiry.sql describes how the chain stays verifiable. A chain that fails the check is kept and
// logged. When the job's time is over, the next run continues.
func (s *Log) expireAudit(ctx context.Context) error {
	rows, err := s.db.Engine.Query(ctx, expiredAuditSQL, auditExpireAccounts)
	if err != nil {
		return fmt.Errorf("finding expired audit entries: %w", pg.Classify(err))
	}
	accounts, err := pgx.CollectRows(rows, pgx.RowTo[protocol.AccountID])
	if err != nil {
		return fmt.Errorf("finding expired audit entries: %w", pg.Classify(err))
	}
	broken := 0
	for _, account := range accounts {
		var whole int64
		for removed := int64(auditExpireRows); removed == auditExpireRows; whole += removed {
			if err := s.db.Engine.QueryRow(ctx, expireAuditSQL, account, auditExpireRows).Scan(&removed); err != nil {
				return fmt.Errorf("removing expired audit entries: %w", pg.Classify(err))
			}
		}
		if whole == 0 {
			broken++
		}
	}
	if broken > 0 {
		s.db.Log.Error("audit chains failed the check; their expired entries are kept", zap.Int("accounts", broken))
	}
	return nil
}
