package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
)

const (
	baselineHeader = 5 * time.Second
	// maxIdle is larger than every load here. A proxy that closed idle connections would spend the measurement
	// dialling.
	maxIdle = 20_000
)

// Proxy is the baseline proxy. It only forwards requests: no sessions, no limits, no log.
type Proxy struct {
	To     string `required:"" help:"Address of the upstream."`
	Listen string `default:"127.0.0.1:0" help:"Address to listen on."`
}

// Run serves until ctx ends.
func (c Proxy) Run(ctx context.Context, p *console.Console) error {
	target, err := url.Parse(c.To)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, DisableCompression: true}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	return serveBaseline(ctx, p, c.Listen, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Our model responds so fast that the transport may still be reading the request's body. Without full duplex,
		// net/http then closes the body when the response starts, and the stream is cut.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 supports it
		proxy.ServeHTTP(w, r)
	}))
}

func serveBaseline(ctx context.Context, p *console.Console, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	console.Announce(p, listener)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: baselineHeader}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// SSE is the baseline SSE server. It sends streams of events to any number of readers as an ordinary net/http
// handler does: with a goroutine per reader, a write per event, and a flush after the events that are available.
type SSE struct {
	Listen string `default:"127.0.0.1:0" help:"Address to listen on."`
}

// Run serves until ctx ends.
func (c SSE) Run(ctx context.Context, p *console.Console) error {
	s := &sseServer{ctx: ctx, topics: map[string]*topic{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events/{topic}", s.follow)
	mux.HandleFunc("POST /events/{topic}", s.begin)
	mux.HandleFunc("DELETE /events/{topic}", s.end)
	return serveBaseline(ctx, p, c.Listen, mux)
}

type sseServer struct {
	ctx    context.Context
	mu     sync.Mutex
	topics map[string]*topic // guarded by mu
}

// topic is an in-memory log of events.
type topic struct {
	mu     sync.Mutex
	events [][]byte      // guarded by mu; event n has index n-1
	more   chan struct{} // guarded by mu; closed when the next event is added
	stop   context.CancelFunc
}

func newTopic() *topic { return &topic{more: make(chan struct{})} }

func (t *topic) add(event []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event)
	close(t.more)
	t.more = make(chan struct{})
}

func (t *topic) after(n int) (events [][]byte, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events[min(n, len(t.events)):], t.more
}

func (s *sseServer) topic(name string) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[name] == nil {
		s.topics[name] = newTopic()
	}
	return s.topics[name]
}

// begin starts a topic that gets an event per interval. With an interval of 0 it gets a single event.
func (s *sseServer) begin(w http.ResponseWriter, r *http.Request) {
	interval, err := time.ParseDuration(r.URL.Query().Get("interval"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t := s.topic(r.PathValue("topic"))
	if interval <= 0 {
		t.add(sseFrame(1, load.AppendFirstToken(nil, load.Monotonic(), 0)))
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	t.stop = cancel
	go t.tick(ctx, interval)
}

func (s *sseServer) end(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[r.PathValue("topic")]; t != nil && t.stop != nil {
		t.stop()
	}
	delete(s.topics, r.PathValue("topic"))
}

func (t *topic) tick(ctx context.Context, interval time.Duration) {
	start, base := time.Now(), load.Monotonic()
	for i := 0; clock.Sleep(ctx, time.Until(start.Add(time.Duration(i)*interval))) == nil; i++ {
		text := load.AppendToken(nil, i)
		if i == 0 {
			text = load.AppendFirstToken(nil, base, int64(interval))
		}
		t.add(sseFrame(i+1, text))
	}
}

// sseFrame returns the frame of event n, in the service's format and as long as a frame of the service.
func sseFrame(n int, text []byte) []byte {
	return fmt.Appendf(nil, "id: %d\nevent: answer.delta\ndata: "+
		`{"protocol_version":1,"turn_id":"turn_00000000000000000000000000","sequence":%d,"type":"answer.delta","part_id":"part_00000000000000000000000000","offset":%d,"delta":"%s"}`+"\n\n",
		n, n, n*(load.IndexDigits+1), text)
}

func (s *sseServer) follow(w http.ResponseWriter, r *http.Request) {
	after := 0
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		after = n
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	t := s.topic(r.PathValue("topic"))
	for {
		events, more := t.after(after)
		for _, event := range events {
			if _, err := w.Write(event); err != nil {
				return
			}
		}
		after += len(events)
		if control.Flush() != nil {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}
