// Package balancer is the small load balancer of `turnstone dev --nodes`: it passes each request to the next node that is
// ready, and never repeats one. It is for one host computer and for demonstrations; deploy/proxy has the configurations of real
// ones.
package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnstone/http/response"
	"turnstone/protocol"
)

const (
	checkInterval  = 300 * time.Millisecond // between two checks of a node
	checkTimeout   = time.Second
	connectTimeout = time.Second
	idleTimeout    = time.Minute // of a connection to a node
)

// Node is a node behind the balancer.
type Node struct {
	Public   string // host:port that gets the requests
	Internal string // host:port of the internal listener, whose /ready is checked
}

// Balancer passes requests to nodes. It is an http.Handler.
type Balancer struct {
	nodes []*node
	next  atomic.Uint64
	proxy *httputil.ReverseProxy
	to    *http.Transport // to the nodes
	check *http.Client
	log   *zap.Logger
}

type node struct {
	Node
	ready atomic.Bool
}

// New returns a balancer. Run keeps it informed about the nodes.
func New(nodes []Node, log *zap.Logger) *Balancer {
	b := &Balancer{log: log.Named("balancer"), check: &http.Client{Timeout: checkTimeout, Transport: &http.Transport{DisableKeepAlives: true}}}
	for _, n := range nodes {
		b.nodes = append(b.nodes, &node{Node: n})
	}
	dialer := &net.Dialer{Timeout: connectTimeout}
	b.to = &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTimeout}
	b.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetXForwarded()
			r.Out.URL.Scheme = "http"
			r.Out.Host = r.In.Host
		},
		Transport:     b,
		FlushInterval: -1, // events must not wait in a buffer
		ErrorHandler:  b.unavailable,
		ErrorLog:      zap.NewStdLog(log.Named("balancer")),
	}
	return b
}

// ServeHTTP implements http.Handler.
func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.proxy.ServeHTTP(w, r) }

var errNoNode = errors.New("no node is ready")

// RoundTrip implements http.RoundTripper: it sends a request to a node. When it cannot connect, the node has not received
// the request, and the next one gets it.
func (b *Balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	start, failed := b.next.Add(1), errNoNode
	for i := range b.nodes {
		n := b.nodes[(start+uint64(i))%uint64(len(b.nodes))]
		if !n.ready.Load() {
			continue
		}
		to := r.Clone(r.Context())
		to.URL.Host = n.Public
		if r.Body != nil && r.Body != http.NoBody {
			to.Body = io.NopCloser(r.Body) // the transport closes the body even if it could not connect
		}
		response, err := b.to.RoundTrip(to)
		if err == nil {
			return response, nil
		}
		failed = err
		var connecting *net.OpError
		if !errors.As(err, &connecting) || connecting.Op != "dial" {
			break
		}
		n.ready.Store(false) // until the next check
	}
	return nil, failed
}

// unavailable answers a request that no node has answered.
func (b *Balancer) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client is gone
	}
	b.log.Debug("no response", zap.String("method", r.Method), zap.Error(err))
	detail := protocol.OutcomeUnknown // the connection may have broken after the node received the request
	if errors.Is(err, errNoNode) {
		detail = "No node is ready."
	}
	response.Refuse(w, &protocol.Error{Code: protocol.CodeUnavailable, Detail: detail})
}

// Run checks the nodes until ctx ends.
func (b *Balancer) Run(ctx context.Context) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		b.checkAll(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			b.to.CloseIdleConnections()
			return
		}
	}
}

func (b *Balancer) checkAll(ctx context.Context) {
	var checks sync.WaitGroup
	for _, n := range b.nodes {
		checks.Go(func() { n.ready.Store(b.isReady(ctx, n)) })
	}
	checks.Wait()
}

func (b *Balancer) isReady(ctx context.Context, n *node) bool {
	address := url.URL{Scheme: "http", Host: n.Internal, Path: "/ready"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return false
	}
	response, err := b.check.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Ready returns the number of nodes that were ready at the last check.
func (b *Balancer) Ready() (count int) {
	for _, n := range b.nodes {
		if n.ready.Load() {
			count++
		}
	}
	return count
}
