package persistence_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
)

// pgx starts a reader in the background when a write is slow, as on a busy machine, and leaves it waiting in a read of
// the socket until the next answer. A look at the connection must not wait behind it.
func TestALookAtAConnectionDoesNotWaitForItsReader(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.NewDatabase(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	reader, looked := make(chan struct{}), make(chan bool, 1)
	go func() {
		defer close(reader)
		_, _ = conn.PgConn().Conn().Read(make([]byte, 1)) // until the connection is closed
	}()
	go func() {
		all := true
		for range 1000 { // the reader has begun by one of them
			quiet, err := persistence.Quiet(t.Context(), conn)
			all = all && quiet && err == nil
			runtime.Gosched()
		}
		looked <- all
	}()
	select {
	case quiet := <-looked:
		if !quiet {
			t.Error("a connection that says nothing is not quiet")
		}
	case <-time.After(patience):
		t.Error("the look waits for the reader")
	}
	_ = conn.PgConn().Conn().Close()
	<-reader
	_ = conn.Close(context.Background())
}
