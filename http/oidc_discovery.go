package http

import (
	"context"
	"fmt"
	"maps"
	stdhttp "net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"turnstone/protocol"
)

const (
	// discoveryPatience is how long a sign-in waits for the metadata of a provider that has never answered.
	discoveryPatience = 3 * time.Second
	// maxDiscoveryWaiters bounds the sign-ins that wait for one provider; more are refused at once.
	maxDiscoveryWaiters = 32
	// metadataFresh is the age from which metadata is read again, in the background. The stale copy serves meanwhile, and
	// for as long as the provider does not answer.
	metadataFresh = time.Hour
	// discoveryTimeout bounds a request for metadata, and with it what a shutdown waits for.
	discoveryTimeout = 5 * time.Second
	// metadataRetry is the pause after an attempt before a stale copy is refreshed again.
	metadataRetry = time.Minute
)

// providers are the configured ones. Each is asked for its metadata when it is first needed, so that the service starts
// without them.
type providers struct {
	redirect string // base of the callback addresses
	client   *stdhttp.Client
	now      func() time.Time
	byName   map[string]*provider
	asking   sync.WaitGroup // the requests for metadata; each ends within discoveryTimeout
}

// names are those of the configured ones, in order.
func (p *providers) names() []string { return slices.Sorted(maps.Keys(p.byName)) }

type provider struct {
	OIDCProvider

	// Guarded by mu, which is never locked during a request.
	mu      sync.Mutex
	found   *oidc.Provider // nil: it has never answered
	asked   time.Time      // when the last attempt began
	pause   time.Duration  // from then to the next refresh
	attempt *discovery     // under way; nil: none
	waiters int            // sign-ins that wait for attempt
}

// discovery is one request for the metadata of a provider. All who need it share it.
type discovery struct {
	done  chan struct{} // closed at its end
	found *oidc.Provider
	err   error
}

func newProviders(configured []OIDCProvider, base string, now func() time.Time) *providers {
	p := &providers{
		redirect: base, byName: map[string]*provider{}, now: now,
		client: &stdhttp.Client{Timeout: providerTimeout, Transport: boundedTransport{stdhttp.DefaultTransport.(*stdhttp.Transport).Clone()}},
	}
	for _, one := range configured {
		p.byName[one.Name] = &provider{OIDCProvider: one}
	}
	return p
}

// discover returns the provider's metadata: the copy that there is, or the provider's first response.
func (p *providers) discover(ctx context.Context, name string) (*provider, *oidc.Provider, error) {
	one := p.byName[name]
	if one == nil {
		return nil, nil, &protocol.Error{Code: protocol.CodeNotFound}
	}
	found, attempt, err := p.cached(one)
	if err != nil || found != nil {
		return one, found, err
	}
	defer func() {
		one.mu.Lock()
		one.waiters--
		one.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(ctx, discoveryPatience)
	defer cancel()
	select {
	case <-attempt.done:
		return one, attempt.found, attempt.err
	case <-ctx.Done():
		return nil, nil, providerAway(name, ctx.Err())
	}
}

// cached returns the copy of the metadata and refreshes one that is old. Without a copy the caller is one of those that
// wait for the attempt that is returned, and has to decrement waiters.
func (p *providers) cached(one *provider) (*oidc.Provider, *discovery, error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	now := p.now()
	if one.found != nil {
		if one.attempt == nil && now.Sub(one.asked) >= one.pause {
			p.ask(one, now)
		}
		return one.found, nil, nil
	}
	if one.waiters >= maxDiscoveryWaiters {
		return nil, nil, providerAway(one.Name, fmt.Errorf("%d sign-ins wait for it", one.waiters))
	}
	if one.attempt == nil {
		p.ask(one, now)
	}
	one.waiters++
	return nil, one.attempt, nil
}

// ask begins a request for the metadata; with one.mu locked. It is nobody's request in particular, so it goes on when the
// sign-in that caused it gives up.
func (p *providers) ask(one *provider, now time.Time) {
	attempt := &discovery{done: make(chan struct{})}
	one.attempt, one.asked = attempt, now
	p.asking.Go(func() {
		ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), p.client), discoveryTimeout)
		defer cancel()
		found, err := oidc.NewProvider(ctx, one.Issuer) // it keeps the client, not the end of ctx, for the keys
		one.mu.Lock()
		defer one.mu.Unlock()
		one.attempt, one.pause = nil, metadataRetry
		if err == nil {
			attempt.found, one.found, one.pause = found, found, metadataFresh
		} else {
			attempt.err = providerAway(one.Name, err)
		}
		close(attempt.done)
	})
}

func providerAway(name string, cause error) error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("asking the provider %s: %w", name, cause)}
}
