package crash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/proxytest"
	"turnstone/protocol/verify"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

var (
	crashFor     = flag.Duration("crash.for", 0, "duration of the run; 0: one round, which ends as soon as it has its minimums")
	crashSeed    = flag.Uint64("crash.seed", 0, "seed of every fault and of every choice of a client; 0: random")
	crashBundle  = flag.String("crash.bundle", "", "folder of a failed run below tmp/crash, whose seed is used")
	crashPublish = flag.Bool("crash.publish", false, "write reliability.json and the table in docs/reliability.md")
	crashRound   = flag.Duration("crash.round", time.Minute, "duration of a round, after which everything is checked")
	crashOnly    = flag.String("crash.only", "", "inject only faults whose name matches this regular expression; such a run has no minimums")
	crashVerbose = flag.Bool("crash.verbose", false, "print progress")
)

const (
	accountCount  = 4
	clientsEach   = 2
	conversations = 3           // per account and round
	restTimeout   = time.Minute // I4: how long the service may take to come to rest after the last fault
	restPoll      = 100 * time.Millisecond
	// databaseTimeout is how long a connection of the tester may be used: for the wait until everything is at rest, and then
	// to read what has not come to rest.
	databaseTimeout = 2 * restTimeout
	restSlack       = 10 // I15: how many more goroutines and descriptors than before are allowed
	redisPool       = 32 // connections to Redis that its pool keeps open; no metric reports them
	bundleMost      = 40 // violations of each kind that are printed
	statusTimeout   = 2 * time.Second
	// overtimeGuard ends a round that never reaches its minimums. On a slow host computer one has taken more than three minutes.
	overtimeGuard = 6 * sitetest.HangGuard
	claimSlack    = time.Second // at most, between the service's query of a transaction and its log line about it
)

// writeLimit is so low that the flood exceeds it.
var writeLimit = limit{Burst: 120, PerSecond: 20}

// run is one run of TestCrash.
type run struct {
	t          *testing.T
	seed       uint64
	length     time.Duration // at most, if crashFor is 0
	folder     string        // of the bundle
	began      time.Time
	site       *sitetest.Site
	database   string // URL for the superuser
	fleet      *fleet
	front      *proxytest.Proxy
	injector   *injector
	standIns   *standIns
	notes      *findings
	accounts   []*accountState      // the flood uses the last one
	queues     []*accountState      // the accounts of the queue clients
	research   []*accountState      // the accounts of the research clients
	data       []*accountState      // the accounts with imports
	accountIDs []protocol.AccountID // of the accounts with turns
	imports    []string             // that were acknowledged
	baseline   map[string]float64

	result result
}

// TestCrash is described in doc.go.
func TestCrash(t *testing.T) {
	a := newRun(t)
	for left := a.length; left > 0; left -= *crashRound {
		if err := a.round(min(left, *crashRound)); err != nil {
			a.notes.violation(badResponse, "the run cannot continue: %v", err)
		}
		if !a.notes.clean() {
			break
		}
	}
	if *crashFor > 0 { // make test does not wait for them
		a.checkInterruptedJobs()
	}
	a.checkCommits()
	if *crashOnly == "" { // other runs are about single faults
		a.checkMinimums(a.length)
	}
	a.finish()
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	if *crashBundle != "" {
		text, err := os.ReadFile(filepath.Join(*crashBundle, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		seed, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return seed
	}
	if *crashSeed != 0 {
		return *crashSeed
	}
	return rand.Uint64() >> 32
}

func newRun(t *testing.T) *run {
	t.Helper()
	a := &run{t: t, seed: seedOf(t), length: cmp.Or(*crashFor, *crashRound), began: time.Now(), notes: newFindings(), result: result{Faults: map[string]int{}}}
	root, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	a.result.root = filepath.Dir(strings.TrimSpace(string(root)))
	a.folder = filepath.Join(a.result.root, "tmp", "crash", strconv.FormatUint(a.seed, 10))
	if err := errors.Join(os.RemoveAll(a.folder), os.MkdirAll(a.folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.folder, "seed"), fmt.Appendln(nil, a.seed), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d", a.seed)
	a.standIns = newStandIns()
	t.Cleanup(a.standIns.close)
	model := proxytest.New(t, strings.TrimSuffix(strings.TrimPrefix(a.standIns.model.URL, "http://"), "/v1"), proxytest.Options{})
	a.front = proxytest.New(t, "", proxytest.Options{})
	a.site = sitetest.NewSite(t,
		"TURNSTONE_LOG_LEVEL=info", "TURNSTONE_BASE_URL=http://"+a.front.Address, "TURNSTONE_DRAIN_GRACE=300ms",
		fmt.Sprintf("TURNSTONE_LIMIT_WRITES=%.0f/1m burst %d", writeLimit.PerSecond*60, writeLimit.Burst),
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=http://"+model.Address+"/v1", "TURNSTONE_MODEL_BALANCED=stand-in",
		"TURNSTONE_FAILPOINT_EFFECT_URL="+a.standIns.effect.URL, "TURNSTONE_SEARCH_PROVIDERS=bundled", "TURNSTONE_WEB_SEARCHES_PER_DAY=0", "TURNSTONE_WEB_PAGES_PER_DAY=0")
	direct := a.variable("DATABASE_URL")
	cutter := pgtest.NewCutter(t, direct)
	a.site.Environment = append(a.site.Environment, "DATABASE_URL="+cutter.URL)
	postgres := embeddedtest.Postgres(t)
	name := direct[strings.LastIndex(direct[:strings.Index(direct, "?")], "/")+1 : strings.Index(direct, "?")]
	a.database = postgres.DSN(embedded.Superuser, name)
	a.fleet = newFleet(t, a.site, a.front, a.folder, a.notes)
	a.fleet.truth = a.queryStatus
	t.Cleanup(a.fleet.stop)
	a.injector = &injector{
		fleet: a.fleet, postgres: postgres, redis: embeddedtest.Redis(t), cutter: cutter, model: model, notes: a.notes, clock: a.clock,
	}
	if _, err := a.fleet.startIn(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	a.setUpAccounts()
	return a
}

func (a *run) variable(name string) string {
	for _, one := range slices.Backward(a.site.Environment) {
		if value, found := strings.CutPrefix(one, name+"="); found {
			return value
		}
	}
	a.t.Fatalf("%s is not set", name)
	return ""
}

func (a *run) clock() time.Duration { return time.Since(a.began) }

func (a *run) progress(format string, args ...any) {
	if *crashVerbose {
		fmt.Printf("%s "+format+"\n", append([]any{a.clock().Round(time.Millisecond)}, args...)...)
	}
}

// setUpAccounts creates the accounts and records the metrics of the idle service as the baseline.
func (a *run) setUpAccounts() {
	t := a.t
	for range accountCount + 1 {
		a.accounts = append(a.accounts, a.newAccount(clientsEach))
	}
	for range queueAccounts {
		a.queues = append(a.queues, a.newAccount(1))
	}
	for range researchAccounts {
		a.research = append(a.research, a.newAccount(1))
	}
	for _, account := range a.everyone() {
		a.accountIDs = append(a.accountIDs, account.id)
	}
	for range dataAccounts {
		a.data = append(a.data, a.newAccount(1))
	}
	a.warmUp()
	a.closeIdle()
	var err error
	sitetest.Eventually(t, "the metrics can be read", func() bool {
		a.baseline, err = a.fleet.metrics()
		return err == nil && a.baseline["turnstone_turns_live"] == 0
	})
	a.progress("at rest: %.0f goroutines, %.0f descriptors", a.baseline["go_goroutines"], a.baseline["process_open_fds"])
}

// newAccount creates an account that is signed in at some devices.
func (a *run) newAccount(devices int) *accountState {
	u := sitetest.NewUser(a.t, "http://"+a.front.Address)
	account := &accountState{users: []*sitetest.User{u}}
	for range devices - 1 {
		account.users = append(account.users, u.Device(a.t))
	}
	var session struct {
		Account struct {
			ID protocol.AccountID `json:"account_id"`
		} `json:"account"`
	}
	u.Get(a.t, "/auth/session", &session)
	account.id = session.Account.ID
	return account
}

// everyone returns all accounts with turns.
func (a *run) everyone() []*accountState { return slices.Concat(a.accounts, a.queues, a.research) }

// warmUp sends as many concurrent requests as the clients will, so that every pool reaches its size before the baseline
// is measured.
func (a *run) warmUp() {
	var all sync.WaitGroup
	for _, account := range a.accounts {
		u := account.users[0]
		account.conversations = []string{u.NewConversation(a.t)}
		for range floodWorkers {
			all.Go(func() {
				for range 4 {
					_, _ = u.Request(a.t.Context(), http.MethodPut, "/conversations/"+account.conversations[0]+"/draft", map[string]any{"content": "warm"})
				}
			})
		}
	}
	all.Wait()
	for _, account := range a.accounts {
		all.Go(func() {
			stream, _, err := account.users[0].TryChat(a.t.Context(), sitetest.NewChatBody(fmt.Sprintf("T%012x words=3 effect=1", 0)))
			if err == nil && stream != nil {
				_ = stream.Drain(nil)
				stream.Close()
			}
		})
	}
	all.Wait()
}

// closeIdle closes unused connections.
func (a *run) closeIdle() {
	for _, account := range a.everyone() {
		for _, u := range account.users {
			u.HTTP.CloseIdleConnections()
		}
	}
	a.injector.model.Cut()
}

// round runs clients and faults for a time, then waits until the service is at rest and checks everything.
func (a *run) round(length time.Duration) error {
	number := a.result.Rounds + 1
	witness := verify.NewWitness()
	since, err := a.prepare(witness)
	if err != nil {
		return err
	}
	h, err := newHistory(filepath.Join(a.folder, fmt.Sprintf("history-%03d.jsonl", number)))
	if err != nil {
		return err
	}
	if number == 1 || *crashVerbose {
		a.progress("round %d", number)
	}
	data, victims := a.dataClients(number), a.newVictims()
	a.notes.beginRound()
	began, over, watch := time.Now(), a.plan(victims), newQueueWatch()
	err = a.work(number, length, h, watch, data, victims)
	for _, c := range data {
		c.endFeed(h)
	}
	operations, closed := h.close()
	if err = errors.Join(err, closed); err != nil {
		return err
	}
	a.result.Rounds++
	a.result.Seconds += time.Since(began).Seconds()
	faults, outages := a.injector.take()
	a.result.count(faults, operations, witness.Reads())
	settled, settle := a.settle(number)
	stored, err := a.atRest(since, victims)
	if settle(); err != nil {
		return err
	}
	operations = append(operations, settled.operations...)
	asked, effects := a.standIns.take()
	over() // no faults from here on
	a.readAll(h)
	a.watch(sitetest.NewWitness(a.t)) // what follows is not in the snapshot
	a.useWithoutFaults(number)
	all := &record{
		Operations: operations, Witness: witness, Views: h.views, Asked: asked, Effects: effects, Outages: outages, Stored: stored,
		Limit: writeLimit,
	}
	check(all, a.notes)
	a.result.store(stored, effects)
	for _, o := range operations {
		if o.Kind == opImport && o.acknowledged() {
			a.imports = append(a.imports, o.ID)
		}
	}
	a.result.countQueues(all, watch.hits(faults))
	a.progress("at rest after %s", time.Since(began).Round(time.Millisecond)-length)
	a.progress("round %d: %d faults, %d operations, %d turns, %v", number, len(faults), len(operations), len(stored.Turns), a.notes.violations)
	if a.notes.clean() {
		a.forget(number)
	}
	return nil
}

// settle decides the approvals that still wait, until it is ended. Without that, their turns would not come to rest.
func (a *run) settle(number int) (settled *history, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	settled = &history{}
	var running sync.WaitGroup
	for n, account := range a.accounts {
		c := &client{
			name: fmt.Sprint("settle.", n), user: account.users[0], account: account, random: a.random(number, 3000+n), history: settled,
			notes: a.notes, clock: a.clock, ctx: ctx,
		}
		running.Go(func() {
			_ = clocktest.Poll(ctx, restPoll, func() bool { // until end
				for _, approval := range c.pendingApprovals() {
					c.decideOn(&approval)
				}
				return false
			})
		})
	}
	return settled, func() { cancel(); running.Wait() }
}

// prepare creates the conversations of a round, whose readers have a witness. It returns the time of the database before
// their creation.
func (a *run) prepare(witness *verify.Witness) (since time.Time, err error) {
	err = a.withDatabase(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&since)
	})
	if err != nil {
		return since, err
	}
	a.watch(witness)
	for n, account := range a.everyone() {
		account.conversations, account.turns, account.versions = nil, nil, map[string]int64{}
		count := conversations
		switch {
		case n >= len(a.accounts)+len(a.queues):
			count = researchEach
		case n >= len(a.accounts):
			count = queuesEach
		}
		for range count {
			account.conversations = append(account.conversations, account.users[0].NewConversation(a.t))
		}
	}
	a.standIns.take()
	return since, nil
}

// watch makes a witness record what readers see from now on.
func (a *run) watch(witness *verify.Witness) {
	for _, account := range a.everyone() {
		for _, user := range account.users {
			user.Witness = witness
		}
	}
}

// work runs clients and faults. It returns when all clients have the outcome of their last request and all servers run
// again. A round of a minute or more lasts until its minimums are reached: on a slow host computer everything takes longer. If the
// length of the run is not given, it also ends as soon as they are.
func (a *run) work(number int, length time.Duration, h *history, watch *queueWatch, data []*dataClient, victims []*accountState) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	planned, cancelPlanned := context.WithTimeout(ctx, length)
	defer cancelPlanned()
	overtime := planned
	if length >= time.Minute {
		var cancel context.CancelFunc
		overtime, cancel = context.WithTimeout(ctx, overtimeGuard)
		defer cancel()
	}
	var clients, injecting sync.WaitGroup
	a.startClients(ctx, number, h, &clients)
	enough, quiet := a.minimums(h, watch), time.Now().Add(length-queueQuiet)
	if *crashFor == 0 {
		injecting.Go(func() { a.endEarly(planned, cancelPlanned, enough) })
	}
	for n, queue := range a.queueClients(number) {
		queue.history, queue.ctx, queue.watch, queue.random = h, ctx, watch, a.random(number, 2000+n)
		clients.Go(func() {
			queue.run(func() bool { return planned.Err() == nil && time.Now().Before(quiet) || !enough() })
		})
	}
	for n, c := range a.researchClients(number) {
		c.history, c.ctx, c.random = h, ctx, a.random(number, 4000+n)
		clients.Go(c.run)
	}
	for n, c := range data {
		c.history, c.ctx, c.random = h, ctx, a.random(number, 5000+n)
		clients.Go(c.run)
	}
	erases := &eraseClient{&client{
		name: fmt.Sprint(number, ".erase"), random: a.random(number, 6000), history: h, notes: a.notes, clock: a.clock, ctx: ctx,
	}, victims}
	clients.Go(erases.run)
	failed := make(chan error, len(lanes))
	for n, l := range lanes {
		if l.kinds = only(l.kinds); len(l.kinds) == 0 {
			continue
		}
		injecting.Go(func() {
			if err := a.injector.run(planned, overtime, l, enough, a.random(number, 1000+n)); err != nil {
				failed <- err
				stop()
			}
		})
	}
	<-planned.Done() // also a round without faults lasts as long as planned
	injecting.Wait()
	stop()
	clients.Wait()
	close(failed)
	return <-failed
}

// endEarly ends the planned time of a round when its minimums are reached and every kind of fault was injected.
func (a *run) endEarly(planned context.Context, end func(), enough func() bool) {
	_ = clocktest.Poll(planned, restPoll, func() bool { // or until the planned time is over
		kinds := map[string]bool{}
		for _, f := range a.injector.injected() {
			kinds[f.Kind] = true
		}
		missing := slices.ContainsFunc(lanes, func(l lane) bool {
			return slices.ContainsFunc(only(l.kinds), func(kind faultKind) bool { return !kinds[kind.name] })
		})
		if missing || !enough() {
			return false
		}
		end()
		return true
	})
}

// random returns the random numbers of a client or lane in a round.
func (a *run) random(round, who int) *rand.Rand {
	return rand.New(rand.NewPCG(a.seed, uint64(round)<<16|uint64(who)))
}

// minimums returns a function that reports whether a round has reached its minimums.
func (a *run) minimums(h *history, watch *queueWatch) (enough func() bool) {
	return func() bool {
		return h.acknowledgedWrites() >= leastAcknowledged && a.notes.adoptedTurns() >= leastTakeovers &&
			h.count(opDecide) >= leastDecided && h.count(opTask) >= leastTasks &&
			h.count(opShare) >= leastShares && h.count(opFile) >= leastFiles &&
			h.count(opImport) >= leastImports && h.count(opBranch)+h.count(opFork) >= leastBranches && h.count(opErase) >= leastErased &&
			watch.drainedQueues() >= leastQueues && watch.hits(a.injector.injected()) >= leastQueueFaults
	}
}

// startClients starts all clients of a round except those of the queues. They work until ctx ends.
func (a *run) startClients(ctx context.Context, number int, h *history, running *sync.WaitGroup) {
	client := func(account, n int) *client {
		return &client{
			name: fmt.Sprintf("%d.%d.%d", number, account, n), user: a.accounts[account].users[n%clientsEach], account: a.accounts[account],
			random: a.random(number, 1+account*clientsEach+n), history: h, notes: a.notes, clock: a.clock, ctx: ctx,
		}
	}
	for account := range accountCount {
		for n := range clientsEach {
			c := client(account, n)
			for _, conversation := range c.account.conversations {
				c.lookAt(conversation) // the initial state of its draft and its title
			}
			running.Go(c.run)
		}
	}
	running.Go(client(accountCount, 0).flood)
}

// withDatabase calls do with a connection to the database as its superuser.
func (a *run) withDatabase(do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, a.database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return do(ctx, conn)
}

const unfinishedSQL = `
select (select count(*) from turns where not terminal) + (select count(*) from follow_ups where state = 'queued')
     + (select count(*) from conversations where live_turn_id is not null)
     + (select count(*) from research_tasks where state in ('queued', 'running', 'cancelling'))`

// atRest waits until every turn has ended and the service has released its resources.
func (a *run) atRest(since time.Time, victims []*accountState) (stored *snapshot, err error) {
	began := time.Now()
	a.closeIdle()
	resting, cancel := context.WithTimeout(context.Background(), restTimeout)
	defer cancel()
	err = a.withDatabase(func(ctx context.Context, conn *pgx.Conn) (err error) {
		_ = clocktest.Poll(resting, restPoll, func() bool { // the checker reports what has not ended
			var unfinished int
			err = conn.QueryRow(ctx, unfinishedSQL).Scan(&unfinished)
			return err != nil || unfinished == 0
		})
		if err != nil {
			return err
		}
		if stored, err = readSnapshot(ctx, conn, a.accountIDs, since); err == nil {
			err = stored.readData(ctx, conn, a.data, victims)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a.result.Rest = max(a.result.Rest, time.Since(began).Seconds())
	a.checkRest(resting)
	return stored, nil
}

// checkRest checks the process against I15.
func (a *run) checkRest(resting context.Context) {
	var left []string
	var err error
	waited := clocktest.Poll(resting, restPoll, func() bool {
		a.closeIdle()
		var now map[string]float64
		now, err = a.fleet.metrics()
		left = a.unreleased(now)
		return err == nil && len(left) == 0
	})
	if waited != nil {
		a.notes.violation(notAtRest, "%v %v", left, err)
		a.dumpGoroutines()
	}
}

// dumpGoroutines adds the goroutines of the service to the bundle.
func (a *run) dumpGoroutines() {
	client := &http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + a.fleet.addresses[a.fleet.serving().slot].internal + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		a.t.Log(err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, os.WriteFile(filepath.Join(a.folder, "goroutines"), text, 0o600)); err != nil {
		a.t.Log(err)
	}
}

func (a *run) unreleased(now map[string]float64) (found []string) {
	pooled := func(values map[string]float64) (sum float64) {
		for name, value := range values {
			if strings.HasPrefix(name, "turnstone_database_connections{") {
				sum += value
			}
		}
		return sum
	}
	for name, most := range map[string]float64{
		"turnstone_turns_live": 0, "turnstone_journal_waiting": 0,
		"go_goroutines":    a.baseline["go_goroutines"] + restSlack,
		"process_open_fds": a.baseline["process_open_fds"] - pooled(a.baseline) + pooled(now) + redisPool + restSlack,
	} {
		if now[name] > most {
			found = append(found, fmt.Sprintf("%s %.0f, at most %.0f", name, now[name], most))
		}
	}
	for name, value := range now {
		if strings.HasPrefix(name, "turnstone_database_connections{") && strings.Contains(name, `state="used"`) && value > 0 {
			found = append(found, fmt.Sprintf("%s %.0f", name, value))
		}
	}
	slices.Sort(found)
	return found
}

const statusSQL = `select coalesce(pg_xact_status($1::text::xid8), 'forgotten')`

// queryStatus queries the status of a transaction right after the service logged it. The query cannot wait, because
// after a crash of Postgres the identifier may belong to another transaction.
func (a *run) queryStatus(c claim) claim {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, a.database)
	if err != nil {
		return c
	}
	defer func() { _ = conn.Close(ctx) }()
	if conn.QueryRow(ctx, statusSQL, c.XID).Scan(&c.Truth) == nil {
		c.Asked = time.Now()
	}
	return c
}

// checkClaim compares the status that the service logged for a transaction with the actual one. A committed transaction
// stays committed after any crash. The status "aborted" can be compared only if Postgres has not crashed since; the
// histories check the effects of the transaction in any case.
func (a *run) checkClaim(ctx context.Context, conn *pgx.Conn, c claim) error {
	switch {
	case c.Status == "committed":
		if err := conn.QueryRow(ctx, statusSQL, c.XID).Scan(&c.Truth); err != nil {
			return err
		}
	case c.Asked.IsZero() || a.injector.crashed(c.At.Add(-claimSlack), c.Asked):
		a.result.CommitsPast++
		return nil
	}
	a.result.resolved(c.Truth == c.Status)
	if c.Truth != c.Status {
		a.notes.violation(untruthful, "transaction %s is %s, but the service logged %s at %s", c.XID, c.Truth, c.Status, c.At)
	}
	return nil
}

const appendSQL = `
select encode(sha256(frames), 'hex') from turn_events where turn_id = $1 and first_sequence = $2 and last_sequence = $3`

// checkAppend checks the service's claim that an append whose reply was lost is stored: exactly these bytes must be
// stored, not just any bytes at their position.
func (a *run) checkAppend(ctx context.Context, conn *pgx.Conn, one storedAppend) error {
	var id protocol.TurnID
	if err := id.UnmarshalText([]byte(one.Turn)); err != nil {
		return err
	}
	var hash string
	if err := conn.QueryRow(ctx, appendSQL, id, one.First, one.Last).Scan(&hash); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	right := hash != "" && hash == one.Hash
	a.result.resolved(right)
	if !right {
		a.notes.violation(untruthful, "%s: the service logged that its events %d to %d (%s) are stored, but the stored hash is %q", one.Turn, one.First, one.Last, one.Hash, hash)
	}
	return nil
}

// checkCommits checks the service's claims about transactions and appends whose replies were lost against the database.
func (a *run) checkCommits() {
	a.notes.queries.Wait()
	err := a.withDatabase(func(ctx context.Context, conn *pgx.Conn) error {
		for _, c := range a.notes.claims {
			if err := a.checkClaim(ctx, conn, c); err != nil {
				return err
			}
		}
		for _, one := range a.notes.appends {
			if err := a.checkAppend(ctx, conn, one); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		a.notes.violation(badResponse, "checking commits: %v", err)
	}
}

// forget removes the files of a round without violations.
func (a *run) forget(round int) {
	_ = os.Remove(filepath.Join(a.folder, fmt.Sprintf("history-%03d.jsonl", round)))
	logs, _ := filepath.Glob(filepath.Join(a.folder, "service-*.log")) // the pattern is well formed
	for _, log := range logs {
		if p := a.fleet.serving(); p == nil || p.log != log {
			_ = os.Remove(log)
		}
	}
}

// finish prints the result. With -crash.publish it publishes the result of a clean run. Any other run leaves a bundle.
func (a *run) finish() {
	a.result.fill(a)
	fmt.Print(a.result.text())
	if a.notes.clean() {
		a.fleet.stop()
		if err := os.RemoveAll(a.folder); err != nil {
			a.t.Error(err)
		}
		if *crashPublish {
			if err := a.result.publish(); err != nil {
				a.t.Error(err)
			}
		}
		return
	}
	a.dump()
	for _, kind := range slices.Sorted(maps.Keys(a.notes.violations)) {
		for n, text := range a.notes.violations[kind] {
			if n == bundleMost {
				a.t.Errorf("%s: and %d more", kind, len(a.notes.violations[kind])-n)
				break
			}
			a.t.Errorf("%s: %s", kind, text)
		}
	}
	a.t.Errorf("the bundle is in %s; to repeat the run: make replay SEED=%d", a.folder, a.seed)
}

// dump adds the database and the violations to the bundle.
func (a *run) dump() {
	var found bytes.Buffer
	for _, kind := range slices.Sorted(maps.Keys(a.notes.violations)) {
		for _, text := range a.notes.violations[kind] {
			fmt.Fprintf(&found, "%s: %s\n", kind, text)
		}
	}
	err := os.WriteFile(filepath.Join(a.folder, "violations"), found.Bytes(), 0o600)
	output, dumped := exec.Command("pg_dump", "--format=custom", "--file="+filepath.Join(a.folder, "database.dump"), a.database).CombinedOutput()
	if err != nil || dumped != nil {
		a.t.Logf("the bundle is incomplete: %v %v %s", err, dumped, output)
	}
}
