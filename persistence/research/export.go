package research

import (
	"context"

	"turnstone/persistence/exports/archive"
	"turnstone/protocol"
)

// exportPage is small because a task may keep a mebibyte of excerpts.
const exportPage = 4

// ExportSections returns what an export has of research tasks.
func (s *Store) ExportSections() []archive.Section {
	return []archive.Section{archive.Pages("research tasks", "research.json", "research_tasks", func(ctx context.Context, account protocol.AccountID) func() ([]protocol.ExportedResearch, bool, error) {
		var after protocol.TaskID
		return func() (found []protocol.ExportedResearch, more bool, err error) {
			found, err = s.Exported(ctx, account, after, exportPage)
			if len(found) > 0 {
				after = found[len(found)-1].TaskID
			}
			return found, len(found) == exportPage, err
		}
	})}
}
