package turn

import (
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/protocol"
)

func TestTheStoreInMemoryPassesTheSuite(t *testing.T) {
	actorstest.Run(t, func(t *testing.T) (actorstest.Store, protocol.AccountID) {
		t.Helper()
		store := actorstest.NewMemory()
		t.Cleanup(store.Appends.Wait)
		return store, protocol.NewAccountID()
	})
}
