package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/admin"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// TestAnOperatorDrainsANodeThroughAnotherOne drains a node whose turn never ends. The node hands the turn over, and
// stays up without being ready.
func TestAnOperatorDrainsANodeThroughAnotherOne(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t, "TURNSTONE_DRAIN_GRACE=100ms")
	first := s.Start()
	u := sitetest.NewUser(t, s.Base)
	live := u.Live(t, u.NewConversation(t), endlessTurn)
	live.AwaitKind(t, "answer.delta")
	internal := sitetest.FreeAddress(t)
	second := append(s.Environment, "TURNSTONE_DATA_DIR="+filepath.Join(filepath.Dir(s.Folder), "second"),
		"TURNSTONE_LISTEN="+sitetest.FreeAddress(t), "TURNSTONE_INTERNAL_LISTEN="+internal, "TURNSTONE_CONTENT_LISTEN=off")
	sitetest.Start(t, second, "serve").AwaitLog("turnstone serves")
	command := func(arguments ...string) string {
		t.Helper()
		code, stdout, stderr := sitetest.Finish(t, second, arguments...)
		if code != 0 {
			t.Fatalf("%v: %d %s%s", arguments, code, stdout, stderr)
		}
		return stdout
	}
	list := func() []admin.Node {
		t.Helper()
		var list admin.NodeList
		if err := json.Unmarshal([]byte(command("node", "list", "--json")), &list); err != nil || len(list.Nodes) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list.Nodes
	}
	sitetest.Eventually(t, "the first node reports its turn", func() bool { return list()[0].LiveTurns == 1 })
	nodes := list()
	if nodes[0].Responding || !nodes[1].Responding || nodes[0].State != admin.NodeRunning || nodes[0].Capacity != 1000 {
		t.Errorf("%+v", nodes)
	}
	if table := command("node", "list"); strings.Count(table, "\n") != 3 || !strings.Contains(table, nodes[0].NodeID+"  -        running  1           1000") {
		t.Errorf("%s", table)
	}
	over := u.Ledger.Plan()
	if drained := command("node", "drain", nodes[0].NodeID, "--wait"); !strings.Contains(drained, "has no live turns") {
		t.Errorf("%s", drained)
	}
	if status, _ := sitetest.Readiness(t, s.Internal); status != http.StatusServiceUnavailable {
		t.Errorf("the drained node responds %d to /ready", status)
	}
	if status, _ := sitetest.Readiness(t, internal); status != http.StatusOK {
		t.Errorf("the other node responds %d to /ready", status)
	}
	u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("refused")).WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	over()
	sitetest.Eventually(t, "the other node runs the turn", func() bool { return list()[1].LiveTurns == 1 })
	if nodes := list(); nodes[0].State != admin.NodeDraining || nodes[0].LiveTurns != 0 {
		t.Errorf("%+v", nodes)
	}
	command("turn", "cancel", live.Turn)
	if events := command("turn", "events", live.Turn, "--follow"); !strings.Contains(events, `"status":"cancelled"`) {
		t.Errorf("%s", events)
	}
	for _, arguments := range [][]string{{"node", "drain", protocol.NewNodeID().String()}, {"node", "drain", "node-1"}} {
		if code, _, stderr := sitetest.Finish(t, second, arguments...); code != 1 || !strings.Contains(stderr, "no node") {
			t.Errorf("%v: %d %s", arguments, code, stderr)
		}
	}
	if strings.Contains(first.Stderr(), "declared a silent node dead") {
		t.Error("the drained node did not keep its lease")
	}
}
