package auth

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
)

// FuzzOrigin checks that an unsafe request passes only if neither Origin nor Sec-Fetch-Site shows that another site
// sent it.
func FuzzOrigin(f *testing.F) {
	for _, origin := range []string{
		"", "null", "https://turnstone.example", "http://turnstone.example", "https://app.turnstone.example", "https://evil.example",
		"https://turnstone.example.evil.example", "https://turnstone.example:443", "https://turnstone.example@evil.example", "HTTPS://TURNSTONE.EXAMPLE",
		"https://turnstone.example/", "//turnstone.example", "https://turnstone.example#", "\x00", "https://[::1",
	} {
		f.Add("POST", origin, "", "")
		f.Add("DELETE", origin, "cross-site", "a.b")
		f.Add("PUT", origin, "same-site", ".")
		f.Add("GET", origin, "same-origin", "")
	}
	const host, own, allowed = "turnstone.example", "https://turnstone.example", "https://app.turnstone.example"
	s, err := New(Config{
		BaseURL: &url.URL{Scheme: "https", Host: host}, AllowedOrigins: []string{allowed}, Log: zap.NewNop(), Now: time.Now,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, origin, site, token string) {
		request := &http.Request{Method: method, Host: host, URL: &url.URL{Path: "/"}, Header: http.Header{}}
		for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site, CSRFHeader: token} {
			if value != "" {
				request.Header[http.CanonicalHeaderKey(name)] = []string{value}
			}
		}
		err := s.CheckOrigin(request, &Request{Header: http.Header{}}) // no limit counts the refusal
		if err != nil && protocol.CodeOf(err) != protocol.CodeOrigin {
			t.Errorf("%v", err)
		}
		trusted := origin == own || origin == allowed
		switch {
		case err != nil || slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, method):
		case site != "" && site != "same-origin" && site != "none" && !trusted:
			t.Errorf("%q %q from %q passes", method, origin, site)
		case site == "" && origin != "" && !trusted && !sameOrigin(origin, host):
			t.Errorf("%q of %q passes", method, origin)
		}
	})
}

// sameOrigin reports whether an origin has the scheme https and this host, in any spelling of the URL.
func sameOrigin(origin, host string) bool {
	parsed, err := url.Parse(origin)
	return err == nil && parsed.Scheme == "https" && parsed.Host == host
}
