package router

import (
	"bytes"
	"context"
	stdhttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/route"
	"turnstone/persistence/limits"
	"turnstone/protocol"
)

// noLimits allows every request.
type noLimits struct{}

func (noLimits) Take(context.Context, string, string) (limits.Decision, error) {
	return limits.Decision{Allowed: true}, nil
}

// bareRouter returns a Router without routes and stores.
func bareRouter(t testing.TB) *Router {
	t.Helper()
	rt, err := routerOf(t, route.Table{})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// routerOf returns a Router without stores for a table.
func routerOf(t testing.TB, table route.Table) (*Router, error) {
	t.Helper()
	base := &url.URL{Scheme: "https", Host: "turnstone.example"}
	metrics, err := NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	allowAll := exchange.NewLimits(noLimits{}, metrics.Limited)
	service, err := auth.New(auth.Config{BaseURL: base, Limits: allowAll, Log: zap.NewNop(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{
		Auth: service, Limits: allowAll, Metrics: metrics, Log: zap.NewNop(), Now: time.Now, BaseURL: base, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}, table)
}

// FuzzIdempotencyKey checks that a key of 1 to 128 visible ASCII characters is accepted and that every other key is
// refused.
func FuzzIdempotencyKey(f *testing.F) {
	f.Add("key", []byte(`{}`))
	f.Add(strings.Repeat("k", 128), []byte{})
	f.Add(strings.Repeat("k", 129), []byte(`{`))
	f.Add("a b", []byte(`{}`))
	f.Add("ä\x00\r\n", []byte(`{}`))
	rt := bareRouter(f)
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		ctx := exchange.With(context.Background(), &requestState{Exchange: exchange.Exchange{Request: &auth.Request{Header: stdhttp.Header{}}}, router: rt, maxBody: route.MaxBody})
		request := httptest.NewRequestWithContext(ctx, "POST", "https://turnstone.example/conversations", bytes.NewReader(body))
		if text != "" {
			request.Header[keyHeader] = []string{text}
		}
		var key *protocol.IdempotencyKey
		err := checkHeaders(request.Header)
		if err == nil {
			key, err = idempotencyKey(httptest.NewRecorder(), request, stateOf(ctx), route.Creates)
		}
		good := len(text) >= 1 && len(text) <= 128
		for i := range len(text) {
			good = good && text[i] > ' ' && text[i] < 0x7f
		}
		switch {
		case text == "" && (key != nil || err != nil):
			t.Errorf("without a key: %v (%v)", key, err)
		case text != "" && good && len(body) <= route.MaxBody && (err != nil || key.Key != text || key.Method != "POST" || key.Path != "/conversations"):
			t.Errorf("%q became the key %v (%v)", text, key, err)
		case text != "" && !good && (key != nil || protocol.CodeOf(err) != protocol.CodeInvalid):
			t.Errorf("%q became the key %v (%v)", text, key, err)
		}
	})
}

// FuzzForm checks that checkForm passes a request if, and only if, its checked headers, its path and its query are
// UTF-8 without control characters. It refuses others with 400, 401 or 422.
func FuzzForm(f *testing.F) {
	for _, text := range []string{"", "ok", "\xff", "\x00", "a\x1fb", "\u0085", "é", "\xed\xa0\x80", "a\tb", "a b", "%", "%00", "%ff", "%zz", ";"} {
		f.Add(text, "/chat", "a=1")
		f.Add("key", "/conversations/"+text+"/usage", "a=1")
		f.Add("key", "/chat", text+"=1&b="+text)
	}
	rt := bareRouter(f)
	f.Fuzz(func(t *testing.T, header, path, query string) {
		for name := range readHeaders {
			request := &stdhttp.Request{Method: "POST", Header: stdhttp.Header{}, RemoteAddr: "192.0.2.1:1"}
			request.Header.Set(name, header)
			var err error
			if request.URL, err = url.ParseRequestURI("/" + strings.TrimLeft(path, "/") + "?" + query); err != nil {
				return // net/http refuses it
			}
			recorder, passed := httptest.NewRecorder(), false
			rt.frameRequest(rt.checkForm(stdhttp.HandlerFunc(func(stdhttp.ResponseWriter, *stdhttp.Request) { passed = true }))).ServeHTTP(recorder, request)
			good := printable(strings.ReplaceAll(header, "\t", "")) && printable(request.URL.Path) && printable(request.URL.RawPath)
			values, malformed := url.ParseQuery(request.URL.RawQuery)
			for key, list := range values {
				good = good && printable(key+strings.Join(list, ""))
			}
			if name == keyHeader {
				good = good && isKey(header)
			}
			if good = good && malformed == nil; passed != good {
				t.Errorf("%s: %q of %q?%q: passed %t, status %d", name, header, path, query, passed, recorder.Code)
			}
			if !passed && !slices.Contains([]int{400, 401, 422}, recorder.Code) {
				t.Errorf("%s: %q of %q?%q is refused with %d", name, header, path, query, recorder.Code)
			}
		}
	})
}

// printable reports whether a text is UTF-8 without control characters.
func printable(text string) bool {
	for _, c := range text {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return false
		}
	}
	return utf8.ValidString(text)
}

// FuzzForwardedAddress checks that the address of a client is one that a trusted proxy named, the address of the peer,
// or unknown.
func FuzzForwardedAddress(f *testing.F) {
	for _, forwarded := range []string{"", "203.0.113.9", "1.1.1.1, 10.0.0.1", "garbage", "::1%eth0", "[::1]:80", ",,", "::ffff:1.2.3.4", "1.1.1.1,\x00"} {
		f.Add("10.0.0.1:1", forwarded)
		f.Add("192.0.2.1:1", forwarded)
	}
	rt := bareRouter(f)
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		request := &stdhttp.Request{RemoteAddr: peer, Header: stdhttp.Header{"X-Forwarded-For": {forwarded}}}
		address := proxies(rt.TrustedProxies).clientAddress(request)
		key := auth.AddressKey(address)
		if key == "" || strings.ContainsAny(key, " ,%\x00") {
			t.Errorf("%q behind %q is %q", forwarded, peer, key)
		}
		from, err := netip.ParseAddrPort(peer)
		if err == nil && !proxies(rt.TrustedProxies).trust(from.Addr().Unmap().WithZone("")) && address != from.Addr().Unmap().WithZone("") {
			t.Errorf("the untrusted peer %q gets the address %v from %q", peer, address, forwarded)
		}
	})
}
