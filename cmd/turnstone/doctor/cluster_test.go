package doctor

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/cluster"
	"turnstone/cmd/turnstone/connect"
	"turnstone/cmd/turnstone/settings"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// clusterChecks returns the checks of a node with new certificates.
func clusterChecks(t *testing.T, days int) *installation {
	t.Helper()
	folder := t.TempDir()
	if _, err := cluster.Issue(cluster.Request{Folder: folder, Node: "node", Days: days}); err != nil {
		t.Fatal(err)
	}
	return &installation{config: &settings.Config{Cluster: settings.Cluster{
		Listen: "127.0.0.1:7946", Advertise: "127.0.0.1:7946", CA: filepath.Join(folder, "ca.crt"), Cert: filepath.Join(folder, "node.crt"), Key: filepath.Join(folder, "node.key"),
	}}}
}

func printed(f finding) string {
	out := &bytes.Buffer{}
	report(out, f)
	return out.String()
}

func TestDoctorNotesACertificateThatExpiresSoon(t *testing.T) {
	for days, want := range map[int]string{365: "", 32: "", 20: "in 19 days: renew it"} {
		out := printed(clusterChecks(t, days).certificates(t.Context()))
		if !strings.HasPrefix(out, "ok    certificates of the cluster\n") || strings.Contains(out, "note") != (want != "") || !strings.Contains(out, want) {
			t.Errorf("%d days: %s", days, out)
		}
	}
	checks := clusterChecks(t, 365)
	checks.config.Cluster.CA = clusterChecks(t, 365).config.Cluster.CA
	if out := printed(checks.certificates(t.Context())); !strings.HasPrefix(out, "WRONG certificates of the cluster: ") || !strings.Contains(out, "turnstone cluster certs") {
		t.Errorf("a certificate of another authority: %s", out)
	}
	if f := (&installation{config: &settings.Config{}}).certificates(t.Context()); f.what != "" {
		t.Errorf("a node that is alone: %+v", f)
	}
}

func TestDoctorConnectsToTheAdvertisedAddressOfARunningNode(t *testing.T) {
	checks, stranger := clusterChecks(t, 365), clusterChecks(t, 365)
	secure, err := connect.ClusterTLS(checks.config, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	node := httptest.NewUnstartedServer(http.NotFoundHandler())
	node.EnableHTTP2, node.TLS, node.Config.ErrorLog = true, secure, log.New(io.Discard, "", 0)
	node.StartTLS()
	defer node.Close()
	address, nobody := node.Listener.Addr().String(), sitetest.FreeAddress(t)
	for _, c := range []struct {
		name, address string
		checks        *installation
		isRunning     bool
		want          string
	}{
		{"a node that accepts the certificate", address, checks, true, "ok    cluster address " + address},
		{"a node of another cluster", address, stranger, true, "WRONG cluster address " + address},
		{"an address where nothing listens", nobody, checks, true, "WRONG cluster address " + nobody},
		{"a service that does not run", nobody, checks, false, "ok    cluster address " + nobody},
		{"a name that does not resolve", "no..name:7946", checks, false, "WRONG cluster address no..name:7946"},
	} {
		c.checks.config.Cluster.Advertise, c.checks.isRunning = c.address, c.isRunning
		if out := printed(c.checks.advertised(sitetest.Within(t, sitetest.HangGuard))); !strings.HasPrefix(out, c.want) {
			t.Errorf("%s: %s", c.name, out)
		}
	}
}

func TestDoctorNotesNodesWithDifferentBuilds(t *testing.T) {
	checks := &installation{}
	if f := checks.nodes(t.Context()); f.what != "" {
		t.Errorf("without a database: %+v", f)
	}
	checks.leases = map[protocol.NodeID]ownership.Lease{protocol.NewNodeID(): {Build: "c0ffee"}, protocol.NewNodeID(): {Build: "c0ffee"}}
	if out := printed(checks.nodes(t.Context())); out != "ok    nodes: 2 running\n" {
		t.Errorf("%s", out)
	}
	checks.leases[protocol.NewNodeID()] = ownership.Lease{}
	if out := printed(checks.nodes(t.Context())); out != "ok    nodes: 3 running\nnote  the nodes have different builds: 1 of unknown build, 2 of c0ffee\n" {
		t.Errorf("%s", out)
	}
}
