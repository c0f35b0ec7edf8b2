package s3test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// A Fault is what a client experiences of a request. The zero value is no fault.
type Fault int

// The faults.
const (
	Refused Fault = iota + 1 // 503, as from a store under too much load; the request is not executed
	Lost                     // the request is executed, and the connection ends without a response
)

// Faulty is a server in front of a Gateway that injects faults. Its methods may be called from any goroutine.
type Faulty struct {
	Endpoint string

	mu     sync.Mutex
	choose func(*http.Request) Fault // guarded by mu
}

// NewFaulty starts a server in front of a gateway. It stops when the test ends.
func NewFaulty(t testing.TB, gateway *Gateway) *Faulty {
	t.Helper()
	target, err := url.Parse(gateway.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &Faulty{choose: func(*http.Request) Fault { return 0 }}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the signature covers it
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch f.of(r) {
		case Refused:
			refuse(w, r)
		case Lost:
			proxy.ServeHTTP(discard{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	f.Endpoint = server.URL
	return f
}

// Inject chooses the fault of each later request; nil: none has one.
func (f *Faulty) Inject(choose func(*http.Request) Fault) {
	if choose == nil {
		choose = func(*http.Request) Fault { return 0 }
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choose = choose
}

func (f *Faulty) of(r *http.Request) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.choose(r)
}

// refuse responds as S3 does, after it has read the request.
func refuse(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>later</Message></Error>`)
}

// discard takes a response that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
