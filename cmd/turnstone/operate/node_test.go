package operate

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"turnstone/cmd/turnstone/admin"
	"turnstone/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "vG3x0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd"

// script implements admin.Nodes: each list is the next one of a script.
type script struct {
	lists   [][]admin.Node
	drained []string
	ended   func() // called instead of a list after the last one
}

func (s *script) ListNodes(context.Context) ([]admin.Node, error) {
	if len(s.lists) == 0 {
		s.ended()
		return nil, protocol.Errorf(protocol.CodeUnavailable, "the script has ended")
	}
	next := s.lists[0]
	s.lists = s.lists[1:]
	return next, nil
}

func (s *script) DrainNode(_ context.Context, node protocol.NodeID) error {
	s.drained = append(s.drained, node.String())
	return nil
}

// programOf returns a program whose internal listener serves the script. It closes the listener when the script has ended.
func programOf(t *testing.T, s *script) (p *Program, stdout *bytes.Buffer) {
	t.Helper()
	token, err := admin.Token([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(admin.New(admin.Config{
		Health: http.NotFoundHandler(), Metrics: prometheus.NewRegistry(), Nodes: s, Token: token, Log: zap.NewNop(),
	}))
	server.Start()
	t.Cleanup(server.Close)
	s.ended = func() {
		_ = server.Listener.Close()
		panic(http.ErrAbortHandler)
	}
	stdout = &bytes.Buffer{}
	return &Program{Stdout: stdout, Environment: map[string]string{
		"TURNSTONE_INTERNAL_LISTEN": server.Listener.Addr().String(), "TURNSTONE_SECRET": secret,
	}}, stdout
}

func TestDrainWaitsUntilTheReportedLoadIsFinal(t *testing.T) {
	one, two := protocol.NewNodeID().String(), protocol.NewNodeID().String()
	node := func(id string, live int, renewals int64) admin.Node {
		return admin.Node{NodeID: id, State: admin.NodeDraining, LiveTurns: live, Renewals: renewals, Responding: id == one}
	}
	for _, c := range []struct {
		name  string
		drain nodeDrain
		lists [][]admin.Node
		want  []string // in the output, in this order
		left  int      // lists that are not read
	}{
		{
			"without a wait",
			nodeDrain{},
			[][]admin.Node{{node(one, 3, 7)}, {node(one, 3, 7)}},
			[]string{one + " drains"},
			1,
		},
		{
			"a node that has no live turns before it noticed the request, and a turn after that",
			nodeDrain{Wait: true},
			[][]admin.Node{{node(one, 0, 7)}, {node(one, 0, 7)}, {node(one, 1, 8)}, {node(one, 1, 9)}, {node(one, 0, 10)}, {}},
			[]string{one + " drains", "live turns: 0\n", "live turns: 1\n", one + " has no live turns"},
			1,
		},
		{
			"another node, which is gone then",
			nodeDrain{Node: two, Wait: true},
			[][]admin.Node{{node(one, 0, 7), node(two, 2, 3)}, {node(one, 0, 7), node(two, 2, 3)}, {node(one, 0, 8)}},
			[]string{two + " drains", "live turns: 2\n", two + " is gone"},
			0,
		},
		{
			"the responding node, which is stopped then",
			nodeDrain{Wait: true},
			[][]admin.Node{{node(one, 2, 7)}, {node(one, 2, 7)}},
			[]string{one + " drains", "live turns: 2\n", one + " is gone"},
			0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{lists: c.lists}
			p, stdout := programOf(t, s)
			if err := c.drain.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			rest := stdout.String()
			for _, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is not in %q", want, stdout)
				}
				rest = after
			}
			want := one
			if c.drain.Node != "" {
				want = c.drain.Node
			}
			if len(s.drained) != 1 || s.drained[0] != want || len(s.lists) != c.left {
				t.Errorf("drained %v, %d lists are left", s.drained, len(s.lists))
			}
		})
	}
}

func TestAWaitFailsIfTheNodeThatRespondsStopsAndAnotherOneDrains(t *testing.T) {
	one, two := protocol.NewNodeID().String(), protocol.NewNodeID().String()
	nodes := []admin.Node{{NodeID: one, Responding: true}, {NodeID: two, LiveTurns: 2}}
	p, _ := programOf(t, &script{lists: [][]admin.Node{nodes, nodes}})
	if err := (&nodeDrain{Node: two, Wait: true}).Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "TURNSTONE_INTERNAL_LISTEN") {
		t.Errorf("%v", err)
	}
	p, _ = programOf(t, &script{lists: [][]admin.Node{nodes}})
	if err := (&nodeDrain{Node: protocol.NewNodeID().String()}).Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("an unknown node: %v", err)
	}
}

func TestNodesAreATableWithShortBuilds(t *testing.T) {
	out := &bytes.Buffer{}
	at := time.Date(2026, 11, 25, 18, 52, 2, 0, time.UTC)
	err := PrintNodes(out, []admin.Node{
		{NodeID: "one", Address: "10.0.0.7:7946", State: admin.NodeRunning, LiveTurns: 12, Capacity: 1000, Build: "d151b80d9aa652e5973d638391643fb328db9bfd", StartedAt: at},
		{NodeID: "two", State: admin.NodeDraining, StartedAt: at, Responding: true},
	})
	const want = `NODE  ADDRESS        STATE     LIVE TURNS  CAPACITY  BUILD         STARTED
one   10.0.0.7:7946  running   12          1000      d151b80d9aa6  2026-11-25T18:52:02Z
two   -              draining  0           no limit  -             2026-11-25T18:52:02Z  this node
`
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if got := strings.Join(lines, "\n"); got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}
