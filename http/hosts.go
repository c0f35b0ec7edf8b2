package http

import (
	"net"
	stdhttp "net/http"
	"net/netip"
	"strings"

	"github.com/google/uuid"

	"turnstone/protocol"
)

// hosts are the names by which a listener may be addressed. A page that has its own name resolve to our address (DNS
// rebinding) sends that name as Host, and is refused. A browser cannot be made to send an address so, which is why a
// listener that other machines reach takes any address: probes know it by nothing else.
type hosts struct {
	names     map[string]bool
	addresses bool // any IP address, not only loopback ones
}

// newHosts allows the host of the address listened on, other names, and those of the loopback interface.
func newHosts(listen string, names ...string) hosts {
	h := hosts{names: map[string]bool{}}
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

// IsLoopback says whether a host is the loopback interface by its address or name.
func IsLoopback(host string) bool {
	host = canonicalHost(host)
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// canonicalHost is a Host header without its port, in one spelling.
func canonicalHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// check refuses a request for another host. Without a Host, as probes send in HTTP/1.0, there is nothing to refuse.
func (h hosts) check(r *stdhttp.Request) error {
	host := canonicalHost(r.Host)
	_, err := netip.ParseAddr(host)
	if r.Host == "" || h.names[host] || IsLoopback(host) || h.addresses && err == nil {
		return nil
	}
	return protocol.Errorf(protocol.CodeWrongHost, "This service is not reached by that name. Check the Host header.")
}

func (s *Server) checkHost(next stdhttp.Handler) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		if err := s.hosts.check(r); err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// OnlyHosts passes requests on that are addressed to the internal listener by its own host, one of the names that the
// operator lists, or a loopback name; see hosts. Which names lead to it cannot be known: a collector of metrics uses that of
// a service or a pod, and a page that was rebound to it any other.
func OnlyHosts(listen string, names []string, next stdhttp.Handler) stdhttp.Handler {
	allowed := newHosts(listen, names...)
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		if allowed.check(r) != nil {
			err := protocol.Errorf(protocol.CodeWrongHost, "The internal listener is not reached by that name. Check the Host header, or add the name to TURNSTONE_INTERNAL_HOSTS.")
			p := problemOf(err)
			p.RequestID = "req_" + uuid.Must(uuid.NewV7()).String()
			w.Header().Set("Content-Type", p.ContentType(""))
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(p.Status)
			_ = writeJSON(w, p) // the client may be gone
			return
		}
		next.ServeHTTP(w, r)
	})
}
