package http

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/persistence/limits"
)

// signInLimitWorld returns a world with real limits for sign-ins, with the defaults of the configuration.
func signInLimitWorld(t *testing.T, change ...func(*testConfig)) *world {
	t.Helper()
	w := newWorld(t, change...)
	rates := map[string]limits.Limit{
		string(auth.BucketSignIn):        {Rate: 5, Period: 15 * time.Minute, Burst: 5},
		string(auth.BucketSignInAccount): {Rate: 20, Period: time.Hour, Burst: 20},
		string(auth.BucketSignInReserve): {Rate: 1, Period: time.Hour, Burst: 1},
	}
	limiter, err := limits.NewLimiter(limits.LimiterConfig{URL: "unix:///nowhere", Local: rates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	w.limiter.real = limiter
	for name := range rates {
		w.limiter.buckets = append(w.limiter.buckets, name)
	}
	return w
}

// attack sends wrong passwords for an account from each network until the next attempt is over the limit. It returns
// the number of attempts that were not over the limit. from returns a client in the n-th network and headers for its
// request.
func (w *world) attack(email string, networks int, from func(int) (*client, []string)) (tried int) {
	w.t.Helper()
	for n := range networks {
		for {
			c, headers := from(n)
			resp := c.do("POST", "/auth/login", route.Object{"email": email, "password": "wrong wrong"}, headers...)
			if resp.status == 429 {
				break
			}
			if tried++; resp.status != 401 {
				w.t.Fatalf("attempt %d: %d %s", tried, resp.status, resp.body)
			}
		}
	}
	return tried
}

// direct returns a client with an address in the n-th network.
func (w *world) direct(n int) (*client, []string) {
	return w.client().at(fmt.Sprintf("198.51.100.%d", n)), nil
}

func TestManyNetworksTogetherGuessSlowlyAtOneAccount(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t)
	known := w.client().register("ada@example.com")
	const networks = 12
	tried := w.attack("ada@example.com", networks, w.direct)
	if most := 20 + networks; tried > most {
		t.Errorf("%d networks tried %d passwords, want at most %d", networks, tried, most)
	}
	unknown := w.attack("nobody@example.com", networks, w.direct)
	if unknown != tried {
		t.Errorf("%d attempts for an account, %d for an unknown address: the difference reveals the account", tried, unknown)
	}
	// The owner can sign in: on a device that signed in before as often as without the attack, and on a new device at
	// the first attempt.
	known.expect(204, "POST", "/auth/logout", nil)
	for range 4 {
		known.login("ada@example.com")
		known.expect(204, "POST", "/auth/logout", nil)
	}
	w.client().at("203.0.113.9").login("ada@example.com")
	// A device that signed in to another account only is not a known device.
	eve := w.client().at("198.51.100.1").register("eve@example.com")
	eve.expect(429, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": "wrong wrong"})
}

func TestManyAttemptsFromTheSameAddressDoNotBlockAKnownDevice(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t)
	known := w.client().register("ada@example.com")
	w.attack("ada@example.com", 1, func(int) (*client, []string) { return w.client(), nil })
	w.client().expect(429, "POST", "/auth/login", route.Object{"email": "ada@example.com", "password": testPassword})
	known.login("ada@example.com")
	w.limiter.Drawn()
	known.login("ada@example.com")
	for _, drawn := range w.limiter.Drawn() { // these include draws from the limit of the route
		if strings.Contains(drawn, " 192.0.2.1") && !strings.Contains(drawn, " devices at 192.0.2.1") || strings.HasPrefix(drawn, "signin_account") {
			t.Errorf("a known device draws from %s", drawn)
		}
	}
}

func TestForwardedAddressesCountOnlyBehindATrustedProxy(t *testing.T) {
	t.Parallel()
	const networks = 10
	forwarded := func(w *world) func(int) (*client, []string) {
		return func(n int) (*client, []string) {
			return w.client(), []string{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n)}
		}
	}
	t.Run("without a trusted proxy", func(t *testing.T) {
		w := signInLimitWorld(t)
		if tried := w.attack("ada@example.com", networks, forwarded(w)); tried > 5 {
			t.Errorf("one address tried %d passwords with %d forwarded addresses", tried, networks)
		}
	})
	t.Run("with a trusted proxy", func(t *testing.T) {
		w := signInLimitWorld(t, func(c *testConfig) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")} })
		if tried := w.attack("ada@example.com", networks, forwarded(w)); tried <= 20 || tried > 20+networks {
			t.Errorf("%d networks tried %d passwords", networks, tried)
		}
	})
}

func TestTheLimitsOfSigningInCountIPv6ByThe48(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t)
	tried := w.attack("ada@example.com", 10, func(n int) (*client, []string) {
		return w.client().at(fmt.Sprintf("2001:db8:1:%x::1", n)), nil
	})
	if tried != 5 {
		t.Errorf("one /48 tried %d passwords", tried)
	}
}

func TestRegisteringATakenAddressIsLimitedByNetwork(t *testing.T) {
	t.Parallel()
	w := signInLimitWorld(t)
	w.client().at("203.0.113.9").register("ada@example.com")
	var statuses []int
	for range 8 {
		resp := w.client().do("POST", "/auth/register", route.Object{"email": "ada@example.com", "password": testPassword, "display_name": "A"})
		statuses = append(statuses, resp.status)
	}
	if got := fmt.Sprint(statuses); got != "[409 409 409 409 409 429 429 429]" {
		t.Errorf("%s", got)
	}
	w.client().at("203.0.113.10").register("bob@example.com")
	w.client().login("ada@example.com") // registrations have a counter of their own
}

func TestADeviceCookieIsNoSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	resp := c.expect(201, "POST", "/auth/register", route.Object{"email": "ada@example.com", "password": testPassword, "display_name": "A"})
	cookies := resp.header.Values("Set-Cookie")
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
		t.Errorf("the cookie contains the address: %q %v", content, err)
	}
	thief := w.client()
	thief.cookies["__Host-device"] = value
	thief.expect(401, "GET", "/auth/session", nil)
	thief.cookies[thief.cookieName()] = value
	thief.expect(401, "GET", "/auth/session", nil)
}
