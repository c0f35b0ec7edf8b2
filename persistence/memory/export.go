package memory

import (
	"context"

	"turnstone/persistence/exports/archive"
	"turnstone/protocol"
)

// ExportSections returns what an export has of the memory: the consents, and the locations of conversations.
func (s *Store) ExportSections() []archive.Section {
	return []archive.Section{
		archive.One("consents", "memory_sources.json", func(ctx context.Context, account protocol.AccountID) (protocol.List[protocol.MemoryConsent], error) {
			found, err := s.Consents(ctx, account)
			return protocol.List[protocol.MemoryConsent]{Data: found}, err
		}),
		archive.Pages("locations", "location_contexts.json", "location_contexts", func(ctx context.Context, account protocol.AccountID) func() ([]ExportedLocation, bool, error) {
			var after protocol.ConversationID
			return func() (found []ExportedLocation, more bool, err error) {
				found, err = s.Locations(ctx, account, after, archive.Page)
				if len(found) > 0 {
					after = found[len(found)-1].ConversationID
				}
				return found, len(found) == archive.Page, err
			}
		}),
	}
}
