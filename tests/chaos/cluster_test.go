package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/cluster"
	"turnstone/cmd/turnstone/sitetest"
)

const nodeCount = 3

// site is a cluster: nodes on one database.
type site struct {
	t     *testing.T
	site  *sitetest.Site
	nodes [nodeCount]*node
}

// node is a node of the cluster. Its process is replaced by the test; its addresses stay.
type node struct {
	base     string // of the API
	settings []string
	program  *sitetest.Build // that start runs

	mu      sync.Mutex
	process *sitetest.Process // guarded by mu
	id      uuid.UUID         // guarded by mu: of the current process
	usable  bool              // guarded by mu: clients may start requests on it
}

// newSite starts a cluster of nodes that run the given program, on a database with the schema of that program.
func newSite(t *testing.T, program *sitetest.Build) *site {
	t.Helper()
	installation := sitetest.NewHosted(t)
	installation.Build = program
	s := &site{t: t, site: sitetest.NewSiteOf(t, installation, "TURNSTONE_LOG_LEVEL=info", "TURNSTONE_DRAIN_GRACE=500ms")}
	certs := t.TempDir()
	for i := range s.nodes {
		name := "node-" + strconv.Itoa(i+1)
		if _, err := cluster.Issue(cluster.Request{Folder: certs, Node: name, Days: 2}); err != nil {
			t.Fatal(err)
		}
		public := sitetest.FreeAddress(t)
		s.nodes[i] = &node{base: "http://" + public, program: program, settings: append(slices.Clone(s.site.Environment),
			"TURNSTONE_DATA_DIR="+filepath.Join(s.site.Folder, name), "TURNSTONE_LISTEN="+public, "TURNSTONE_INTERNAL_LISTEN="+sitetest.FreeAddress(t), "TURNSTONE_CONTENT_LISTEN=off",
			"TURNSTONE_CLUSTER_LISTEN="+sitetest.FreeAddress(t), "TURNSTONE_FILES_DIR="+filepath.Join(s.site.Folder, "files"),
			"TURNSTONE_CLUSTER_CA_FILE="+filepath.Join(certs, "ca.crt"),
			"TURNSTONE_CLUSTER_CERT_FILE="+filepath.Join(certs, name+".crt"), "TURNSTONE_CLUSTER_KEY_FILE="+filepath.Join(certs, name+".key"),
		)}
	}
	for i := range s.nodes {
		s.start(i)
	}
	return s
}

// start starts the process of a node and waits until it serves.
func (s *site) start(i int) {
	s.t.Helper()
	n := s.nodes[i]
	p := n.program.Start(s.t, n.settings, "serve")
	p.AwaitLog("turnstone serves")
	var id uuid.UUID
	for line := range strings.Lines(p.Stderr()) {
		var entry struct {
			Message string    `json:"msg"`
			Node    uuid.UUID `json:"node"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "turnstone serves" {
			id = entry.Node
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process, n.id, n.usable = p, id, true
}

// withdraw makes clients start their requests on other nodes, as a load balancer does. It returns the current process.
func (s *site) withdraw(i int) (*sitetest.Process, uuid.UUID) {
	n := s.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.usable = false
	return n.process, n.id
}

// signal sends a signal to a node.
func (s *site) signal(p *sitetest.Process, signal syscall.Signal) {
	s.t.Helper()
	p.Signal(signal)
}

// pick returns a usable node, other than one in not.
func (s *site) pick(random *rand.Rand, not int) int {
	for {
		i := random.IntN(nodeCount)
		n := s.nodes[i]
		n.mu.Lock()
		usable := n.usable
		n.mu.Unlock()
		if usable && i != not {
			return i
		}
	}
}

// checkLogs searches the logs of all current processes for what no log may contain.
func (s *site) checkLogs() {
	for _, n := range s.nodes {
		p, _ := n.current()
		sitetest.CheckLog(s.t, p.Stderr())
	}
}

func (n *node) current() (*sitetest.Process, uuid.UUID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process, n.id
}

// owned is a live turn in the database.
type owned struct {
	Turn  uuid.UUID
	Owner *uuid.UUID
	Epoch int32
}

// liveTurns reads the live turns and their owners.
func (s *site) liveTurns() []owned {
	s.t.Helper()
	return query(s, pgx.RowToStructByPos[owned], `select turn_id, owner, owner_epoch from turns where not terminal`)
}

// query reads rows of all accounts, under the role of the engine.
func query[T any](s *site, row pgx.RowToFunc[T], sql string, args ...any) []T {
	s.t.Helper()
	ctx := sitetest.Within(s.t, sitetest.HangGuard)
	conn, err := pgx.Connect(ctx, s.site.Login)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "set role turnstone_engine"); err != nil {
		s.t.Fatal(fmt.Errorf("reading as the engine: %w", err))
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, row)
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}
