package doctor

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/cluster"
	"turnstone/cmd/turnstone/connect"
)

// expiryNotice is how long before the end of a certificate the doctor notes it.
const expiryNotice = 30 * 24 * time.Hour

// nodes reports the nodes whose leases are in the database. Different builds are normal only during an update.
func (p *installation) nodes(context.Context) finding {
	if p.leases == nil { // the check of the database has reported why
		return finding{}
	}
	f := finding{what: fmt.Sprintf("nodes: %d running", len(p.leases))}
	builds := map[string]int{}
	for _, lease := range p.leases {
		builds[lease.Build]++
	}
	if len(builds) > 1 {
		var list []string
		for _, build := range slices.Sorted(maps.Keys(builds)) {
			name := build
			if name == "" {
				name = "unknown build"
			}
			list = append(list, fmt.Sprintf("%d of %s", builds[build], name))
		}
		f.notes = append(f.notes, "the nodes have different builds: "+strings.Join(list, ", "))
	}
	return f
}

// certificates checks the files of the cluster as a start does.
func (p *installation) certificates(context.Context) finding {
	if p.config.Cluster.Listen == "" {
		return finding{}
	}
	f := finding{what: "certificates of the cluster", remedy: "create them with turnstone cluster certs (docs/operations.md)"}
	if _, f.err = connect.ClusterTLS(p.config, zap.NewNop()); f.err != nil {
		return f
	}
	for _, path := range []string{p.config.Cluster.CA, p.config.Cluster.Cert} {
		expiry, err := cluster.Expiry(path)
		if err != nil {
			f.err = err
			return f
		}
		if left := time.Until(expiry); left < expiryNotice {
			f.notes = append(f.notes, fmt.Sprintf("%s expires on %s, in %d days: renew it with turnstone cluster certs (docs/operations.md)",
				path, expiry.Format(time.DateOnly), int(left/(24*time.Hour))))
		}
	}
	return f
}

// advertised checks that the address for other nodes resolves and, if the service runs, that it accepts this node's own
// certificate there.
func (p *installation) advertised(ctx context.Context) finding {
	address := p.config.Cluster.Advertise
	if address == "" {
		return finding{}
	}
	f := finding{what: "cluster address " + address, remedy: "check TURNSTONE_CLUSTER_ADVERTISE, and that the address leads to this node"}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		f.err = err
		return f
	}
	if _, f.err = net.DefaultResolver.LookupHost(ctx, host); f.err != nil || !p.isRunning {
		return f
	}
	secure, err := connect.ClusterTLS(p.config, zap.NewNop())
	if err != nil { // the check of the certificates has reported why
		return f
	}
	f.err = cluster.Probe(ctx, secure, address)
	return f
}
