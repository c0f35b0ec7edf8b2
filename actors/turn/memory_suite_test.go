package turn

import (
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/protocol"
)

func TestTheStoreInMemoryPassesTheSuite(t *testing.T) {
	actorstest.Run(t, func(t *testing.T) (actorstest.Store, protocol.AccountID) {
		t.Helper()
		store := newMemory()
		t.Cleanup(store.wg.Wait)
		return store, protocol.NewAccountID()
	})
}
