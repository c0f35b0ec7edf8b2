package accounts

import (
	"turnstone/persistence/sharetest"
)

// ShareLookups puts the next n lookups of sessions into one round trip.
func (s *Store) ShareLookups(n int) { sharetest.CollectGroups(&s.sessions.Work, n) }
