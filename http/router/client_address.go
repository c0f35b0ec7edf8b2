package router

import (
	stdhttp "net/http"
	"net/netip"
	"strings"
)

// proxies are the addresses of trusted proxies.
type proxies []netip.Prefix

// clientAddress returns the address of the peer or, if the peer is a trusted proxy, the rightmost address in
// X-Forwarded-For that is not a trusted proxy's. It returns the zero Addr if the address of a proxy cannot be parsed.
func (p proxies) clientAddress(r *stdhttp.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && p.trust(address); i-- {
		hop := strings.TrimSpace(hops[i])
		if hop == "" {
			break
		}
		next, err := netip.ParseAddr(hop)
		if err != nil {
			return netip.Addr{}
		}
		address = next.Unmap().WithZone("")
	}
	return address
}

func (p proxies) trust(address netip.Addr) bool {
	for _, proxy := range p {
		if proxy.Contains(address) {
			return true
		}
	}
	return false
}
