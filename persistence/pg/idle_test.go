package pg_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
)

// When a write is slow, as on a busy host computer, pgx starts a background reader, which blocks in a read of the socket
// until the next reply. The check of an idle connection must not wait for that read.
func TestTheIdleConnectionCheckDoesNotWaitForABackgroundRead(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.NewDatabase(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	reader, checked := make(chan struct{}), make(chan bool, 1)
	go func() {
		defer close(reader)
		_, _ = conn.PgConn().Conn().Read(make([]byte, 1)) // until the connection is closed
	}()
	go func() {
		all := true
		for range 1000 { // so that the reader has started before the last check
			quiet, err := pg.Quiet(t.Context(), conn)
			all = all && quiet && err == nil
			runtime.Gosched()
		}
		checked <- all
	}()
	select {
	case quiet := <-checked:
		if !quiet {
			t.Error("an idle connection is reported as not quiet")
		}
	case <-time.After(storetest.WaitLimit):
		t.Error("the check waits for the reader")
	}
	_ = conn.PgConn().Conn().Close()
	<-reader
	_ = conn.Close(context.Background())
}
