package persistence

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/protocol"
)

const verifyAuditSQL = `select audit_verify($1)`

// VerifyAudit checks the chain of an account's audit entries from its newest checkpoint on and returns the number of the first
// entry that does not hold: it was changed, or entries before it, or after it at the end, were removed. 0 when all hold.
func (db *DB) VerifyAudit(ctx context.Context, account protocol.AccountID) (broken int64, err error) {
	first, err := Row(ctx, db, account, pgx.RowTo[*int64], verifyAuditSQL, account)
	if err != nil {
		return 0, fmt.Errorf("verifying the audit: %w", err)
	}
	if first == nil {
		return 0, nil
	}
	return *first, nil
}

const (
	auditExpireInterval = time.Hour
	auditExpireAccounts = 10_000 // entries of which the accounts of one look are taken
	auditExpireRows     = 1000   // of one transaction
)

// expireAuditArgs asks that entries of the audit older than 400 days be removed.
type expireAuditArgs struct{}

func (expireAuditArgs) Kind() string { return "expire_audit" }

const (
	expiredAuditSQL = `
	select distinct account_id from (
		select account_id from audit where at < date_trunc('day', now(), 'UTC') - interval '400 days' order by at limit $1) x`
	expireAuditSQL = `select audit_expire($1, $2)`
)

// expireAudit removes what is old, chain by chain, behind a checkpoint each; see migrations for how the chain stays verifiable.
// A chain that does not hold is kept and reported. When the job's time is over the next run continues.
func (db *DB) expireAudit(ctx context.Context) error {
	rows, err := db.engine.Query(ctx, expiredAuditSQL, auditExpireAccounts)
	if err != nil {
		return fmt.Errorf("finding what has expired of the audit: %w", classify(err))
	}
	accounts, err := pgx.CollectRows(rows, pgx.RowTo[protocol.AccountID])
	if err != nil {
		return fmt.Errorf("finding what has expired of the audit: %w", classify(err))
	}
	broken := 0
	for _, account := range accounts {
		var whole int64
		for removed := int64(auditExpireRows); removed == auditExpireRows; whole += removed {
			if err := db.engine.QueryRow(ctx, expireAuditSQL, account, auditExpireRows).Scan(&removed); err != nil {
				return fmt.Errorf("removing what has expired of the audit: %w", classify(err))
			}
		}
		if whole == 0 {
			broken++
		}
	}
	if broken > 0 {
		db.log.Error("chains of the audit do not hold and are kept", zap.Int("accounts", broken))
	}
	return nil
}
