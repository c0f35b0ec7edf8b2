package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

var nodeLine = regexp.MustCompile(`(?m)^ +(\d) +process (\d+), http://(\S+) `)

// TestDevRunsAClusterWhoseTurnsOutliveANode starts a turn on a cluster of three, kills the node that runs it, and reads the
// turn to its end through the balancer.
func TestDevRunsAClusterWhoseTurnsOutliveANode(t *testing.T) {
	t.Parallel()
	d := sitetest.NewDevelopment(t, "TURNSTONE_LIMIT_SIGNIN=1000/1m burst 1000", "TURNSTONE_LIMIT_CHAT=1000/1m burst 1000")
	d.Environment = append(d.Environment, "TURNSTONE_INTERNAL_LISTEN="+sitetest.FreeAddresses(t, 3))
	p := d.Build.Start(t, d.Environment, "dev", "--nodes", "3")
	p.AwaitStdout("Kill one of these processes")
	nodes := nodeLine.FindAllStringSubmatch(p.Stdout(), -1)
	if len(nodes) != 3 {
		t.Fatalf("%d nodes were printed:\n%s", len(nodes), p.Stdout())
	}
	u := sitetest.NewUser(t, "http://"+d.Public)
	defer u.Ledger.Plan()()
	s := u.Live(t, u.NewConversation(t), "[[script tokens=600 interval=20ms]]")
	pid := processOf(t, d, nodes, s.Turn)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var events []sitetest.Event
	if err := u.Watch(sitetest.Within(t, sitetest.HangGuard), s.Turn, nil, func(e sitetest.Event) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	end := events[len(events)-1].Payload().(*protocol.TurnFinished)
	if end.Status != protocol.TurnCompleted || sitetest.CountKind(events, "turn.recovering") != 1 || end.LastSequence != int64(len(events)) {
		t.Errorf("the turn ended %s after %d events, %d of them takeovers", end.Status, len(events), sitetest.CountKind(events, "turn.recovering"))
	}
	p.Signal(syscall.SIGINT)
	if code := p.Exit(); code != 0 || !strings.Contains(p.Stdout(), "Turnstone has stopped.") {
		t.Errorf("dev ended with %d", code)
	}
	for _, node := range nodes {
		if pid, _ := strconv.Atoi(node[2]); syscall.Kill(pid, 0) == nil {
			t.Errorf("node %s still runs", node[1])
		}
	}
}

// processOf returns the process of the node that runs a turn. Other turns, of the demonstration, may run too.
func processOf(t *testing.T, d *sitetest.DevInstallation, nodes [][]string, turn string) int {
	t.Helper()
	ask := func(internal string, into any, arguments ...string) {
		code, stdout, stderr := sitetest.Finish(t, append(d.Environment, "TURNSTONE_INTERNAL_LISTEN="+internal), arguments...)
		if err := json.Unmarshal([]byte(stdout), into); err != nil || code != 0 {
			t.Fatalf("%v: %d, %v, %s", arguments, code, err, stderr)
		}
	}
	var shown struct {
		Node string `json:"node"`
	}
	ask(nodes[0][3], &shown, "turn", "show", turn)
	for _, node := range nodes {
		var list struct {
			Nodes []struct {
				NodeID     string `json:"node_id"`
				Responding bool   `json:"responding"`
			} `json:"nodes"`
		}
		ask(node[3], &list, "node", "list", "--json")
		for _, one := range list.Nodes {
			if one.Responding && one.NodeID == shown.Node {
				pid, err := strconv.Atoi(node[2])
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatalf("none of the nodes is %s, which runs the turn", shown.Node)
	return 0
}
