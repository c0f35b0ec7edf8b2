package listener

import (
	"net"
	stdhttp "net/http"
	"net/netip"
	"strings"

	"turnstone/http/response"
	"turnstone/protocol"
)

// Hosts are the names by which a listener may be addressed. In a DNS rebinding attack, a page makes its own name
// resolve to our address; the browser then sends that name as Host, and the request is refused. A browser cannot be
// made to send an IP address in this way, so a listener that other host computers can reach accepts any IP address: probes
// know no other name of it.
type Hosts struct {
	names     map[string]bool
	addresses bool // any IP address, not only loopback ones
}

// NewHosts allows the host of the listen address, the given names, and loopback names and addresses.
func NewHosts(listen string, names ...string) Hosts {
	h := Hosts{names: map[string]bool{}}
	host, _, err := net.SplitHostPort(listen)
	if err == nil {
		h.addresses = !IsLoopback(host)
		names = append(names, host)
	}
	for _, name := range names {
		if name != "" {
			h.names[canonicalHost(name)] = true
		}
	}
	return h
}

// IsLoopback reports whether a host is an address or a name of the loopback interface.
func IsLoopback(host string) bool {
	host = canonicalHost(host)
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// canonicalHost returns a Host header without its port, in lower case, without brackets and without a final dot.
func canonicalHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// Check refuses a request for another host. A request without a Host, which probes send in HTTP/1.0, is accepted.
func (h Hosts) Check(r *stdhttp.Request) error {
	host := canonicalHost(r.Host)
	_, err := netip.ParseAddr(host)
	if r.Host == "" || h.names[host] || IsLoopback(host) || h.addresses && err == nil {
		return nil
	}
	return protocol.Errorf(protocol.CodeWrongHost, "The Host header does not name this service.")
}

// OnlyHosts passes on the requests that address the internal listener by its own host, one of the operator's names, or
// a loopback name; see Hosts. The names of the listener cannot be derived: a metrics collector uses the name of a
// service or a pod, and a rebinding page uses any other name.
func OnlyHosts(listen string, names []string, next stdhttp.Handler) stdhttp.Handler {
	allowed := NewHosts(listen, names...)
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		if allowed.Check(r) != nil {
			response.Refuse(w, protocol.Errorf(protocol.CodeWrongHost, "The Host header does not name the internal listener. Correct it, or add the name to TURNSTONE_INTERNAL_HOSTS."))
			return
		}
		next.ServeHTTP(w, r)
	})
}
