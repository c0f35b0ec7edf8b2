package accounts

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/exports/archive"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// ExportedVersion is an item of account_instructions.json: one version of the instructions of the account.
type ExportedVersion struct {
	Version   int64     `json:"version"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
}

// InstructionsPage is the number of versions of instructions that one statement reads: they are long.
const InstructionsPage = 50

const exportedInstructionsSQL = `
	select version, content, created_at from account_instructions
	where account_id = @account and version > @version
	order by version
	limit @limit`

// ExportSections returns what an export has of the account itself: the account, its settings, and every version of its instructions.
func (s *Store) ExportSections() []archive.Section {
	return []archive.Section{
		archive.One("account", "account.json", func(ctx context.Context, account protocol.AccountID) (protocol.Account, error) {
			found, err := s.CredentialsOf(ctx, account)
			if err != nil {
				return protocol.Account{}, err
			}
			return found.Account, nil
		}),
		archive.One("settings", "settings.json", s.Settings),
		archive.Pages("account's instructions", "account_instructions.json", "account_instructions", func(ctx context.Context, account protocol.AccountID) func() ([]ExportedVersion, bool, error) {
			var after ExportedVersion
			return func() (found []ExportedVersion, more bool, err error) {
				found, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[ExportedVersion], exportedInstructionsSQL,
					pgx.NamedArgs{"account": account, "version": after.Version, "limit": InstructionsPage})
				if len(found) > 0 {
					after = found[len(found)-1]
				}
				return found, len(found) == InstructionsPage, err
			}
		}),
	}
}
