package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/users"
	"turnstone/http/auth"
	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// operatorSite is a database on which commands run as an operator would run them.
type operatorSite struct {
	*testing.T
	database pgtest.Database
	db       *persistence.Stores
}

func newOperatorSite(t *testing.T) *operatorSite {
	t.Helper()
	database := pgtest.NewDatabase(t)
	return &operatorSite{t, database, database.Open(t)}
}

// user runs `turnstone user …` and returns what it prints.
func (s *operatorSite) user(code int, arguments ...string) (stdout, stderr string) {
	s.Helper()
	var out, failed bytes.Buffer
	environment := []string{"DATABASE_URL=" + s.database.URL, "TURNSTONE_DATA_DIR=" + s.TempDir()}
	if got := run(s.Context(), append([]string{"user"}, arguments...), &out, &failed, environment); got != code {
		s.Fatalf("user %v: exit %d, want %d: %s%s", arguments, got, code, out.String(), failed.String())
	}
	return out.String(), failed.String()
}

// add creates an account with a session on each of some devices.
func (s *operatorSite) add(email string, devices ...string) (account protocol.AccountID, sessions []protocol.SessionID) {
	s.Helper()
	account, err := users.Add(s.Context(), s.db, email, "A name", "correct horse battery")
	if err != nil {
		s.Fatal(err)
	}
	for i, device := range devices {
		id, now := protocol.NewSessionID(), time.Now().Add(time.Duration(i-len(devices))*time.Minute)
		session := &accounts.NewSession{SessionID: id, TokenHash: id[:], KeyVersion: 1, UserAgent: device, At: now, ExpiresAt: now.Add(time.Hour)}
		if err := s.db.Accounts.CreateSession(s.Context(), account, session, audit.Requester{}); err != nil {
			s.Fatal(err)
		}
		sessions = append(sessions, id)
	}
	return account, sessions
}

func (s *operatorSite) events(account protocol.AccountID) (events []string) {
	s.Helper()
	return s.texts(`select event from audit where account_id = $1 and request_id like 'operator-%' order by n`, account)
}

// texts returns the rows of a statement that the superuser runs.
func (s *operatorSite) texts(sql string, args ...any) []string {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.database.AdminURL)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.Context())) }()
	rows, err := conn.Query(s.Context(), sql, args...)
	if err != nil {
		s.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	return texts
}

func TestUserListPrintsAllAccountsInPages(t *testing.T) {
	s := newOperatorSite(t)
	ada, _ := s.add("ada@example.com", "Firefox")
	bob, _ := s.add("bob@example.com")
	carol, _ := s.add("carol@example.com")
	s.user(0, "disable", "bob@example.com")
	s.user(0, "erase", "carol@example.com", "--confirm", "carol@example.com")
	out, more := s.user(0, "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || more != "" {
		t.Fatalf("%s%s", out, more)
	}
	for i, want := range [][]string{{ada.String(), "active", "ada@example.com"}, {bob.String(), "disabled", "never", "bob@example.com"}, {carol.String(), "erasing"}} {
		for _, part := range want {
			if !strings.Contains(lines[i], part) {
				t.Errorf("%q does not contain %q", lines[i], part)
			}
		}
	}
	if strings.Contains(out, "carol@example.com") {
		t.Errorf("the address of an account that is being erased is printed: %s", out)
	}
	out, more = s.user(0, "list", "--limit", "1", "--after", ada.String(), "--json")
	var listed accounts.Listed
	if err := json.Unmarshal([]byte(out), &listed); err != nil || listed.AccountID != bob || listed.State != protocol.AccountDisabled || listed.LastActiveAt != nil {
		t.Errorf("%s, %v", out, err)
	}
	if !strings.Contains(more, "--after "+bob.String()) {
		t.Errorf("stderr is %q", more)
	}

	s.database.Admin(t, `insert into accounts (account_id, email, email_key, display_name)
		select ('01ffffff-ffff-7fff-bfff-' || lpad(to_hex(n), 12, '0'))::uuid, 'x' || n || '@example.com', 'x' || n || '@example.com', ''
		from generate_series(1, 1200) n`)
	for limit, want := range map[int]int{0: 1203, 1202: 1202, 501: 501, 500: 500} {
		out, _ := s.user(0, "list", "--limit", fmt.Sprint(limit))
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != want || !slices.IsSorted(lines) || len(slices.Compact(lines)) != want {
			t.Errorf("--limit %d: %d accounts, want %d", limit, len(lines), want)
		}
	}
	s.user(2, "list", "--limit=-1")
	if _, err := s.db.Exec(t.Context(), ada, `select list_accounts($1, 10)`, protocol.AccountID{}); err == nil {
		t.Error("the role of requests can list accounts")
	}
	s.user(1, "list", "--after", "ada@example.com")
	s.user(2, "list", "--limit", "x")
}

func TestUserShowHasCountsAndNothingThatTheUserWrote(t *testing.T) {
	s := newOperatorSite(t)
	w := storetest.NewWorldOn(t, s.database, s.db)
	s.database.Admin(t, `update accounts set email = 'canary@example.com', email_key = 'canary@example.com' where account_id = $1`, w.Account)
	if err := s.db.Accounts.LinkIdentity(t.Context(), w.Account, accounts.Identity{Issuer: "https://id.example", Subject: "subject-7"}, audit.Requester{}); err != nil {
		t.Fatal(err)
	}
	w.Start(w.Request(nil, "secret question")).End(nil)
	if _, err := s.db.Projects.CreateProject(t.Context(), w.Account, "secret project", nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"canary@example.com", " CANARY@example.com", w.Account.String()} {
		out, _ := s.user(0, "show", name, "--json")
		var shown users.Shown
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatal(err)
		}
		has := shown.Has
		if shown.AccountID != w.Account || shown.State != protocol.AccountActive || len(shown.Identities) != 1 || has.Conversations != 1 || has.Messages != 2 ||
			has.Projects != 1 || has.Shares != 0 || has.Imports != 0 || has.LiveTurns != 0 || has.Usage.Turns != 1 {
			t.Errorf("%s: %s", name, out)
		}
		text, _ := s.user(0, "show", name)
		for _, want := range []string{w.Account.String(), "https://id.example subject-7", "conversations   1\n", "messages        2\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
		if strings.Contains(out+text, "secret") {
			t.Errorf("something that the user wrote is printed: %s%s", out, text)
		}
	}
	for _, missing := range []string{"nobody@example.com", protocol.NewAccountID().String(), "acct_x"} {
		if _, stderr := s.user(1, "show", missing); !strings.Contains(stderr, missing) {
			t.Errorf("%s: %s", missing, stderr)
		}
	}
	s.user(2, "show")
}

func TestUserSessionsListsAndEndsDevices(t *testing.T) {
	s := newOperatorSite(t)
	ada, sessions := s.add("ada@example.com", "Firefox", "Safari\x1b[2J", "Chrome")
	_, others := s.add("bob@example.com", "Opera")
	list := func() (devices []users.Device) {
		t.Helper()
		out, _ := s.user(0, "sessions", "ada@example.com", "--json")
		if err := json.Unmarshal([]byte(out), &devices); err != nil {
			t.Fatal(err)
		}
		return devices
	}
	if devices := list(); len(devices) != 3 || devices[0].SessionID != sessions[2] || devices[0].UserAgent != "Chrome" {
		t.Errorf("%+v", devices)
	}
	out, _ := s.user(0, "sessions", ada.String())
	if !strings.Contains(out, sessions[0].String()) || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	s.user(0, "sessions", "ada@example.com", "--end", sessions[0].String())
	if devices := list(); len(devices) != 2 {
		t.Errorf("%+v", devices)
	}
	for _, unknown := range []protocol.SessionID{sessions[0], others[0], protocol.NewSessionID()} {
		if _, stderr := s.user(1, "sessions", "ada@example.com", "--end", unknown.String()); !strings.Contains(stderr, "has no session") {
			t.Errorf("%s", stderr)
		}
	}
	s.user(1, "sessions", "ada@example.com", "--end", "x")
	s.user(2, "sessions", "ada@example.com", "--end", sessions[1].String(), "--end-all")
	s.user(1, "sessions", "nobody@example.com", "--end-all")
	s.user(0, "sessions", "ada@example.com", "--end-all")
	if devices := list(); len(devices) != 0 {
		t.Errorf("%+v", devices)
	}
	if events := s.events(ada); !slices.Equal(events, []string{"account.registered", "session.revoked", "session.others_revoked"}) {
		t.Errorf("the audit has %v", events)
	}
	if out, _ := s.user(0, "sessions", "bob@example.com"); !strings.Contains(out, others[0].String()) {
		t.Errorf("another account: %s", out)
	}
}

func TestUserEraseStartsTheErasureOfTheConfirmedAccount(t *testing.T) {
	s := newOperatorSite(t)
	ada, _ := s.add("ada@example.com", "Firefox")
	if _, stderr := s.user(1, "erase", "ada@example.com", "--confirm", "bob@example.com"); !strings.Contains(stderr, "nothing was erased") {
		t.Errorf("%s", stderr)
	}
	s.user(2, "erase", "ada@example.com")
	s.user(1, "erase", "nobody@example.com", "--confirm", "nobody@example.com")
	if _, err := s.db.Accounts.CredentialsByEmail(t.Context(), auth.EmailKey("ada@example.com")); err != nil {
		t.Fatalf("after refused erasures: %v", err)
	}
	out, _ := s.user(0, "erase", ada.String(), "--confirm", "ADA@example.com")
	var report struct {
		ErasureID protocol.ErasureID `json:"erasure_id"`
		AccountID protocol.AccountID `json:"account_id"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.AccountID != ada {
		t.Errorf("%s, %v", out, err)
	}
	if again, _ := s.user(0, "erasure", report.ErasureID.String()); again != out {
		t.Errorf("the report is %s, then %s", out, again)
	}
	if jobs := s.texts(`select kind from river.river_job where kind in ('erase_account', 'disable_account') order by kind`); !slices.Equal(jobs, []string{"disable_account", "erase_account"}) {
		t.Errorf("the jobs are %v", jobs)
	}
	if _, stderr := s.user(1, "erase", ada.String(), "--confirm", "ada@example.com"); !strings.Contains(stderr, "already being erased") {
		t.Errorf("%s", stderr)
	}
	if events := s.events(ada); !slices.Contains(events, "account.erasure_requested") {
		t.Errorf("the audit has %v", events)
	}
	s.user(1, "erase", "ada@example.com", "--confirm", "ada@example.com") // nobody has the address
}

// An account that signs in with a provider may have no address.
func TestUserEraseOfAnAccountWithoutAnAddressIsConfirmedWithItsIdentifier(t *testing.T) {
	s := newOperatorSite(t)
	ada, _ := s.add("ada@example.com", "Firefox")
	s.texts(`update accounts set email = '' where email = 'ada@example.com' returning email`)
	if _, stderr := s.user(1, "erase", ada.String(), "--confirm", ""); !strings.Contains(stderr, "nothing was erased") {
		t.Errorf("%s", stderr)
	}
	s.user(0, "erase", ada.String(), "--confirm", ada.String())
}
