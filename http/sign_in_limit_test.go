package http

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/protocol"
)

// guessedWorld has the limits of signing in for real, with the defaults of the configuration.
func guessedWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := newWorld(t, change...)
	limits := map[string]persistence.Limit{
		string(bucketSignIn):        {Rate: 5, Period: 15 * time.Minute, Burst: 5},
		string(bucketSignInAccount): {Rate: 20, Period: time.Hour, Burst: 20},
		string(bucketSignInReserve): {Rate: 1, Period: time.Hour, Burst: 1},
	}
	limiter, err := persistence.NewLimiter(persistence.LimiterConfig{URL: "unix:///nowhere", Local: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	w.limiter.real = limiter
	for name := range limits {
		w.limiter.buckets = append(w.limiter.buckets, name)
	}
	return w
}

// attack guesses at an account until every attempt is refused, and counts the attempts that were not.
func (w *world) attack(email string, networks int, from func(int) (*client, []string)) (tried int) {
	w.t.Helper()
	for n := range networks {
		for {
			c, headers := from(n)
			answer := c.do("POST", "/auth/login", object{"email": email, "password": "wrong wrong"}, headers...)
			if answer.status == 429 {
				break
			}
			if tried++; answer.status != 401 {
				w.t.Fatalf("attempt %d: %d %s", tried, answer.status, answer.body)
			}
		}
	}
	return tried
}

func (w *world) direct(n int) (*client, []string) {
	return w.client().at(fmt.Sprintf("198.51.100.%d", n)), nil
}

func TestManyNetworksTogetherGuessSlowlyAtOneAccount(t *testing.T) {
	w := guessedWorld(t)
	known := w.client().register("ada@example.com")
	const networks = 12
	tried := w.attack("ada@example.com", networks, w.direct)
	if most := 20 + networks; tried > most {
		t.Errorf("%d networks tried %d passwords, at most %d", networks, tried, most)
	}
	unknown := w.attack("nobody@example.com", networks, w.direct)
	if unknown != tried {
		t.Errorf("%d attempts at an account, %d at none: that tells them apart", tried, unknown)
	}
	// The owner gets in: on a device that signed in before, as often as ever, and on a new one at the first attempt.
	known.expect(204, "POST", "/auth/logout", nil)
	for range 4 {
		known.login("ada@example.com")
		known.expect(204, "POST", "/auth/logout", nil)
	}
	w.client().at("203.0.113.9").login("ada@example.com")
	// Somebody else's device is no known one.
	eve := w.client().at("198.51.100.1").register("eve@example.com")
	eve.expect(429, "POST", "/auth/login", object{"email": "ada@example.com", "password": "wrong wrong"})
}

func TestAFloodFromTheSameAddressDoesNotKeepAKnownDeviceOut(t *testing.T) {
	w := guessedWorld(t)
	known := w.client().register("ada@example.com")
	w.attack("ada@example.com", 1, func(int) (*client, []string) { return w.client(), nil })
	w.client().expect(429, "POST", "/auth/login", object{"email": "ada@example.com", "password": testPassword})
	known.login("ada@example.com")
	w.limiter.mu.Lock()
	w.limiter.drawn = nil
	w.limiter.mu.Unlock()
	known.login("ada@example.com")
	for _, drawn := range w.limiter.drawn { // neither does one on the limit of the route
		if strings.Contains(drawn, "192.0.2.1") || strings.HasPrefix(drawn, "signin_account") {
			t.Errorf("a known device draws from %s", drawn)
		}
	}
}

func TestForwardedAddressesCountOnlyBehindATrustedProxy(t *testing.T) {
	const networks = 10
	forwarded := func(w *world) func(int) (*client, []string) {
		return func(n int) (*client, []string) {
			return w.client(), []string{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n)}
		}
	}
	t.Run("without", func(t *testing.T) {
		w := guessedWorld(t)
		if tried := w.attack("ada@example.com", networks, forwarded(w)); tried > 5 {
			t.Errorf("one address tried %d passwords under %d names", tried, networks)
		}
	})
	t.Run("with", func(t *testing.T) {
		w := guessedWorld(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")} })
		if tried := w.attack("ada@example.com", networks, forwarded(w)); tried <= 20 || tried > 20+networks {
			t.Errorf("%d networks tried %d passwords", networks, tried)
		}
	})
}

func TestTheLimitsOfSigningInCountIPv6ByThe48(t *testing.T) {
	w := guessedWorld(t)
	tried := w.attack("ada@example.com", 10, func(n int) (*client, []string) {
		return w.client().at(fmt.Sprintf("2001:db8:1:%x::1", n)), nil
	})
	if tried != 5 {
		t.Errorf("one /48 tried %d passwords", tried)
	}
	if key := networkKey(netip.MustParseAddr("::ffff:198.51.100.7").Unmap()); key != "198.51.100.7" {
		t.Errorf("an IPv4 address counts as %s", key)
	}
}

func TestRegisteringATakenAddressIsLimitedByNetwork(t *testing.T) {
	w := guessedWorld(t)
	w.client().at("203.0.113.9").register("ada@example.com")
	var statuses []int
	for range 8 {
		answer := w.client().do("POST", "/auth/register", object{"email": "ada@example.com", "password": testPassword, "display_name": "A"})
		statuses = append(statuses, answer.status)
	}
	if got := fmt.Sprint(statuses); got != "[409 409 409 409 409 429 429 429]" {
		t.Errorf("%s", got)
	}
	w.client().at("203.0.113.10").register("bob@example.com")
	w.client().login("ada@example.com") // registrations are counted for themselves
}

func TestADeviceCookieIsNoSession(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	answer := c.expect(201, "POST", "/auth/register", object{"email": "ada@example.com", "password": testPassword, "display_name": "A"})
	cookies := answer.header.Values("Set-Cookie")
	if len(cookies) != 2 {
		t.Fatalf("cookies %v", cookies)
	}
	for _, part := range []string{"__Host-device=", "Path=/", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age=15552000"} {
		if !strings.Contains(cookies[1], part) {
			t.Errorf("cookie %q lacks %s", cookies[1], part)
		}
	}
	value := c.cookies["__Host-device"]
	if content, err := base64.RawURLEncoding.DecodeString(value); err != nil || strings.Contains(string(content), "ada") {
		t.Errorf("the cookie names somebody: %q %v", content, err)
	}
	thief := w.client()
	thief.cookies["__Host-device"] = value
	thief.expect(401, "GET", "/auth/session", nil)
	thief.cookies[thief.cookieName()] = value
	thief.expect(401, "GET", "/auth/session", nil)
}

func TestADeviceCookieHoldsForItsAccountsAndItsTime(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	emails := make([]string, deviceAccounts+1)
	for i := range emails {
		emails[i] = fmt.Sprintf("person%d@example.com", i)
		c.register(emails[i])
	}
	knows := func(value, email string) bool { return w.openDevice(value).knows(w.keys, email) }
	value := c.cookies["__Host-device"]
	for i, email := range emails {
		if knows(value, email) != (i > 0) { // the last four
			t.Errorf("%s: known %v", email, i == 0)
		}
	}
	for i := range value {
		changed := []byte(value)
		changed[i] ^= 1
		if w.openDevice(string(changed)) != nil {
			t.Fatalf("changed at %d it is taken", i)
		}
	}
	for _, cut := range []string{"", "x", value[:len(value)-22], value + value} {
		if w.openDevice(cut) != nil {
			t.Errorf("%q is taken", cut)
		}
	}
	w.clock.advance(deviceLife + time.Second)
	if w.openDevice(value) != nil {
		t.Error("it is taken after its time")
	}
}

func TestOneKeyCannotFillTheSlotsOfHashes(t *testing.T) {
	slots := newHashSlots()
	one, other := hasher{key: "198.51.100.1"}, hasher{key: "198.51.100.2"}
	release, err := slots.acquire(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	var turns []chan struct{}
	for range maxHashesOfOne - 1 {
		waiter, _, _, err := slots.enter(one)
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, waiter.turn)
	}
	if _, err := slots.acquire(t.Context(), one); protocol.CodeOf(err) != protocol.CodeRateLimited {
		t.Errorf("one more of the same key: %v", err)
	}
	if given(turns[0]) {
		t.Error("a key has two slots")
	}
	second, err := slots.acquire(t.Context(), other) // at once, past those who wait
	if err != nil {
		t.Fatal(err)
	}
	second()
	release()
	if !given(turns[0]) || given(turns[1]) {
		t.Error("the slot did not go to the next one alone")
	}
}

func given(turn chan struct{}) bool {
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

func TestACrowdOfStrangersDoesNotKeepAKnownDeviceFromAHash(t *testing.T) {
	slots := newHashSlots()
	var releases []func()
	for n := range hashesAtOnce {
		release, err := slots.acquire(t.Context(), hasher{key: fmt.Sprint("running ", n)})
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	var strangers []chan struct{}
	for n := range maxHashWaiters {
		waiter, _, _, err := slots.enter(hasher{key: fmt.Sprint("waiting ", n)})
		if err != nil {
			t.Fatal(err)
		}
		strangers = append(strangers, waiter.turn)
	}
	if _, err := slots.acquire(t.Context(), hasher{key: "one more"}); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a stranger too many: %v", err)
	}
	known, _, _, err := slots.enter(hasher{key: "device", known: true})
	if err != nil {
		t.Fatal(err)
	}
	releases[0]()
	if !given(known.turn) || given(strangers[0]) {
		t.Error("a stranger went before a known device")
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := slots.acquire(gone, hasher{key: "device of another", known: true}); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("who left: %v", err)
	}
	releases[1]()
	if !given(strangers[0]) || given(strangers[1]) {
		t.Error("the slot of one who left is lost")
	}
}
