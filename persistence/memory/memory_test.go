package memory_test

import (
	"context"
	"testing"
	"time"

	"turnstone/persistence/conversations"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func locationConsent(granted, precise bool) protocol.MemoryConsent {
	return protocol.MemoryConsent{Source: protocol.SourceLocation, Granted: granted, Precise: precise}
}

func at(latitude, longitude, accuracy float64) *protocol.LocationContext {
	return &protocol.LocationContext{Latitude: latitude, Longitude: longitude, AccuracyM: accuracy, ExpiresAt: time.Now().Add(time.Hour)}
}

// A revocation waits for the location that is being stored under the consent, and deletes it: none is left.
func TestARevocationDeletesALocationThatIsStoredAtTheSameTime(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := storetest.NewConversation(t, w.DB, w.Account, "Weather").ConversationID
	_, err := w.DB.Memory.SetConsent(t.Context(), w.Account, locationConsent(true, false))
	w.Must(err)
	// Another transaction has stored a location and has not committed.
	conn := w.AdminConn()
	tx, err := conn.Begin(t.Context())
	w.Must(err)
	_, err = tx.Exec(t.Context(), `select from memory_consents where account_id = $1 for share`, w.Account)
	w.Must(err)
	_, err = tx.Exec(t.Context(), `insert into location_contexts (account_id, conversation_id, latitude, longitude, accuracy_m, precise, expires_at)
		values ($1, $2, 1, 2, 3, false, now() + interval '1 hour')`, w.Account, conversation)
	w.Must(err)
	revoked := make(chan error, 1)
	go func() {
		_, err := w.DB.Memory.SetConsent(context.WithoutCancel(t.Context()), w.Account, locationConsent(false, false))
		revoked <- err
	}()
	awaitLock(w)
	w.Must(tx.Commit(t.Context()))
	w.Must(<-revoked)
	if n := w.Count(`select count(*) from location_contexts`); n != 0 {
		t.Errorf("%d locations are stored without a consent", n)
	}
	_, err = w.DB.Memory.PutLocation(t.Context(), w.Account, conversation, at(1, 2, 3))
	storetest.WantCode(t, err, protocol.CodeConsentRequired)
}

// A location that arrives during the deletion of its conversation waits for it, and is not stored.
func TestADeletedConversationGetsNoLocation(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := storetest.NewConversation(t, w.DB, w.Account, "Weather").ConversationID
	_, err := w.DB.Memory.SetConsent(t.Context(), w.Account, locationConsent(true, false))
	w.Must(err)
	tx, err := w.AdminConn().Begin(t.Context())
	w.Must(err)
	_, err = tx.Exec(t.Context(), `update conversations set deleted_at = now() where conversation_id = $1`, conversation)
	w.Must(err)
	stored := make(chan error, 1)
	go func() {
		_, err := w.DB.Memory.PutLocation(context.WithoutCancel(t.Context()), w.Account, conversation, at(1, 2, 3))
		stored <- err
	}()
	storetest.AwaitWaiting(t, w.Database, "select count(*) > 0", true)
	w.Must(tx.Commit(t.Context()))
	storetest.WantCode(t, <-stored, protocol.CodeNotFound)
	if n := w.Count(`select count(*) from location_contexts`); n != 0 {
		t.Errorf("%d locations of a deleted conversation are stored", n)
	}
}

// awaitLock waits until a statement of the service waits for a lock.
func awaitLock(w *storetest.World) {
	w.Helper()
	for conn := w.AdminConn(); ; {
		var waits bool
		w.Must(conn.QueryRow(w.Context(), `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like '%memory_consents%')`).Scan(&waits))
		if waits {
			return
		}
	}
}

func TestACoarseLocationIncludesTheTrueOne(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := storetest.NewConversation(t, w.DB, w.Account, "Weather").ConversationID
	_, err := w.DB.Memory.SetConsent(t.Context(), w.Account, locationConsent(true, false))
	w.Must(err)
	for _, c := range []struct{ latitude, longitude, accuracy, wantLatitude, wantLongitude, wantAccuracy float64 }{
		{53.3671, 7.2063, 40, 53.37, 7.21, 1000},
		{-53.365, -7.2049, 300, -53.37, -7.2, 2000},
		{89.999, 179.999, 0, 90, 180, 1000},
		{-0.004, 0.004, 1_000_000, 0, 0, 1_001_000},
		{5e-324, -5e-324, 5e-324, 0, 0, 1000},
	} {
		stored, err := w.DB.Memory.PutLocation(t.Context(), w.Account, conversation, at(c.latitude, c.longitude, c.accuracy))
		w.Must(err)
		if stored.Latitude != c.wantLatitude || stored.Longitude != c.wantLongitude || stored.AccuracyM != c.wantAccuracy || stored.Precise {
			t.Errorf("%+v became %+v", c, stored)
		}
	}
}

// A place with a number may be as precise as coordinates.
func TestACoarseLocationHasNoAddress(t *testing.T) {
	w := storetest.NewWorld(t)
	conversation := storetest.NewConversation(t, w.DB, w.Account, "Weather").ConversationID
	for _, precise := range []bool{false, true} {
		_, err := w.DB.Memory.SetConsent(t.Context(), w.Account, locationConsent(true, precise))
		w.Must(err)
		for place, kept := range map[string]bool{"Emden": true, "Hauptstraße 5, Emden": precise, "شارع ٥": precise} {
			where := at(53.3, 7.2, 10)
			where.Place = &place
			stored, err := w.DB.Memory.PutLocation(t.Context(), w.Account, conversation, where)
			w.Must(err)
			if (stored.Place != nil) != kept {
				t.Errorf("%q, precise %t: stored is %v", place, precise, stored.Place)
			}
		}
	}
}

func TestATemporaryConversationHasALocationThatEndsWithIt(t *testing.T) {
	w := storetest.NewWorld(t)
	made, err := w.DB.Conversations.CreateConversation(t.Context(), w.Account, &conversations.NewConversation{ConversationID: protocol.NewConversationID(), Temporary: true})
	w.Must(err)
	_, err = w.DB.Memory.SetConsent(t.Context(), w.Account, locationConsent(true, true))
	w.Must(err)
	_, err = w.DB.Memory.PutLocation(t.Context(), w.Account, made.ConversationID, at(1.2345, 2, 3))
	w.Must(err)
	stored, err := w.DB.Memory.Location(t.Context(), w.Account, made.ConversationID)
	w.Must(err)
	if stored.Latitude != 1.2345 || !stored.Precise {
		t.Errorf("%+v", stored)
	}
	other := w.OtherAccount()
	_, err = w.DB.Memory.SetConsent(t.Context(), other, locationConsent(true, false))
	w.Must(err)
	_, err = w.DB.Memory.Location(t.Context(), other, made.ConversationID)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	w.Database.Admin(t, `delete from conversations`)
	if n := w.Count(`select count(*) from location_contexts`); n != 0 {
		t.Errorf("%d locations are left", n)
	}
}
