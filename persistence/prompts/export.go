package prompts

import (
	"context"

	"turnstone/persistence/exports/archive"
	"turnstone/protocol"
)

// ExportSections returns what an export has of prompts: those of the account and of the projects that are not deleted.
func (s *Store) ExportSections() []archive.Section {
	return []archive.Section{archive.Pages("prompts", "prompts.json", "prompts", func(ctx context.Context, account protocol.AccountID) func() ([]protocol.Prompt, bool, error) {
		var after *Position
		return func() (found []protocol.Prompt, more bool, err error) {
			found, after, err = s.List(ctx, account, &Filter{}, after, archive.Page)
			return found, after != nil, err
		}
	})}
}
