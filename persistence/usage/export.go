package usage

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/exports/archive"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const exportedSQL = `
	select usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at
	from usage_records
	where account_id = @account and usage_id > @after
	order by usage_id
	limit @limit`

// ExportSections returns what an export has of usage: every record.
func (s *Store) ExportSections() []archive.Section {
	return []archive.Section{archive.Pages("usage", "usage.json", "usage_records", func(ctx context.Context, account protocol.AccountID) func() ([]protocol.UsageRecord, bool, error) {
		var after protocol.UsageID
		return func() (found []protocol.UsageRecord, more bool, err error) {
			found, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.UsageRecord], exportedSQL,
				pgx.NamedArgs{"account": account, "after": after, "limit": archive.Page})
			if len(found) > 0 {
				after = found[len(found)-1].UsageID
			}
			return found, len(found) == archive.Page, err
		}
	})}
}
