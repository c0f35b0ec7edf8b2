package http

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"turnstone/http/oidctest"
	"turnstone/protocol"
)

// slowProvider publishes its metadata, and answers nothing while it is stopped.
type slowProvider struct {
	issuer  string
	asked   atomic.Int32
	arrived chan struct{} // one for each request
	proceed atomic.Pointer[chan struct{}]
}

func newSlowProvider(t *testing.T) *slowProvider {
	t.Helper()
	p := &slowProvider{arrived: make(chan struct{}, 100)}
	p.stop()
	server := httptest.NewServer(stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		p.asked.Add(1)
		p.arrived <- struct{}{}
		select {
		case <-*p.proceed.Load():
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/authorize","token_endpoint":"%s/token","jwks_uri":"%s/keys"}`,
				p.issuer, p.issuer, p.issuer, p.issuer)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	p.issuer = server.URL
	return p
}

func (p *slowProvider) stop() {
	gate := make(chan struct{})
	p.proceed.Store(&gate)
}

func (p *slowProvider) release() { close(*p.proceed.Load()) }

// discoveryWorld is a world whose provider "slow" answers when the test says so.
func discoveryWorld(t *testing.T) (*world, *slowProvider) {
	t.Helper()
	slow := newSlowProvider(t)
	w := newWorld(t, func(c *Config) {
		c.Providers = []OIDCProvider{{Name: "slow", Issuer: slow.issuer, ClientID: oidctest.ClientID}}
	})
	t.Cleanup(func() {
		w.Server.providers.asking.Wait()
		w.Server.providers.client.CloseIdleConnections()
	})
	return w, slow
}

func TestSignInsDoNotPileUpBehindASlowProvider(t *testing.T) {
	w, slow := discoveryWorld(t)
	one := w.Server.providers.byName["slow"]
	var attempt *discovery
	for range maxDiscoveryWaiters {
		found, waited, err := w.Server.providers.cached(one)
		if err != nil || found != nil || attempt != nil && waited != attempt {
			t.Fatalf("no attempt to wait for: %v %v", found, err)
		}
		attempt = waited
	}
	<-slow.arrived
	for range 3 { // at once: nothing that this waits for comes before release
		answer := w.client().expect(503, "GET", "/auth/oidc/slow/start", nil)
		if answer.header.Get("Retry-After") == "" || answer.Code != protocol.CodeUnavailable {
			t.Errorf("%v %s", answer.header, answer.body)
		}
	}
	one.mu.Lock()
	one.waiters--
	one.mu.Unlock()
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := w.Server.providers.discover(left, "slow"); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a sign-in that was given up: %v", err)
	}
	slow.release()
	<-attempt.done
	w.client().expect(302, "GET", "/auth/oidc/slow/start", nil)
	if n := slow.asked.Load(); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestAStaleCopyOfTheMetadataServesWhileItIsRefreshed(t *testing.T) {
	w, slow := discoveryWorld(t)
	slow.release()
	start := func() { w.client().expect(302, "GET", "/auth/oidc/slow/start", nil) }
	start()
	<-slow.arrived
	slow.stop()
	w.clock.advance(metadataFresh)
	for range 3 {
		start()
	}
	<-slow.arrived // the refresh, in the background
	slow.release()
	w.Server.providers.asking.Wait()
	if n := slow.asked.Load(); n != 2 {
		t.Errorf("the provider was asked %d times", n)
	}
	w.clock.advance(metadataFresh - 1)
	start()
	w.Server.providers.asking.Wait()
	if n := slow.asked.Load(); n != 2 {
		t.Errorf("a fresh copy was refreshed: asked %d times", n)
	}
}
