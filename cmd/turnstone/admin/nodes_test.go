package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

func TestNodesAreListedInTheOrderOfTheirStartWithWhatTheyReport(t *testing.T) {
	w := storetest.NewWorld(t)
	other := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: other, Address: "10.0.0.8:7946", Build: "c0ffee"}))
	renew := func(node protocol.NodeID, load ownership.NodeLoad) {
		t.Helper()
		if _, err := w.Directory.Renew(t.Context(), node, load); err != nil {
			t.Fatal(err)
		}
	}
	renew(w.Node, ownership.NodeLoad{})
	renew(other, ownership.NodeLoad{Live: 3, Capacity: 1000})
	base := internalServer(t, Config{Nodes: NewNodes(w.Directory, w.Node)})
	list := func() []Node {
		t.Helper()
		status, body, err := sitetest.Fetch(t, http.MethodGet, base+"/admin/nodes", "token")
		var list NodeList
		if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s %v", status, body, err)
		}
		if err != nil || len(list.Nodes) != 2 {
			t.Fatalf("%s, %v", body, err)
		}
		return list.Nodes
	}
	nodes := list()
	for i := range nodes {
		if nodes[i].StartedAt.IsZero() {
			t.Errorf("%+v has no start", nodes[i])
		}
		nodes[i].StartedAt = nodes[0].StartedAt
	}
	first := Node{NodeID: w.Node.String(), State: NodeRunning, Renewals: 1, Responding: true, StartedAt: nodes[0].StartedAt}
	second := Node{NodeID: other.String(), Address: "10.0.0.8:7946", State: NodeRunning, LiveTurns: 3, Capacity: 1000, Build: "c0ffee", Renewals: 1, StartedAt: nodes[0].StartedAt}
	if nodes[0] != first || nodes[1] != second {
		t.Errorf("%+v", nodes)
	}
	path := base + "/admin/nodes/" + other.String() + "/drain"
	if status, body, _ := sitetest.Fetch(t, http.MethodPost, path, ""); status != http.StatusUnauthorized || list()[1].State != NodeRunning {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body, _ := sitetest.Fetch(t, http.MethodPost, path, "token"); status != http.StatusAccepted || !strings.Contains(body, other.String()) {
		t.Errorf("drain: %d %s", status, body)
	}
	if nodes := list(); nodes[0].State != NodeRunning || nodes[1].State != NodeDraining {
		t.Errorf("%+v", nodes)
	}
	for _, node := range []string{protocol.NewNodeID().String(), "node-1"} {
		if status, body, _ := sitetest.Fetch(t, http.MethodPost, base+"/admin/nodes/"+node+"/drain", "token"); status != http.StatusNotFound {
			t.Errorf("drain of %s: %d %s", node, status, body)
		}
	}
}

// brokenNodes implements Nodes without a database.
type brokenNodes struct{}

func (brokenNodes) ListNodes(context.Context) ([]Node, error) {
	return nil, protocol.Errorf(protocol.CodeUnavailable, "the database does not respond")
}

func (brokenNodes) DrainNode(context.Context, protocol.NodeID) error {
	return protocol.Errorf(protocol.CodeUnavailable, "the database does not respond")
}

func TestNodeRoutesReportThatTheDatabaseDoesNotRespond(t *testing.T) {
	base := internalServer(t, Config{Nodes: brokenNodes{}})
	for method, path := range map[string]string{http.MethodGet: "/admin/nodes", http.MethodPost: "/admin/nodes/" + protocol.NewNodeID().String() + "/drain"} {
		if status, body, _ := sitetest.Fetch(t, method, base+path, "token"); status != http.StatusServiceUnavailable || !strings.Contains(body, "does not respond") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
