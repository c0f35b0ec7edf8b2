package idempotency

import (
	"turnstone/persistence/sharetest"
)

// ShareLookups puts the next n lookups of keys into one round trip.
func (s *Store) ShareLookups(n int) { sharetest.CollectGroups(&s.keys.Work, n) }
