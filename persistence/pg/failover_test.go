package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"turnstone/persistence"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/proxytest"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

// pairDatabase is the database of newSynchronousPair.
const pairDatabase = "followed"

// newSynchronousPair returns a server with a migrated database, and the standby for which its commits wait.
func newSynchronousPair(t *testing.T) (primary, standby *embedded.Postgres) {
	t.Helper()
	primary = embeddedtest.NewPrimary(t, "primary")
	if err := pg.Provision(t.Context(), primary.DSN(embedded.Superuser, "postgres"), pairDatabase, pgtest.Owner, pgtest.Login); err != nil {
		t.Fatal(err)
	}
	if err := pg.Migrate(t.Context(), primary.DSN(pgtest.Owner, pairDatabase), pg.MigrateOptions{Login: pgtest.Login}); err != nil {
		t.Fatal(err)
	}
	standby = embeddedtest.NewStandby(t, primary, "standby")
	embeddedtest.Synchronise(t, primary)
	return primary, standby
}

const readOnlySQL = `select current_setting('transaction_read_only')`

func TestPoolsFollowAPromotionWithSeveralHosts(t *testing.T) {
	primary, standby := newSynchronousPair(t)
	folder := func(server *embedded.Postgres) string { return parse(t, server.DSN("", "")).Query().Get("host") }
	address := parse(t, primary.DSN(pgtest.Login, pairDatabase))
	// The standby comes first: it is refused while it is read-only.
	address.RawQuery = url.Values{"host": {folder(standby) + "," + folder(primary)}, "port": {"5432,5432"}, "target_session_attrs": {"read-write"}}.Encode()
	db, err := pg.Open(t.Context(), pg.Config{URL: address.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, pool := range []func() error{
		func() error {
			_, err := pg.Row(t.Context(), db, pg.NoAccount, pgx.RowTo[string], readOnlySQL)
			return err
		},
		func() error { return db.Ready(t.Context()) },
	} {
		if err := pool(); err != nil {
			t.Fatal(err)
		}
	}
	embeddedtest.FailOver(t, primary, standby)
	deadline := time.Now().Add(clocktest.HangGuard)
	for { // the pool notices at their next use that its connections are lost
		readOnly, err := pg.Row(t.Context(), db, pg.NoAccount, pgx.RowTo[string], readOnlySQL)
		if err == nil && readOnly == "off" && db.Ready(t.Context()) == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the promotion: read-only %q, %v", readOnly, err)
		}
	}
}

func TestASettingThatWouldLoseAcknowledgedDataIsRefused(t *testing.T) {
	primary, _ := newSynchronousPair(t)
	alone := pgtest.NewDatabase(t)
	for _, c := range []struct{ url, admin, name, setting, refused string }{
		{alone.URL, alone.AdminURL, alone.Name, "off", "synchronous_commit = off"},
		{alone.URL, alone.AdminURL, alone.Name, "local", ""},
		{setting: "off", refused: "synchronous_commit = off"},
		{setting: "local", refused: "synchronous_commit = local"},
		{setting: "remote_write", refused: "synchronous_commit = remote_write"},
		{setting: "on"},
		{setting: "remote_apply"},
	} {
		if c.url == "" {
			c.url, c.admin, c.name = primary.DSN(pgtest.Login, pairDatabase), primary.DSN(embedded.Superuser, pairDatabase), pairDatabase
		}
		conn, err := pgx.Connect(t.Context(), c.admin)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(`alter database %s set synchronous_commit = %s`, pgx.Identifier{c.name}.Sanitize(), c.setting)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		db, err := pg.Open(t.Context(), pg.Config{URL: c.url})
		if err == nil {
			db.Close()
		}
		var refused *pg.SetupError
		if c.refused == "" && err != nil || c.refused != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Problem, c.refused)) {
			t.Errorf("%s with %s: %v, want a refusal that says %q", c.name, c.setting, err, c.refused)
		}
	}
}

// The client of a commit gives up while the synchronous standby is silent. The commit is not acknowledged before the standby has it, and
// nobody sees it.
func TestAnAbandonedCommitIsNotAcknowledgedBeforeTheStandbyHasIt(t *testing.T) {
	primary, standby := newSynchronousPair(t)
	connections := make(chan struct{}, 1000)
	_, through := pgtest.NewProxy(t, primary.DSN(pgtest.Login, pairDatabase), func(client, server net.Conn) {
		connections <- struct{}{}
		var both sync.WaitGroup
		for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
			both.Go(func() { _, _ = io.Copy(ends[0], ends[1]); _, _ = ends[0].Close(), ends[1].Close() })
		}
		both.Wait()
	})
	db, err := pg.Open(t.Context(), pg.Config{URL: through})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stores := &persistence.Stores{DB: db}
	account := pgtest.Account(t, stores)
	if err := standby.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, abandon := context.WithCancel(t.Context())
	acknowledged := make(chan error, 1)
	go func() {
		acknowledged <- db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
			_, err := tx.Exec(ctx, renameSQL, account, "after")
			return err
		})
	}()
	embeddedtest.Await(t, primary, `select exists (select from pg_stat_activity where wait_event = 'SyncRep')`)
	for len(connections) > 0 {
		<-connections
	}
	abandon()
	for range 5 { // lookups of the outcome
		select {
		case <-connections:
		case err := <-acknowledged:
			t.Fatalf("the transaction returned %v while the standby was silent", err)
		}
	}
	if got := displayName(t, stores, account); got != "Test" {
		t.Errorf("while the standby is silent, the name is %q", got)
	}
	if err := standby.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-acknowledged; err != nil {
		t.Errorf("after the standby continued: %v", err)
	}
	if got := displayName(t, stores, account); got != "after" {
		t.Errorf("after the standby continued, the name is %q", got)
	}
}

func TestAHostThatDoesNotRespondLeavesTimeForTheNext(t *testing.T) {
	database := pgtest.NewDatabase(t)
	socket := parse(t, database.URL).Query().Get("host") + "/.s.PGSQL.5432"
	second := proxytest.New(t, socket, proxytest.Options{})
	db, err := pg.Open(t.Context(), pg.Config{URL: fmt.Sprintf("postgres://%s@%s,%s/%s?target_session_attrs=read-write", pgtest.Login, silentAddress(t), second.Address, database.Name)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("the probe: %v", err)
	}
	if _, err := pg.Row(t.Context(), db, pg.NoAccount, pgx.RowTo[string], readOnlySQL); err != nil {
		t.Errorf("a request: %v", err)
	}
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// silentAddress returns an address at which no connection is refused and none succeeds, as that of a host computer that is down: its
// queue of new connections is full.
func silentAddress(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	if err := errors.Join(unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(socket, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port)
	for { // until the queue is full
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}
