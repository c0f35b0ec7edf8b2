package main

import (
	"net/http"
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
	s := u.Live(t, u.NewConversation(t), "[[script tokens=200 interval=20ms]]")
	killed := false
	for _, node := range nodes {
		if _, metrics, err := sitetest.Fetch(t, http.MethodGet, "http://"+node[3]+"/metrics", ""); err != nil {
			t.Fatal(err)
		} else if !strings.Contains(metrics, "\nturnstone_turns_live 1\n") {
			continue
		}
		pid, err := strconv.Atoi(node[2])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed = true
	}
	if !killed {
		t.Fatal("no node runs the turn")
	}
	var events []sitetest.Event
	if err := u.Watch(sitetest.Within(t, sitetest.ProcessTimeout), s.Turn, nil, func(e sitetest.Event) { events = append(events, e) }); err != nil {
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
