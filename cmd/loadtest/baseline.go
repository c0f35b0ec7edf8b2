package main

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
)

const (
	baselineHeader = 5 * time.Second
	// maxIdle is beyond every load here: a proxy that closes connections would be measured dialling.
	maxIdle = 20_000
)

// proxyCommand is the relay that does nothing but relay: no session, no limit, no log.
type proxyCommand struct {
	To     string `required:"" help:"Address of the upstream."`
	Listen string `default:"127.0.0.1:0" help:"Where to listen."`
}

// Run serves until ctx ends.
func (c proxyCommand) Run(ctx context.Context, p *program) error {
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
		// Without it net/http closes the request's body under the transport, which still looks for its end, when a model
		// answers as fast as ours does, and the stream is cut.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 has it
		proxy.ServeHTTP(w, r)
	}))
}

func serveBaseline(ctx context.Context, p *program, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	announce(p, listener)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: baselineHeader}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// sseCommand sends one stream of events to any number of readers, as a handler of net/http does it: a goroutine a
// reader, a write and a flush an event.
type sseCommand struct {
	Listen string `default:"127.0.0.1:0" help:"Where to listen."`
}

// Run serves until ctx ends.
func (c sseCommand) Run(ctx context.Context, p *program) error {
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

// topic is a log of events in memory.
type topic struct {
	mu     sync.Mutex
	events [][]byte      // guarded by mu; the frame of event n is at n-1
	more   chan struct{} // guarded by mu; closed at the next event
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

// begin makes a topic tick at an interval; 0: it stays as it is.
func (s *sseServer) begin(w http.ResponseWriter, r *http.Request) {
	interval, err := time.ParseDuration(r.URL.Query().Get("interval"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t := s.topic(r.PathValue("topic"))
	if interval <= 0 {
		t.add(sseFrame(1, appendFirstToken(nil, monotonic(), 0)))
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
	start, base := time.Now(), monotonic()
	for i := 0; waitUntil(ctx, start.Add(time.Duration(i)*interval)) == nil; i++ {
		text := appendToken(nil, i)
		if i == 0 {
			text = appendFirstToken(nil, base, int64(interval))
		}
		t.add(sseFrame(i+1, text))
	}
}

// sseFrame is as long as one of the service, and read by the same parser.
func sseFrame(n int, text []byte) []byte {
	return fmt.Appendf(nil, "id: %d\nevent: answer.delta\ndata: "+
		`{"protocol_version":1,"turn_id":"turn_00000000000000000000000000","sequence":%d,"type":"answer.delta","part_id":"part_00000000000000000000000000","offset":%d,"delta":"%s"}`+"\n\n",
		n, n, n*(indexDigits+1), text)
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
