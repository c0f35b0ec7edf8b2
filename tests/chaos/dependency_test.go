package chaos

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"turnstone/cmd/turnstone/cluster"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/providers/embedded/embeddedtest"
)

// planAll declares a fault of what all nodes need.
func (r *run) planAll() (over func()) {
	var overs []func()
	for _, n := range r.nodes {
		overs = append(overs, n.plan())
	}
	return func() {
		for _, n := range r.nodes {
			r.awaitReady(n)
		}
		for _, over := range overs {
			over()
		}
	}
}

func (r *run) awaitReady(n *node) {
	sitetest.Eventually(r.t, n.name+" is ready again", func() bool { status, _ := sitetest.Readiness(r.t, n.internal); return status == http.StatusOK })
}

// allNodes returns the identifiers of all nodes.
func (r *run) allNodes() (ids []uuid.UUID) {
	for _, n := range r.nodes {
		_, id := n.current()
		ids = append(ids, id)
	}
	return ids
}

// restartPostgres restarts Postgres, or lets it crash and recover.
func (r *run) restartPostgres() {
	r.t.Helper()
	stop := r.postgres.Stop
	if r.random.IntN(2) == 0 {
		stop = r.postgres.StopAtOnce
	}
	r.breakPostgres("Postgres restarted", func() {
		ctx := sitetest.Within(r.t, sitetest.HangGuard)
		if err := stop(ctx); err != nil {
			r.t.Error(err)
		}
		if err := r.postgres.Start(ctx); err != nil {
			r.t.Fatal(err)
		}
	})
}

// failover kills Postgres while turns run and clients write, and promotes a synchronous standby. Every commit that was acknowledged
// had waited for the standby, so nothing may be lost. The standby is new, and no request is refused while it is created and
// while commits begin to wait for it.
func (r *run) failover() {
	r.t.Helper()
	standby := r.newStandby()
	embeddedtest.Synchronise(r.t, r.postgres)
	r.last()
	r.breakPostgres("failover to a standby", func() { r.failOver(standby) })
}

// breakPostgres performs a fault of Postgres. No node may end, and none may lose a turn: all were cut off alike.
func (r *run) breakPostgres(kind string, fault func()) {
	r.t.Helper()
	before := map[uuid.UUID]int32{}
	for _, turn := range r.liveTurns() {
		before[turn.Turn] = turn.Epoch
	}
	over := r.planAll()
	r.during(kind, fault, r.allNodes()...)
	over()
	for _, turn := range r.liveTurns() {
		if epoch, known := before[turn.Turn]; known && turn.Epoch != epoch {
			r.t.Errorf("%s, and turn %s was taken over", kind, turn.Turn)
		}
	}
	r.checkRunning()
	r.quiet()
}

// checkRunning checks that no node has ended.
func (r *run) checkRunning() {
	r.t.Helper()
	for _, n := range r.nodes {
		if p, _ := n.current(); p.HasEnded() {
			r.t.Errorf("%s has ended", n.name)
		}
	}
}

// client returns a client of the Redis that all nodes use.
func (r *run) client() *redis.Client {
	options, err := redis.ParseURL(embeddedtest.Redis(r.t).URL())
	if err != nil {
		r.t.Fatal(err)
	}
	return redis.NewClient(options)
}

// flushRedis deletes everything that is in Redis. No request may be refused.
func (r *run) flushRedis() {
	r.t.Helper()
	client := r.client()
	defer func() { _ = client.Close() }()
	r.during("Redis flushed", func() {
		if err := client.FlushAll(sitetest.Within(r.t, sitetest.HangGuard)).Err(); err != nil {
			r.t.Error(err)
		}
	}, r.allNodes()...)
	r.quiet()
}

// restartRedis restarts Redis, which loses everything that is in it.
func (r *run) restartRedis() {
	r.t.Helper()
	over := r.planAll()
	r.during("Redis restarted", func() {
		if err := embeddedtest.Redis(r.t).Restart(sitetest.Within(r.t, sitetest.HangGuard)); err != nil {
			r.t.Fatal(err)
		}
	}, r.allNodes()...)
	over()
	r.checkRunning()
	r.quiet()
}

// demoteRedis makes Redis the replica of a server that does not exist, for a while: it refuses every write.
func (r *run) demoteRedis() {
	r.t.Helper()
	client := r.client()
	defer func() { _ = client.Close() }()
	follow := func(host, port string) {
		if err := client.ReplicaOf(sitetest.Within(r.t, sitetest.HangGuard), host, port).Err(); err != nil {
			r.t.Error(err)
		}
	}
	over := r.planAll()
	r.during("Redis read-only", func() {
		follow("127.0.0.1", "1")
		r.last()
		follow("no", "one")
	}, r.allNodes()...)
	over()
	r.checkRunning()
	r.quiet()
}

// partition cuts the connections between two nodes: those of one to the other, or both ways. Their turns continue, and so do all
// readers; only commands through one of the two may have to wait, because their turn may run on the other one.
func (r *run) partition() {
	r.t.Helper()
	order := r.random.Perm(nodeCount)
	one, other := r.nodes[order[0]], r.nodes[order[1]]
	kind, ways := "partition, one way", [][2]*node{{one, other}}
	if r.random.IntN(2) == 0 {
		kind, ways = "partition, both ways", append(ways, [2]*node{other, one})
	}
	overs := []func(){one.commands.Plan(), other.commands.Plan()}
	var repairs []func()
	var cut atomic.Int32
	for _, way := range ways {
		from, _ := way[0].current()
		repairs = append(repairs, way[1].peers.KillFrom(func(client net.Addr) bool {
			connected := from.Connected(client)
			if connected {
				cut.Add(1)
			}
			return connected
		}))
	}
	_, first := one.current()
	_, second := other.current()
	r.during(kind, r.last, first, second)
	if cut.Load() == 0 {
		r.t.Errorf("no connection between %s and %s was cut", one.name, other.name)
	}
	for _, repair := range repairs {
		repair()
	}
	for _, over := range overs {
		over()
	}
	r.checkRunning()
	r.quiet()
}

// rotateCertificates replaces the authority of the nodes and then their certificates, and breaks the connections between them after
// each step. No request is refused.
func (r *run) rotateCertificates() {
	r.t.Helper()
	fresh := r.t.TempDir()
	for _, n := range r.nodes {
		if _, err := cluster.Issue(cluster.Request{Folder: fresh, Node: n.name, Days: 2}); err != nil {
			r.t.Fatal(err)
		}
	}
	read := func(folder, name string) []byte {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			r.t.Fatal(err)
		}
		return text
	}
	replace := func(name string, text []byte) {
		path := filepath.Join(r.certs, name)
		if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
			r.t.Fatal(err)
		}
	}
	reconnect := func() {
		for _, n := range r.nodes {
			n.peers.Cut()
		}
	}
	const authority = "ca.crt"
	r.during("certificates rotated", func() {
		replace(authority, append(read(r.certs, authority), read(fresh, authority)...))
		reconnect()
		for _, n := range r.nodes {
			replace(n.name+".key", read(fresh, n.name+".key"))
			replace(n.name+".crt", read(fresh, n.name+".crt"))
		}
		reconnect()
		replace(authority, read(fresh, authority))
		reconnect()
		r.last()
	}, r.allNodes()...)
	r.quiet()
}
