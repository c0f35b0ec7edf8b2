package auth

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/protocol"
)

// slowProvider is a provider that publishes its metadata. While it is stopped, it does not respond.
type slowProvider struct {
	issuer  string
	count   atomic.Int32                  // the number of requests
	arrived chan struct{}                 // receives a value for each request
	proceed atomic.Pointer[chan struct{}] // closed: respond
}

func newSlowProvider(t *testing.T) *slowProvider {
	t.Helper()
	p := &slowProvider{arrived: make(chan struct{}, 100)}
	p.stop()
	server := httptest.NewServer(stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		p.count.Add(1)
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

// slowProviders returns the provider "slow", which responds when the test releases it. The clock of the providers moves
// only when the test calls advance.
func slowProviders(t *testing.T) (p *providers, slow *slowProvider, advance func(time.Duration)) {
	t.Helper()
	slow = newSlowProvider(t)
	now := time.Now()
	p = newProviders([]Provider{{Name: "slow", Issuer: slow.issuer, ClientID: "client"}}, "https://turnstone.example", func() time.Time { return now })
	t.Cleanup(func() {
		p.refreshes.Wait()
		p.client.CloseIdleConnections()
	})
	return p, slow, func(d time.Duration) { now = now.Add(d) }
}

func TestSignInsDoNotPileUpBehindASlowProvider(t *testing.T) {
	p, slow, _ := slowProviders(t)
	one := p.byName["slow"]
	var attempt *discovery
	for range maxDiscoveryWaiters {
		found, waited, err := p.cached(one)
		if err != nil || found != nil || attempt != nil && waited != attempt {
			t.Fatalf("no attempt to wait for: %v %v", found, err)
		}
		attempt = waited
	}
	<-slow.arrived
	for range 3 { // refused at once: the provider does not respond before release
		if _, _, err := p.discover(t.Context(), "slow"); protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Errorf("a sign-in over the limit of waiting sign-ins: %v", err)
		}
	}
	one.mu.Lock()
	one.waiters--
	one.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.discover(ctx, "slow"); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a sign-in whose request was cancelled: %v", err)
	}
	slow.release()
	<-attempt.done
	if _, found, err := p.discover(t.Context(), "slow"); found == nil || err != nil {
		t.Errorf("after the response: %v %v", found, err)
	}
	if n := slow.count.Load(); n != 1 {
		t.Errorf("the provider got %d requests", n)
	}
}

func TestAStaleCopyOfTheMetadataServesWhileItIsRefreshed(t *testing.T) {
	p, slow, advance := slowProviders(t)
	slow.release()
	discover := func() {
		t.Helper()
		if _, found, err := p.discover(t.Context(), "slow"); found == nil || err != nil {
			t.Fatalf("%v %v", found, err)
		}
	}
	discover()
	<-slow.arrived
	slow.stop()
	advance(metadataFresh)
	for range 3 {
		discover()
	}
	<-slow.arrived // the refresh, in the background
	slow.release()
	p.refreshes.Wait()
	if n := slow.count.Load(); n != 2 {
		t.Errorf("the provider got %d requests", n)
	}
	advance(metadataFresh - 1)
	discover()
	p.refreshes.Wait()
	if n := slow.count.Load(); n != 2 {
		t.Errorf("a fresh copy was refreshed: the provider got %d requests", n)
	}
}
