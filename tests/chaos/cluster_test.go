package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/cluster"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/proxytest"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

const nodeCount = 3

// site is a cluster: nodes on one database.
type site struct {
	t     *testing.T
	site  *sitetest.Site
	nodes [nodeCount]*node

	postgres  *embedded.Postgres // that the nodes use; a failover replaces it
	failovers atomic.Int32
	certs     string // folder with the certificates of the nodes and of their authority
}

// node is a node of the cluster. Its process is replaced by the test; its addresses stay. It reaches Postgres and Redis, and the
// others reach it, through proxies of its own.
type node struct {
	name, base, internal   string // base: of the API; internal: the address of the internal listener
	settings               []string
	program                *sitetest.Build // that start runs
	postgres, redis, peers *proxytest.Proxy
	// What clients met at this node, outside of its planned faults: commands to turns, and everything else.
	commands, others *sitetest.Ledger

	mu      sync.Mutex
	process *sitetest.Process // guarded by mu
	id      uuid.UUID         // guarded by mu: of the current process
	usable  bool              // guarded by mu: clients may start requests on it
}

// plan declares a fault of the node before it happens.
func (n *node) plan() (over func()) {
	commands, others := n.commands.Plan(), n.others.Plan()
	return func() { commands(); others() }
}

// newSite starts a cluster of nodes that run the given program, on a database with the schema of that program.
func newSite(t *testing.T, program *sitetest.Build) *site {
	t.Helper()
	postgres := embeddedtest.NewPrimary(t, "primary")
	installation := sitetest.NewHostedOn(t, postgres)
	installation.Build = program
	s := &site{t: t, postgres: postgres, site: sitetest.NewSiteOf(t, installation, "TURNSTONE_LOG_LEVEL=info", "TURNSTONE_DRAIN_GRACE=500ms")}
	s.certs = t.TempDir()
	socket := strings.TrimPrefix(embeddedtest.Redis(t).URL(), "unix://")
	for i := range s.nodes {
		name := "node-" + strconv.Itoa(i+1)
		if _, err := cluster.Issue(cluster.Request{Folder: s.certs, Node: name, Days: 2}); err != nil {
			t.Fatal(err)
		}
		n := &node{
			name: name, program: program, commands: sitetest.NewLedgerOf(t, name), others: sitetest.NewLedgerOf(t, name),
			postgres: proxytest.New(t, sitetest.PostgresSocket(t, s.site.Login), proxytest.Options{}),
			redis:    proxytest.New(t, socket, proxytest.Options{}),
		}
		public, inner := sitetest.FreeAddress(t), sitetest.FreeAddress(t)
		n.peers = proxytest.New(t, inner, proxytest.Options{})
		n.base, n.internal = "http://"+public, sitetest.FreeAddress(t)
		n.settings = append(slices.Clone(s.site.Environment),
			"DATABASE_URL="+sitetest.OverTCP(t, s.site.Login, n.postgres.Address), "REDIS_URL=redis://"+n.redis.Address+"/0",
			"TURNSTONE_DATA_DIR="+filepath.Join(s.site.Folder, name), "TURNSTONE_LISTEN="+public, "TURNSTONE_INTERNAL_LISTEN="+n.internal,
			"TURNSTONE_CONTENT_LISTEN=off", "TURNSTONE_FILES_DIR="+filepath.Join(s.site.Folder, "files"),
			"TURNSTONE_CLUSTER_LISTEN="+inner, "TURNSTONE_CLUSTER_ADVERTISE="+n.peers.Address,
			"TURNSTONE_CLUSTER_CA_FILE="+filepath.Join(s.certs, "ca.crt"),
			"TURNSTONE_CLUSTER_CERT_FILE="+filepath.Join(s.certs, name+".crt"), "TURNSTONE_CLUSTER_KEY_FILE="+filepath.Join(s.certs, name+".key"),
		)
		s.nodes[i] = n
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
	s.t.Cleanup(func() { sitetest.CheckLog(s.t, p.Stderr()) })
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

// withdraw makes clients start their requests on other nodes, as a load balancer does.
func (n *node) withdraw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.usable = false
}

// pick returns a usable node, other than one in not. At least two nodes are usable.
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

// newStandby starts a standby of the Postgres that the nodes use.
func (s *site) newStandby() *embedded.Postgres {
	s.t.Helper()
	return embeddedtest.NewStandby(s.t, s.postgres, fmt.Sprintf("standby_%d", s.failovers.Load()+1))
}

// failOver kills the Postgres that the nodes use and promotes its standby, which they then reach at the same addresses.
func (s *site) failOver(standby *embedded.Postgres) {
	s.t.Helper()
	s.failovers.Add(1)
	embeddedtest.FailOver(s.t, s.postgres, standby)
	s.postgres = standby
	for _, n := range s.nodes {
		n.postgres.Point(sitetest.PostgresSocket(s.t, standby.DSN(embedded.Superuser, "")))
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

// query reads rows of all accounts, as the superuser of the database.
func query[T any](s *site, row pgx.RowToFunc[T], sql string, args ...any) []T {
	s.t.Helper()
	ctx := sitetest.Within(s.t, sitetest.HangGuard)
	login, err := url.Parse(s.site.Login)
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, s.postgres.DSN(embedded.Superuser, strings.TrimPrefix(login.Path, "/")))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
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
