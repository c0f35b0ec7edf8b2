package outbound

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Allowed is what an operator allows in addition to public servers with https: hosts, by their exact names, and networks. To
// these, requests may also use http and other ports than those of https.
type Allowed struct {
	hosts    []string
	networks []netip.Prefix
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// ParseAllowed reads hosts, addresses and networks (CIDR).
func ParseAllowed(list []string) (Allowed, error) {
	var a Allowed
	for _, one := range list {
		if address, err := netip.ParseAddr(one); err == nil {
			address = address.Unmap()
			a.networks = append(a.networks, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		if network, err := netip.ParsePrefix(one); err == nil {
			a.networks = append(a.networks, network.Masked())
			continue
		}
		if !hostName.MatchString(one) {
			return Allowed{}, fmt.Errorf("invalid host or network %q (want for example wiki.example.org or 10.1.0.0/16)", one)
		}
		a.hosts = append(a.hosts, strings.ToLower(one))
	}
	return a, nil
}

// host reports whether a host is allowed by its name.
func (a *Allowed) host(name string) bool {
	return slices.Contains(a.hosts, name)
}

// network reports whether an unmapped address is in an allowed network.
func (a *Allowed) network(address netip.Addr) bool { return contains(a.networks, address) }

// publicPorts are the ports of https at which every public server may be reached.
var publicPorts = []string{"443", "8443"}

// isStrict reports whether an address may be one of any public server; otherwise its server must be allowed.
func isStrict(address *url.URL) bool {
	return address.Scheme == "https" && (address.Port() == "" || slices.Contains(publicPorts, address.Port()))
}
