package shares

import (
	"context"

	"turnstone/persistence/exports/archive"
	"turnstone/protocol"
)

// ExportSections returns what an export has of shares: those that can still be read, without their secret addresses, which are not stored.
func (s *Store) ExportSections() []archive.Section {
	return []archive.Section{archive.Pages("shares", "shares.json", "shares", func(ctx context.Context, account protocol.AccountID) func() ([]protocol.Share, bool, error) {
		var after *protocol.ShareID
		return func() (found []protocol.Share, more bool, err error) {
			found, after, err = s.List(ctx, account, after, archive.Page)
			return found, after != nil, err
		}
	})}
}
