package turns_test

import (
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/persistence/nodes"
	"turnstone/persistence/storetest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
)

// stores are the stores on Postgres that the packages turn and node use.
type stores struct {
	*turns.Store
	*nodes.Directory
}

func TestTheStoresOnPostgresPassTheSuite(t *testing.T) {
	actorstest.Run(t, func(t *testing.T) (actorstest.Store, protocol.AccountID) {
		t.Helper()
		w := storetest.NewWorld(t)
		w.Must(w.Directory.Leave(t.Context(), w.Node)) // the suite registers its own nodes
		return stores{w.Turns, w.Directory}, w.Account
	})
}
