package persistence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const verifyAuditSQL = `select audit_verify($1)`

// VerifyAudit walks the chain of an account's audit entries and answers the number of the first that does not hold: it
// was changed, or entries before it, or after it at the end, were removed. 0 when all hold.
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
