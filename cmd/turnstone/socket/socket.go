// Package socket binds the addresses of a node and serves HTTP on them, for the commands serve and dev. It knows no routes: the
// caller passes a handler for each address.
package socket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/settings"
	"turnstone/http/listener"
)

// MaxInternalConnections is more than probes, metrics collectors and operators need.
const MaxInternalConnections = 256

// closeGrace is how long requests in flight may still take when a listener closes.
const closeGrace = 5 * time.Second

// Endpoint is a bound address and, once Run was called, the server on it.
type Endpoint struct {
	name   string // name of the setting, for messages
	socket net.Listener
	tls    *tls.Config // nil: plain
	server *http.Server
	done   chan struct{} // closed when the server has returned; nil before it runs
	// streams closes the connections that the handler took over from the server, for which Shutdown does not wait. nil:
	// the handler takes over none.
	streams interface{ CloseStreams(context.Context) }
}

// listen binds an address. It is called before anything else starts, so that a port in use is found at once.
func listen(ctx context.Context, name, address string, secure *tls.Config) (*Endpoint, error) {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use by another program", name, address)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Endpoint{name: name, socket: socket, tls: secure.Clone()}, nil // a server changes its own
}

// Run serves handler on at most most connections. It calls failed if the server ends without having been closed.
func (l *Endpoint) Run(handler http.Handler, log *zap.Logger, most int, failed func(error)) {
	l.server = listener.New(handler, listener.Options{Log: log, MaxConnections: most})
	l.server.TLSConfig = l.tls
	l.streams, _ = handler.(interface{ CloseStreams(context.Context) })
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		if err := listener.Serve(l.server, l.socket); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("%s: %w", l.name, err))
		}
	}()
}

// Certificate returns the certificate of the listener; nil if it is plain.
func (l *Endpoint) Certificate() *x509.Certificate {
	if l.tls == nil {
		return nil
	}
	return l.tls.Certificates[0].Leaf // set by tls.LoadX509KeyPair
}

// Close waits up to closeGrace for requests in flight, then aborts the remaining ones.
func (l *Endpoint) Close(ctx context.Context) error {
	if l.server == nil {
		return l.socket.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	err := l.server.Shutdown(ctx)
	if l.streams != nil {
		l.streams.CloseStreams(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.server.Close()
	}
	<-l.done
	return err
}

// Set is the listeners of a node. That of the sandbox origin and that of the documentation origin are nil if they are off.
type Set struct{ Public, Internal, Content, Docs *Endpoint }

// Open binds all addresses, or none.
func Open(ctx context.Context, config *settings.Config) (set Set, err error) {
	secure, err := loadTLS(config)
	if err != nil {
		return Set{}, err
	}
	for _, one := range []struct {
		name, address string
		secure        *tls.Config
		endpoint      **Endpoint
	}{
		{"TURNSTONE_LISTEN", config.Service.Listen, secure, &set.Public},
		{"TURNSTONE_INTERNAL_LISTEN", config.Service.InternalListen, nil, &set.Internal},
		{"TURNSTONE_CONTENT_LISTEN", config.Service.ContentListen, secure, &set.Content},
		{"TURNSTONE_DOCS_LISTEN", config.Service.DocsListen, secure, &set.Docs},
	} {
		if one.address == settings.Off {
			continue
		}
		if *one.endpoint, err = listen(ctx, one.name, one.address, one.secure); err != nil {
			return Set{}, errors.Join(err, set.Close(ctx))
		}
	}
	return set, nil
}

// Close closes all of them.
func (s Set) Close(ctx context.Context) error {
	var group sync.WaitGroup
	all := []*Endpoint{s.Public, s.Internal, s.Content, s.Docs}
	errs := make([]error, len(all))
	for i, endpoint := range all {
		if endpoint != nil {
			group.Go(func() { errs[i] = endpoint.Close(ctx) })
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

func loadTLS(config *settings.Config) (*tls.Config, error) {
	if config.Service.TLSCert == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(config.Service.TLSCert, config.Service.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_TLS_CERT_FILE, TURNSTONE_TLS_KEY_FILE: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"},
	}, nil
}
