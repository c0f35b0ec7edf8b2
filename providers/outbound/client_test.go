package outbound

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter accepts connections on a port of every address of the host computer, and counts them.
type counter struct {
	port  string
	count atomic.Int64
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	_, c.port, _ = net.SplitHostPort(listener.Addr().String())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			c.count.Add(1)
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	publicPorts = append(publicPorts, c.port)
	t.Cleanup(func() { publicPorts = publicPorts[:len(publicPorts)-1] })
	return c
}

// names is a DNS server. It resolves each name by a function, which gets how often the name was resolved before.
func names(t *testing.T, resolve func(name string, before int) []string) *net.Resolver {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		asked := map[string]int{}
		buffer := make([]byte, 4096)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			name := strings.TrimSuffix(q.Name.String(), ".")
			for _, text := range resolve(name, asked[name+q.Type.String()]) {
				address := netip.MustParseAddr(text)
				header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				switch {
				case address.Is4() && q.Type == dnsmessage.TypeA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
				case !address.Is4() && q.Type == dnsmessage.TypeAAAA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
				}
			}
			asked[name+q.Type.String()]++
			if packed, err := m.Pack(); err == nil {
				_, _ = socket.WriteTo(packed, from)
			}
		}
	}()
	t.Cleanup(func() { _ = socket.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", socket.LocalAddr().String())
	}}
}

// spellings are hosts that a program may take for an address that is not public.
var spellings = []string{
	"127.0.0.1", "127.1", "127.0.1", "127.000.000.001", "0127.0.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.1.", "127.127.127.127",
	"127.0.0.2", "127.255.255.254", "%31%32%37.0.0.1", "①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "127%2E0%2E0%2E1", "0", "0.0.0.0", "0.1.2.3", "00.0.0.0", "0x0",
	"localhost", "LOCALHOST", "localhost.", "lOcAlHoSt", "ip6-localhost", "a.localhost", "localtest.example", "both.example", "private.example", "sixth.example", "mapped.example", "own.example",
	"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::1%25lo]", "[::FFFF:10.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[2001:db8::1]", "[100::1]", "[3fff::1]", "[5f00::1]", "[fc00::1]", "[fd00:ec2::254]",
	"[fe80::1%25eth0]", "[fe80::1]", "[fec0::1]", "[ff02::1]", "10.0.0.1", "10.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.168.257", "3232235777", "100.64.0.1", "169.254.169.254", "0xA9FEA9FE",
	"2852039166", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
	"255.255.255.255", "metadata.google.internal", "example.org@127.0.0.1", "example.org:x@127.0.0.1", "127.0.0.1\\@example.org", "127.0.0.1#@example.org", "example.org\\.127.0.0.1", "127.0.0.1%00.example.org",
	"127.0.0.1\t", "127.0.0.1%09", "[127.0.0.1]", "127.0.0.1:22@127.0.0.1",
}

// resolved are the addresses of the names in spellings; every other name has that of the host computer.
func resolved(name string, _ int) []string {
	switch strings.ToLower(name) {
	case "both.example":
		return []string{"127.0.0.1", "10.0.0.1", "::1"}
	case "private.example":
		return []string{"10.0.0.1"}
	case "sixth.example":
		return []string{"::1", "fe80::1"}
	case "mapped.example":
		return []string{"::ffff:127.0.0.1"}
	case "metadata.google.internal":
		return []string{"169.254.169.254"}
	}
	return []string{"127.0.0.1"}
}

// addresses returns each spelling in addresses, with a port.
func addresses(port string) []string {
	var list []string
	for _, scheme := range []string{"https", "http", "HTTPS"} {
		for _, host := range spellings {
			list = append(list, scheme+"://"+host+":"+port+"/")
		}
	}
	return append(list,
		"https:127.0.0.1:"+port, "https:///127.0.0.1:"+port, "//127.0.0.1:"+port, "127.0.0.1:"+port, "https:/127.0.0.1:"+port+"/", "file:///etc/passwd", "ftp://127.0.0.1:"+port, "gopher://127.0.0.1:"+port+"/_",
		"unix:///run/redis.sock", "javascript:alert(1)", "data:text/html,x", "https://", "https://:"+port+"/", "jar:https://127.0.0.1:"+port, "ws://127.0.0.1:"+port, "", " ", "\x00",
	)
}

func TestNoSpellingOfAnAddressReachesWhatIsNotPublic(t *testing.T) {
	c := newCounter(t)
	if len(spellings) < 60 {
		t.Fatalf("there are only %d spellings", len(spellings))
	}
	for _, system := range []bool{false, true} { // the resolver of the system knows names without DNS
		config := Config{OwnHosts: []string{"own.example"}, Timeout: 5 * time.Second}
		if !system {
			config.Resolver = names(t, resolved)
		}
		client := New(config)
		for _, address := range addresses(c.port) {
			if system && !strings.Contains(strings.ToLower(address), "//localhost:") {
				continue // it could ask a server of names
			}
			if response, err := client.Get(t.Context(), Request{Address: address}); err == nil {
				t.Errorf("%q: status %d", address, response.Status)
			} else if text := err.Error(); !isSentence(text) || strings.Contains(text, "dial") {
				t.Errorf("%q: %q", address, text)
			}
		}
	}
	if n := c.count.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func isSentence(text string) bool {
	return strings.HasSuffix(text, ".") && strings.ToUpper(text[:1]) == text[:1]
}

func TestNoRedirectReachesWhatIsNotPublic(t *testing.T) {
	c := newCounter(t)
	var target atomic.Value
	front := serve(t, "127.0.0.2:0", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Location"] = []string{target.Load().(string)}
		w.WriteHeader(http.StatusFound)
	})
	client := New(Config{Allowed: allow(t, "127.0.0.2/32"), Resolver: names(t, resolved), OwnHosts: []string{"own.example"}})
	for _, address := range addresses(c.port) {
		if strings.ContainsAny(address, "\x00\t") || strings.Contains(address, "127.0.0.2") {
			continue // not possible in a header; allowed
		}
		target.Store(address)
		response, err := client.Get(t.Context(), Request{Address: front})
		if err == nil && response.URL.Host != strings.TrimPrefix(front, "http://") {
			t.Errorf("%q: status %d of %s", address, response.Status, response.URL)
		}
	}
	if n := c.count.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestAnAddressThatChangesIsCheckedAtEachConnection(t *testing.T) {
	c := newCounter(t)
	requests := 0
	mux := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	listener, local, port := samePort(t, "127.0.0.2", "127.0.0.1")
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	reached := make(chan struct{}, 8)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := local.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() { _ = local.Close(); <-done })
	resolver := names(t, func(_ string, before int) []string {
		if before == 0 {
			return []string{"127.0.0.2"}
		}
		return []string{"127.0.0.1"}
	})
	client := New(Config{Allowed: allow(t, "127.0.0.2"), Resolver: resolver})
	if _, err := client.Get(t.Context(), Request{Address: "http://rebinding.example:" + port + "/"}); err == nil || requests != 1 {
		t.Errorf("%v after %d requests", err, requests)
	}
	if len(reached) != 0 || c.count.Load() != 0 {
		t.Error("the private address was reached")
	}
}

// samePort listens on the same port of two addresses.
func samePort(t *testing.T, first, second string) (a, b net.Listener, port string) {
	t.Helper()
	for range 100 {
		a, err := net.Listen("tcp", first+":0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(a.Addr().String())
		if b, err := net.Listen("tcp", second+":"+port); err == nil {
			return a, b, port
		}
		_ = a.Close() // another program has the port of the second address
	}
	t.Fatal("no port is free on both addresses")
	return nil, nil, ""
}

func allow(t *testing.T, list ...string) Allowed {
	t.Helper()
	a, err := ParseAllowed(list)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve starts a server and returns its address.
func serve(t *testing.T, at string, handle http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handle}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func TestAllowedHostsAndNetworksAreReached(t *testing.T) {
	address := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") })
	port := address[strings.LastIndex(address, ":"):]
	resolver := names(t, resolved)
	for _, c := range []struct{ allowed, address string }{
		{"127.0.0.1", address},
		{"127.0.0.0/8", address},
		{"wiki.example", "http://wiki.example" + port},
		{"WIKI.example", "http://Wiki.Example" + port},
		{"127.0.0.0/8", "http://wiki.example" + port},
		{"::ffff:127.0.0.1", address},
	} {
		got, err := New(Config{Allowed: allow(t, c.allowed), Resolver: resolver}).Get(t.Context(), Request{Address: c.address})
		if err != nil || string(got.Body) != "in" {
			t.Errorf("%s with %s: %v", c.address, c.allowed, err)
		}
	}
	for _, invalid := range []string{"*.example.org", "http://a.example", "10.0.0.0/33", "a b", "a..b"} {
		if _, err := ParseAllowed([]string{invalid}); err == nil {
			t.Errorf("%q is accepted", invalid)
		}
	}
}

func TestPlainHTTPIsRefusedOnThePortOfHTTPS(t *testing.T) {
	c := newCounter(t)
	client := New(Config{Allowed: allow(t, "10.0.0.0/8"), Resolver: names(t, resolved)})
	if _, err := client.Get(t.Context(), Request{Address: "http://public.example:" + c.port}); !errors.Is(err, errStrict) {
		t.Error(err)
	}
}

func TestEverySpecialNetworkIsRefused(t *testing.T) {
	for _, network := range special {
		if isPublic(network.Addr()) || isPublic(network.Addr().Next()) {
			t.Errorf("%s is public", network)
		}
	}
	for _, public := range []string{"93.184.216.34", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001:82a::200e"} {
		if !isPublic(netip.MustParseAddr(public)) {
			t.Errorf("%s is not public", public)
		}
	}
}

func TestCredentialsAreSentToTheirHostOnly(t *testing.T) {
	type seen struct{ host, authorization, cookie, key, accept, referer string }
	var mu sync.Mutex
	var requests []seen
	var first, second string
	record := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, seen{r.Host, r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("X-Key"), r.Header.Get("Accept"), r.Header.Get("Referer")})
	}
	first = serve(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		record(r)
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/own", http.StatusFound)
		case "/own":
			http.Redirect(w, r, second, http.StatusFound)
		}
	})
	second = serve(t, "127.0.0.2:0", func(w http.ResponseWriter, r *http.Request) {
		record(r)
		http.Redirect(w, r, first+"/back", http.StatusFound)
	})
	client := New(Config{Allowed: allow(t, "127.0.0.0/8")})
	header := http.Header{"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "X-Key": {"k"}, "Accept": {"text/html"}}
	if _, err := client.Get(t.Context(), Request{Address: first, Header: header}); err != nil {
		t.Fatal(err)
	}
	if len(requests) != 4 {
		t.Fatalf("%+v", requests)
	}
	for i, r := range requests {
		own := i < 2
		if r.accept != "text/html" || r.referer != "" || (r.authorization != "") != own || (r.cookie != "") != own || (r.key != "") != own {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

func TestRedirectsAreBoundedAndMayBeRefused(t *testing.T) {
	count := 0
	address := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		count++
		http.Redirect(w, r, fmt.Sprintf("/%d", count), http.StatusFound)
	})
	client := New(Config{Allowed: allow(t, "127.0.0.1")})
	if _, err := client.Get(t.Context(), Request{Address: address}); err == nil || count != maxRedirects+1 {
		t.Errorf("%v after %d requests", err, count)
	}
	count = 0
	no := &Error{Detail: "No."}
	if _, err := client.Get(t.Context(), Request{Address: address, Redirect: func(*url.URL) error { return no }}); !errors.Is(err, no) || count != 1 {
		t.Errorf("%v after %d requests", err, count)
	}
}

func TestTLSIsVerifiedForTheNameOfTheHost(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secure") }))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	resolver := names(t, resolved)
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for address, want := range map[string]bool{"https://example.com" + port: true, "https://other.test" + port: false, server.URL: true} {
		_, err := New(Config{Allowed: allow(t, "127.0.0.1"), Resolver: resolver, TLS: &tls.Config{RootCAs: roots}}).Get(t.Context(), Request{Address: address})
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := New(Config{Allowed: allow(t, "127.0.0.1")}).Get(t.Context(), Request{Address: server.URL}); err == nil {
		t.Error("an unknown authority is trusted")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 200 {
		_, _ = packed.Write(zeros)
	}
	_ = packed.Close()
	stop := make(chan struct{})
	address := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			for range 64 {
				_, _ = w.Write(zeros)
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		case "/double":
			w.Header().Set("Content-Encoding", "gzip, gzip")
			_, _ = w.Write(bomb.Bytes())
		case "/header":
			w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
		case "/slow":
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-stop
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
		case "/broken":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes()[:100])
		}
	})
	t.Cleanup(func() { close(stop) })
	client := New(Config{Allowed: allow(t, "127.0.0.1"), Timeout: 2 * time.Second})
	for _, path := range []string{"/long", "/bomb"} {
		if got, err := client.Get(t.Context(), Request{Address: address + path}); err != nil || len(got.Body) != MaxBody || !got.Cut {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, want := range map[string]string{
		"/double": "compression", "/header": "as a web server does", "/slow": "in time", "/cut": "too early", "/broken": "",
	} {
		if got, err := client.Get(t.Context(), Request{Address: address + path}); err == nil || !isSentence(err.Error()) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Get(ctx, Request{Address: address + "/slow"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	c := newCounter(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+c.port)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:"+c.port)
	address := serve(t, "127.0.0.2:0", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "direct") })
	resolver := names(t, func(string, int) []string { return []string{"127.0.0.2"} })
	got, err := New(Config{Allowed: allow(t, "wiki.example"), Resolver: resolver}).Get(t.Context(), Request{Address: "http://wiki.example" + address[strings.LastIndex(address, ":"):]})
	if err != nil || string(got.Body) != "direct" || c.count.Load() != 0 {
		t.Errorf("%v, %d connections to the proxy", err, c.count.Load())
	}
}
