package outbound

import "net/netip"

// special are the networks that IANA has reserved for a special purpose: addresses in them are not of a public server.
// They include all multicast addresses, and the IPv6 addresses that contain an IPv4 address, which a router could translate
// to a private one. Mapped addresses (::ffff:0:0/96) are unmapped before they are compared.
var special = parsed(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48",
	"3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func parsed(networks ...string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(networks))
	for _, one := range networks {
		list = append(list, netip.MustParsePrefix(one))
	}
	return list
}

// isPublic reports whether an unmapped address is one of a public server.
func isPublic(address netip.Addr) bool {
	return address.Zone() == "" && address.IsGlobalUnicast() && !contains(special, address)
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}
