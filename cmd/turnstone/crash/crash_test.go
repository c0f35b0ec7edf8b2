package crash

import (
	"bytes"
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
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

var (
	crashFor     = flag.Duration("crash.for", time.Minute, "how long faults come")
	crashSeed    = flag.Uint64("crash.seed", 0, "decides every fault and every choice of a client; 0: a random one")
	crashBundle  = flag.String("crash.bundle", "", "a failed run's folder below tmp/crash, whose seed is taken")
	crashPublish = flag.Bool("crash.publish", false, "write reliability.json and the table in docs/reliability.md")
	crashRound   = flag.Duration("crash.round", time.Minute, "how long faults come until everything is checked")
	crashOnly    = flag.String("crash.only", "", "only faults whose name matches; such a run needs no minimum of anything")
	crashVerbose = flag.Bool("crash.verbose", false, "print what happens")
)

const (
	households    = 4 // accounts
	clientsEach   = 2
	conversations = 3           // of an account, and a round
	restPatience  = time.Minute // I4: how long it may take to come to rest after the last fault
	restPoll      = 100 * time.Millisecond
	restSlack     = 10 // I15: so much more than before may stay
	redisPool     = 32 // connections to Redis, which no metric tells of, are kept by their pool
	bundleMost    = 40 // violations that are printed
	truthPatience = 2 * time.Second
	claimSlack    = time.Second // between the service's look at a transaction and its line about it, at most
)

// writeLimit is low enough for the flood to meet it.
var writeLimit = limit{Burst: 120, PerSecond: 20}

// attack is a run.
type attack struct {
	t        *testing.T
	seed     uint64
	folder   string // of the bundle
	began    time.Time
	site     *sitetest.Site
	database string // of the superuser
	fleet    *fleet
	front    *relay
	injector *injector
	standIns *standIns
	notes    *notes
	homes    []*household // the last one is the flood's
	accounts []protocol.AccountID
	baseline map[string]float64

	result result
}

// TestCrash is described in doc.go.
func TestCrash(t *testing.T) {
	a := newAttack(t)
	for left := *crashFor; left > 0; left -= *crashRound {
		if err := a.round(min(left, *crashRound)); err != nil {
			a.notes.violation(badAnswer, "the run cannot go on: %v", err)
		}
		if !a.notes.clean() {
			break
		}
	}
	a.checkCommits()
	if *crashOnly == "" { // else it is about something else
		a.checkMinimums(*crashFor)
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

func newAttack(t *testing.T) *attack {
	t.Helper()
	a := &attack{t: t, seed: seedOf(t), began: time.Now(), notes: newNotes(), result: result{Faults: map[string]int{}}}
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
	model := newRelay(t, strings.TrimSuffix(strings.TrimPrefix(a.standIns.model.URL, "http://"), "/v1"))
	a.front = newRelay(t, "")
	a.site = sitetest.NewSite(t,
		"TURNSTONE_LOG_LEVEL=info", "TURNSTONE_BASE_URL=http://"+a.front.Address, "TURNSTONE_DRAIN_GRACE=300ms",
		fmt.Sprintf("TURNSTONE_LIMIT_WRITES=%.0f/1m burst %d", writeLimit.PerSecond*60, writeLimit.Burst),
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=http://"+model.Address+"/v1", "TURNSTONE_MODEL_BALANCED=stand-in",
		"TURNSTONE_FAILPOINT_EFFECT_URL="+a.standIns.effect.URL)
	direct := a.variable("DATABASE_URL")
	cutter := pgtest.NewCutter(t, direct)
	a.site.Environment = append(a.site.Environment, "DATABASE_URL="+cutter.URL)
	postgres := embeddedtest.Postgres(t)
	name := direct[strings.LastIndex(direct[:strings.Index(direct, "?")], "/")+1 : strings.Index(direct, "?")]
	a.database = postgres.DSN(embedded.Superuser, name)
	a.fleet = newFleet(t, a.site, a.front, a.folder, a.notes)
	a.fleet.truth = a.truth
	t.Cleanup(a.fleet.stop)
	a.injector = &injector{
		fleet: a.fleet, postgres: postgres, redis: embeddedtest.Redis(t), cutter: cutter, model: model, notes: a.notes, clock: a.clock,
	}
	if _, err := a.fleet.startIn(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	a.settle()
	return a
}

func (a *attack) variable(name string) string {
	for _, one := range slices.Backward(a.site.Environment) {
		if value, found := strings.CutPrefix(one, name+"="); found {
			return value
		}
	}
	a.t.Fatalf("%s is not set", name)
	return ""
}

func (a *attack) clock() time.Duration { return time.Since(a.began) }

func (a *attack) say(format string, args ...any) {
	if *crashVerbose {
		fmt.Printf("%s "+format+"\n", append([]any{a.clock().Round(time.Millisecond)}, args...)...)
	}
}

// settle makes the accounts, and measures what the service takes when it has nothing to do.
func (a *attack) settle() {
	t := a.t
	for range households + 1 {
		u := sitetest.NewUser(t, "http://"+a.front.Address)
		home := &household{users: []*sitetest.User{u}}
		for range clientsEach - 1 {
			home.users = append(home.users, u.Device(t))
		}
		var session struct {
			Account struct {
				ID protocol.AccountID `json:"account_id"`
			} `json:"account"`
		}
		u.Get(t, "/auth/session", &session)
		a.homes, a.accounts = append(a.homes, home), append(a.accounts, session.Account.ID)
	}
	a.warm()
	a.idle()
	var err error
	sitetest.Eventually(t, "a look at the metrics", func() bool {
		a.baseline, err = a.fleet.metrics()
		return err == nil && a.baseline["turnstone_turns_live"] == 0
	})
	a.say("at rest: %.0f goroutines, %.0f descriptors", a.baseline["go_goroutines"], a.baseline["process_open_fds"])
}

// warm has as much asked at once as clients will, so that every pool has what it keeps.
func (a *attack) warm() {
	var all sync.WaitGroup
	for _, home := range a.homes {
		u := home.users[0]
		home.conversations = []string{u.NewConversation(a.t)}
		for range floodWorkers {
			all.Go(func() {
				for range 4 {
					_, _ = u.Ask(a.t.Context(), http.MethodPut, "/conversations/"+home.conversations[0]+"/draft", map[string]any{"content": "warm"})
				}
			})
		}
	}
	all.Wait()
	for _, home := range a.homes {
		all.Go(func() {
			stream, _, err := home.users[0].TryChat(a.t.Context(), sitetest.Saying(fmt.Sprintf("T%012x words=3 tool=effect", 0)))
			if err == nil && stream != nil {
				_ = stream.Drain(nil)
				stream.Close()
			}
		})
	}
	all.Wait()
}

// idle closes the connections that nobody uses.
func (a *attack) idle() {
	for _, home := range a.homes {
		for _, u := range home.users {
			u.Client.CloseIdleConnections()
		}
	}
	a.injector.model.cut()
}

// round lets clients work and faults come for a time, then lets all come to rest and checks it.
func (a *attack) round(length time.Duration) error {
	number := a.result.Rounds + 1
	since, err := a.prepare()
	if err != nil {
		return err
	}
	h, err := newHistory(filepath.Join(a.folder, fmt.Sprintf("history-%03d.jsonl", number)))
	if err != nil {
		return err
	}
	if number == 1 || *crashVerbose {
		a.say("round %d", number)
	}
	began, over := time.Now(), a.plan()
	err = a.work(number, length, h)
	operations, closed := h.close()
	if err = errors.Join(err, closed); err != nil {
		return err
	}
	a.result.Rounds++
	a.result.Seconds += time.Since(began).Seconds()
	faults, outages := a.injector.take()
	a.result.count(faults, operations, h)
	stored, err := a.atRest(since)
	if err != nil {
		return err
	}
	asked, effects := a.standIns.take()
	over() // from here on nothing breaks
	a.readAll(h)
	a.calm(number)
	check(&record{
		Operations: operations, Seen: h.seen, Changed: h.changed, Views: h.views, Asked: asked, Effects: effects, Outages: outages, Stored: stored,
		Limit: writeLimit,
	}, a.notes)
	a.result.store(stored, effects)
	a.say("at rest after %s", time.Since(began).Round(time.Millisecond)-length)
	a.say("round %d: %d faults, %d operations, %d turns, %v", number, len(faults), len(operations), len(stored.Turns), a.notes.violations)
	if a.notes.clean() {
		a.forget(number)
	}
	return nil
}

// prepare makes the conversations of a round and answers the database's time before that.
func (a *attack) prepare() (since time.Time, err error) {
	err = a.ask(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&since)
	})
	if err != nil {
		return since, err
	}
	for _, home := range a.homes {
		home.conversations, home.turns, home.versions = nil, nil, map[string]int64{}
		home.users[0].Saw.Forget()
		for range conversations {
			home.conversations = append(home.conversations, home.users[0].NewConversation(a.t))
		}
	}
	a.standIns.take()
	return since, nil
}

// work runs clients and faults. It returns when all requests of the clients are answered and everything is running. A
// round of a minute or more lasts until each kind of fault was injected: on a slow machine faults take longer.
func (a *attack) work(number int, length time.Duration, h *history) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	planned, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	overtime := planned
	if length >= time.Minute {
		overtime, cancel = context.WithTimeout(ctx, 3*length)
		defer cancel()
	}
	var clients, injecting sync.WaitGroup
	random := func(who int) *rand.Rand { return rand.New(rand.NewPCG(a.seed, uint64(number)<<16|uint64(who))) }
	client := func(home, n int) *client {
		return &client{
			name: fmt.Sprintf("%d.%d.%d", number, home, n), user: a.homes[home].users[n%clientsEach], home: a.homes[home],
			random: random(1 + home*clientsEach + n), history: h, notes: a.notes, clock: a.clock, ctx: ctx,
		}
	}
	for home := range households {
		for n := range clientsEach {
			c := client(home, n)
			for _, conversation := range c.home.conversations {
				c.lookAt(conversation) // where its draft and its title begin
			}
			clients.Go(c.run)
		}
	}
	flood := client(households, 0)
	clients.Go(flood.flood)
	failed := make(chan error, len(lanes))
	for n, l := range lanes {
		if l.ways = only(l.ways); len(l.ways) == 0 {
			continue
		}
		injecting.Go(func() {
			if err := a.injector.run(planned, overtime, l, random(1000+n)); err != nil {
				failed <- err
				stop()
			}
		})
	}
	injecting.Wait()
	stop()
	clients.Wait()
	close(failed)
	return <-failed
}

// ask runs something on the database as its superuser.
func (a *attack) ask(what func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), restPatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, a.database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return what(ctx, conn)
}

const unrestSQL = `
select (select count(*) from turns where not terminal) + (select count(*) from follow_ups where state = 'queued')
     + (select count(*) from conversations where live_turn_id is not null)`

// atRest waits until every turn has ended and the service has given back what it took.
func (a *attack) atRest(since time.Time) (stored *snapshot, err error) {
	began := time.Now()
	a.idle()
	deadline := time.Now().Add(restPatience)
	err = a.ask(func(ctx context.Context, conn *pgx.Conn) error {
		for {
			var unrest int
			if err := conn.QueryRow(ctx, unrestSQL).Scan(&unrest); err != nil {
				return err
			}
			if unrest == 0 || time.Now().After(deadline) {
				break // what does not rest is found by the checker
			}
			rest(restPoll)
		}
		stored, err = readSnapshot(ctx, conn, a.accounts, since)
		return err
	})
	if err != nil {
		return nil, err
	}
	a.result.Rest = max(a.result.Rest, time.Since(began).Seconds())
	a.checkRest(deadline)
	return stored, nil
}

// checkRest holds the process to I15.
func (a *attack) checkRest(deadline time.Time) {
	var restless []string
	for {
		now, err := a.fleet.metrics()
		if restless = a.restless(now); err == nil && len(restless) == 0 {
			return
		}
		if time.Now().After(deadline) {
			a.notes.violation(notAtRest, "%v %v", restless, err)
			a.keepGoroutines()
			return
		}
		rest(restPoll)
		a.idle()
	}
}

// keepGoroutines adds to the bundle what the service is busy with.
func (a *attack) keepGoroutines() {
	client := &http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + a.fleet.places[a.fleet.serving().slot].internal + "/debug/pprof/goroutine?debug=1")
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

func (a *attack) restless(now map[string]float64) (found []string) {
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

// truth asks about a transaction right after the service said what became of it: after a crash of Postgres its identifier may be
// another transaction's.
func (a *attack) truth(c claim) claim {
	ctx, cancel := context.WithTimeout(context.Background(), truthPatience)
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

// checkClaim compares what the service found out with the truth. What was committed stays so, whatever crashes later. That
// a transaction was aborted can be compared only if there was no crash since; what it would have changed is held against
// the histories in any case.
func (a *attack) checkClaim(ctx context.Context, conn *pgx.Conn, c claim) error {
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
		a.notes.violation(untruthful, "transaction %s is %s, the service said %s at %s", c.XID, c.Truth, c.Status, c.At)
	}
	return nil
}

const appendSQL = `
select encode(sha256(frames), 'hex') from turn_events where turn_id = $1 and first_sequence = $2 and last_sequence = $3`

// checkAppend holds the service to what it says of an append whose answer was lost: that these very bytes are stored, and
// not only something at their place.
func (a *attack) checkAppend(ctx context.Context, conn *pgx.Conn, one storedAppend) error {
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
		a.notes.violation(untruthful, "%s: the service says that its events %d to %d (%s) are stored; stored is %q", one.Turn, one.First, one.Last, one.Hash, hash)
	}
	return nil
}

// checkCommits holds what the service found out about transactions and appends without an answer against the database.
func (a *attack) checkCommits() {
	a.notes.asking.Wait()
	err := a.ask(func(ctx context.Context, conn *pgx.Conn) error {
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
		a.notes.violation(badAnswer, "asking about commits: %v", err)
	}
}

// forget removes what a clean round left for the bundle.
func (a *attack) forget(round int) {
	_ = os.Remove(filepath.Join(a.folder, fmt.Sprintf("history-%03d.jsonl", round)))
	logs, _ := filepath.Glob(filepath.Join(a.folder, "service-*.log")) // the pattern is well formed
	for _, log := range logs {
		if p := a.fleet.serving(); p == nil || p.log != log {
			_ = os.Remove(log)
		}
	}
}

// finish prints, publishes, and leaves a bundle or nothing.
func (a *attack) finish() {
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
	a.t.Errorf("the bundle is in %s; to repeat: make replay SEED=%d", a.folder, a.seed)
}

// dump adds the database and the findings to the bundle.
func (a *attack) dump() {
	var found bytes.Buffer
	for _, kind := range slices.Sorted(maps.Keys(a.notes.violations)) {
		for _, text := range a.notes.violations[kind] {
			fmt.Fprintf(&found, "%s: %s\n", kind, text)
		}
	}
	err := os.WriteFile(filepath.Join(a.folder, "violations"), found.Bytes(), 0o600)
	output, dumped := exec.Command("pg_dump", "--format=custom", "--file="+filepath.Join(a.folder, "database.dump"), a.database).CombinedOutput()
	if err != nil || dumped != nil {
		a.t.Logf("the bundle is not whole: %v %v %s", err, dumped, output)
	}
}
