package http

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/http/route"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// changeEmail changes the address of an account, and returns the account of the response.
func (c *client) changeEmail(email string) (account protocol.Account) {
	c.t.Helper()
	c.expect(200, "PUT", "/account/email", route.Object{"email": email}).into(c.t, &account)
	return account
}

func TestAChangedEmailIsTheSignInNameOfTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	other := w.client().login("ada@example.com")
	want := c.account
	want.Email, want.Version = "Ada@Example.net", want.Version+1
	if got := c.changeEmail(" Ada@Example.net "); got != want {
		t.Errorf("the account is %+v, want %+v", got, want)
	}
	if own := c.session().Account; own != want {
		t.Errorf("the account of the session is %+v, want %+v", own, want)
	}
	other.session() // other sessions continue
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": testPassword})
	w.client().login("ada@example.net")
	w.client().register("ada@example.com") // the previous address is free
	events := w.events(c.account.AccountID)
	if !slices.Contains(events, string(audit.EventEmailChanged)) {
		t.Errorf("audit %v", events)
	}
	before := len(events)
	if got := c.changeEmail("Ada@Example.net"); got != want {
		t.Errorf("the same address again: the account is %+v, want %+v", got, want)
	}
	if events := w.events(c.account.AccountID); len(events) != before {
		t.Errorf("the same address again is in the audit: %v", events)
	}
}

func TestAnEmailChangeRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client().register("eve@example.com")
	c := w.client().register("ada@example.com")
	for _, test := range []struct {
		name, email string
		status      int
		code        protocol.Code
	}{
		{"a taken address", "EVE@example.com", 409, protocol.CodeEmailTaken},
		{"not an address", "ada", 422, protocol.CodeInvalid},
		{"no address", "", 422, protocol.CodeInvalid},
		{"a name around the address", "Ada <ada2@example.com>", 422, protocol.CodeInvalid},
		{"an address that is too long", strings.Repeat("a", 250) + "@example.com", 422, protocol.CodeInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp := c.do("PUT", "/account/email", route.Object{"email": test.email})
			if resp.status != test.status || resp.Code != test.code {
				t.Errorf("%d %s", resp.status, resp.body)
			}
			if test.status == 409 && !strings.Contains(string(resp.body), `"current":{"account_id"`) {
				t.Errorf("without the account: %s", resp.body)
			}
		})
	}
	if own := c.session().Account; own.Email != "ada@example.com" {
		t.Errorf("the address is %s", own.Email)
	}
	w.clock.advance(sudoLifetime)
	if resp := c.do("PUT", "/account/email", route.Object{"email": "ada@example.net"}); resp.status != 403 || resp.Code != protocol.CodeReauthRequired {
		t.Errorf("without a recent sign-in: %d %s", resp.status, resp.body)
	}
}

// A change of the address reveals as much as a registration, so both draw from the same limit.
func TestAskingForTakenAddressesIsLimitedByNetwork(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t)
	w.client().at("203.0.113.9").register("ada@example.com")
	c := w.client().at("203.0.113.10").register("eve@example.com")
	var statuses []int
	for range 6 {
		resp := c.do("PUT", "/account/email", route.Object{"email": "ada@example.com"})
		statuses = append(statuses, resp.status)
	}
	if got := fmt.Sprint(statuses); got != "[409 409 409 409 429 429]" { // the registration was the first draw
		t.Errorf("%s", got)
	}
	resp := w.client().at("203.0.113.10").do("POST", "/auth/register", route.Object{"email": "bob@example.com", "password": testPassword})
	if resp.status != 429 {
		t.Errorf("a registration from the same network: %d %s", resp.status, resp.body)
	}
	if resp := c.do("PUT", "/account/email", route.Object{"email": "eve"}); resp.status != 422 {
		t.Errorf("a malformed address draws from the limit: %d %s", resp.status, resp.body)
	}
}

func TestTheDisplayNameIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	for name, want := range map[string]string{
		"  Ada Lovelace ":        "Ada Lovelace",
		strings.Repeat("名", 100): strings.Repeat("名", 100),
	} {
		var changed protocol.Account
		c.expect(200, "PUT", "/account/name", route.Object{"display_name": name}).into(t, &changed)
		if own := c.session().Account; own.DisplayName != want || changed != own {
			t.Errorf("the response has %+v, the session %+v, want the name %q", changed, own, want)
		}
	}
	before := c.session().Account
	if before.Version != 3 {
		t.Errorf("after two changes: %+v", before)
	}
	if same := c.expect(200, "PUT", "/account/name", route.Object{"display_name": before.DisplayName}, "If-Match", `"v3"`); same.header.Get("ETag") != `"v3"` {
		t.Errorf("the same name again: %v", same.header)
	}
	for path, body := range map[string]route.Object{
		"/account/name": {"display_name": "Eve", "version": 2}, "/account/email": {"email": "eve@example.com", "version": 2},
	} {
		stale := c.expect(409, "PUT", path, body)
		if stale.Code != protocol.CodeStaleVersion || !strings.Contains(string(stale.body), `"current":{"account_id"`) || !strings.Contains(string(stale.body), `"version":3}`) {
			t.Errorf("%s: %s", path, stale.body)
		}
	}
	for _, name := range []string{"", "   ", "A\x07", strings.Repeat("n", 101)} {
		resp := c.do("PUT", "/account/name", route.Object{"display_name": name})
		if resp.status != 422 || resp.Code != protocol.CodeInvalid {
			t.Errorf("%q: %d %s", name, resp.status, resp.body)
		}
	}
	if own := c.session().Account; own != before {
		t.Errorf("after refused changes the account is %+v, want %+v", own, before)
	}
}

func TestTheFeedReportsAChangedName(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	laptop := w.client().register("ann@example.com")
	stream := w.feed(w.client().login("ann@example.com"), "")
	stream.want(protocol.FeedStarted, "")
	laptop.expect(200, "PUT", "/account/name", route.Object{"display_name": "Ann of Kyoto"})
	stream.want("account.changed", laptop.account.AccountID.String())
	laptop.changeEmail("ann@example.net")
	stream.want("account.changed", laptop.account.AccountID.String())
}

func TestTheSecurityLogListsTheEventsOfTheOwnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "a wrong password"})
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "a wrong password"})
	w.auth.WriteTallies(t.Context())
	ada.expect(200, "PUT", "/account/email", route.Object{"email": "ada@example.net"})
	w.database.Admin(t, `select audit_extend($1, 'audit.expired', null, '', '', '{"n": 0, "hash": ""}')`, ada.account.AccountID)
	var entries []protocol.SecurityLogEntry
	for path := "/account/security-log?limit=2"; path != ""; {
		var list protocol.List[protocol.SecurityLogEntry]
		ada.expect(200, "GET", path, nil).into(t, &list)
		entries = append(entries, list.Data...)
		path = ""
		if list.HasMore {
			path = "/account/security-log?limit=2&cursor=" + *list.NextCursor
			eve.expect(422, "GET", path, nil)
		}
	}
	var events []string
	for i, entry := range entries {
		events = append(events, entry.Event)
		if entry.Number != int64(len(entries)-i) || entry.At.IsZero() || entry.Address == nil || *entry.Address != "192.0.2.1" {
			t.Errorf("%+v", entry)
		}
	}
	if !slices.Equal(events, []string{"email.changed", "sign_in.failed", "session.created", "account.registered"}) {
		t.Fatalf("%v", events)
	}
	if failed, created := entries[1], entries[2]; failed.Count != 2 || failed.SessionID != nil || created.Count != 1 || created.SessionID == nil {
		t.Errorf("%+v, %+v", failed, created)
	}
}

func TestTheETagOfTheAccountIsItsVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { liveOn(t, c) })
	ada := w.client().register("ada@example.com")
	before := ada.expect(200, "GET", "/account", nil).header.Get("ETag")
	ada.expect(200, "PUT", "/account/name", route.Object{"display_name": "Ada"}, "If-Match", before)
	after := ada.expect(200, "GET", "/account", nil).header.Get("ETag")
	if before != `"v1"` || after != `"v2"` {
		t.Errorf("%s, then %s", before, after)
	}
	ada.expect(409, "PUT", "/account/name", route.Object{"display_name": "Eve"}, "If-Match", before)
}
