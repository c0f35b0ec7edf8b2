package auth

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
	// discoveryWaitTimeout limits the time that a sign-in waits for the metadata of a provider that has never responded.
	discoveryWaitTimeout = 3 * time.Second
	// maxDiscoveryWaiters limits the sign-ins that wait for one provider; more are refused at once.
	maxDiscoveryWaiters = 32
	// metadataFresh is the age at which metadata is read again, in the background. While it is read, and for as long as
	// the provider does not respond, the old copy is used.
	metadataFresh = time.Hour
	// discoveryTimeout bounds a request for metadata, and so the time that a shutdown waits for it.
	discoveryTimeout = 5 * time.Second
	// metadataRetry is the pause after a failed attempt before an old copy is refreshed again.
	metadataRetry = time.Minute
)

// providers are the configured OpenID providers. The metadata of a provider is requested when it is first needed, so
// that the service starts without the providers.
type providers struct {
	redirect  string // base of the callback addresses
	client    *stdhttp.Client
	now       func() time.Time
	byName    map[string]*provider
	refreshes sync.WaitGroup // the requests for metadata; each ends within discoveryTimeout
}

// names returns the names of the configured providers, sorted.
func (p *providers) names() []string { return slices.Sorted(maps.Keys(p.byName)) }

// issuers returns the issuers of the configured providers.
func (p *providers) issuers() []string {
	issuers := make([]string, 0, len(p.byName))
	for _, idp := range p.byName {
		issuers = append(issuers, idp.Issuer)
	}
	return issuers
}

// nameOf returns the name of the provider with an issuer; nil: none is configured. If there are several, it is the first in
// the order of the names.
func (p *providers) nameOf(issuer string) *string {
	for _, name := range p.names() {
		if p.byName[name].Issuer == issuer {
			return &name
		}
	}
	return nil
}

// provider is a configured provider and its metadata.
type provider struct {
	Provider

	// Guarded by mu, which is never held during a request to the provider.
	mu             sync.Mutex
	metadata       *oidc.Provider // nil: it has never responded
	attemptStarted time.Time      // when the last attempt started
	pause          time.Duration  // from attemptStarted to the next refresh
	attempt        *discovery     // in progress; nil: none
	waiters        int            // sign-ins that wait for attempt
}

// discovery is one request for the metadata of a provider. All sign-ins that need it share it.
type discovery struct {
	done     chan struct{} // closed when the request has ended
	metadata *oidc.Provider
	err      error
}

func newProviders(configured []Provider, base string, now func() time.Time) *providers {
	p := &providers{
		redirect: base, byName: map[string]*provider{}, now: now,
		client: &stdhttp.Client{Timeout: providerTimeout, Transport: boundedTransport{stdhttp.DefaultTransport.(*stdhttp.Transport).Clone()}},
	}
	for _, config := range configured {
		p.byName[config.Name] = &provider{Provider: config}
	}
	return p
}

// discover returns the metadata of a provider: the stored copy or, if there is none, the provider's first response.
func (p *providers) discover(ctx context.Context, name string) (*provider, *oidc.Provider, error) {
	idp := p.byName[name]
	if idp == nil {
		return nil, nil, &protocol.Error{Code: protocol.CodeNotFound}
	}
	metadata, attempt, err := p.cached(idp)
	if err != nil || metadata != nil {
		return idp, metadata, err
	}
	defer func() {
		idp.mu.Lock()
		idp.waiters--
		idp.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(ctx, discoveryWaitTimeout)
	defer cancel()
	select {
	case <-attempt.done:
		return idp, attempt.metadata, attempt.err
	case <-ctx.Done():
		return nil, nil, providerUnavailable(name, ctx.Err())
	}
}

// cached returns the stored metadata, and starts a refresh if it is old. Without stored metadata it returns an attempt;
// the caller waits for it and then has to decrement waiters.
func (p *providers) cached(idp *provider) (*oidc.Provider, *discovery, error) {
	idp.mu.Lock()
	defer idp.mu.Unlock()
	now := p.now()
	if idp.metadata != nil {
		if idp.attempt == nil && now.Sub(idp.attemptStarted) >= idp.pause {
			p.refresh(idp, now)
		}
		return idp.metadata, nil, nil
	}
	if idp.waiters >= maxDiscoveryWaiters {
		return nil, nil, providerUnavailable(idp.Name, fmt.Errorf("%d sign-ins are waiting already", idp.waiters))
	}
	if idp.attempt == nil {
		p.refresh(idp, now)
	}
	idp.waiters++
	return nil, idp.attempt, nil
}

// refresh starts a request for the metadata. idp.mu must be held. The request does not depend on the sign-in that
// caused it, so it continues if that sign-in gives up.
func (p *providers) refresh(idp *provider, now time.Time) {
	attempt := &discovery{done: make(chan struct{})}
	idp.attempt, idp.attemptStarted = attempt, now
	p.refreshes.Go(func() {
		ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), p.client), discoveryTimeout)
		defer cancel()
		metadata, err := oidc.NewProvider(ctx, idp.Issuer) // its key set retains the client of ctx, but not the cancellation
		idp.mu.Lock()
		defer idp.mu.Unlock()
		idp.attempt, idp.pause = nil, metadataRetry
		if err == nil {
			attempt.metadata, idp.metadata, idp.pause = metadata, metadata, metadataFresh
		} else {
			attempt.err = providerUnavailable(idp.Name, err)
		}
		close(attempt.done)
	})
}

func providerUnavailable(name string, cause error) error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Err: fmt.Errorf("requesting the metadata of the provider %s: %w", name, cause)}
}
