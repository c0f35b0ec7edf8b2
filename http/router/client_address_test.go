package router

import (
	"net/http/httptest"
	"testing"

	"turnstone/http/auth"
)

func TestForwardedAddressesAreAcceptedOnlyFromTrustedProxies(t *testing.T) {
	rt := bareRouter(t)
	for _, test := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:5", "203.0.113.9", "192.0.2.1"},
		{"10.1.1.1:5", "203.0.113.9", "203.0.113.9"},
		{"10.1.1.1:5", "1.1.1.1, 203.0.113.9, 10.2.2.2", "203.0.113.9"},
		{"10.1.1.1:5", "1.1.1.1, garbage", "unknown"},
		{"10.1.1.1:5", "", "10.1.1.1"},
		{"[2001:db8:1:2:3::1]:5", "", "2001:db8:1:2::/64"},
		{"[::ffff:192.0.2.7]:5", "", "192.0.2.7"},
	} {
		request := httptest.NewRequest("GET", "/", nil)
		request.RemoteAddr = test.peer
		if test.forwarded != "" {
			request.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if got := auth.AddressKey(proxies(rt.TrustedProxies).clientAddress(request)); got != test.want {
			t.Errorf("%s behind %q: %s, want %s", test.peer, test.forwarded, got, test.want)
		}
	}
}
