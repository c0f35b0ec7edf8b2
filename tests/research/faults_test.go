package research

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/researchlog"
	"turnstone/providers/embedded"
	"turnstone/providers/model/modeltest"
)

// smallCorpus are the kinds of the pages of a task that faults meet. The task has about twenty steps.
var smallCorpus = []kind{plain, paper, contradicts, paper, contradicts, failing}

// chain is a task that one kind of fault meets after every batch: the program stops after the first batch and, in each
// process, after the one that follows the adoption of the task.
type chain struct {
	action string
	nodes  int
}

// TestNoStepIsRepeatedWhereverTheProgramStops stops the program after every batch of a task: with kill -9 and with SIGTERM, alone and
// with another node that takes the task over.
func TestNoStepIsRepeatedWhereverTheProgramStops(t *testing.T) {
	t.Parallel()
	for _, c := range []chain{{"kill", 1}, {"term", 1}, {"kill", 2}, {"term", 2}} {
		t.Run(fmt.Sprintf("%s with %d nodes", c.action, c.nodes), func(t *testing.T) {
			t.Parallel()
			c.play(t)
		})
	}
}

// everyStep are the kinds of the batches after which a fault must have come.
var everyStep = []string{"begin", "plan", "search", "read", "judge", "write", "summarize", "complete"}

// trial is an installation with a task, and the result of the same task without a fault.
type trial struct {
	*sitetest.Site
	t      *testing.T
	corpus *corpus
	user   *sitetest.User
	db     *pgx.Conn
	calm   *result
	calls  int // of the undisturbed task
	nodes  []*node
	met    map[string]bool // kinds of the steps after which a fault came
	faults int
}

// node is a program, or the place of one that has ended.
type node struct {
	*sitetest.Process
	environment []string
	base        string
}

func newTrial(t *testing.T, s *sitetest.Site, c *corpus, nodes int) *trial {
	t.Helper()
	s.Build = sitetest.Failpoints
	x := &trial{Site: s, t: t, corpus: c, db: superuser(t, s), met: map[string]bool{}}
	for i := range nodes {
		n := &node{environment: s.Environment, base: s.Base}
		if i > 0 {
			public := sitetest.FreeAddress(t)
			n.base = "http://" + public
			n.environment = append(slices.Clone(s.Environment), "TURNSTONE_DATA_DIR="+filepath.Join(filepath.Dir(s.Folder), fmt.Sprintf("node-%d", i)),
				"TURNSTONE_LISTEN="+public, "TURNSTONE_INTERNAL_LISTEN="+sitetest.FreeAddress(t), "TURNSTONE_CONTENT_LISTEN=off")
		}
		x.nodes = append(x.nodes, n)
		x.launch(n, "")
		n.AwaitLog("turnstone serves")
	}
	x.user = sitetest.NewUser(t, s.Base)
	x.calm = finish(t, x.user, x.start())
	x.calls = len(c.entries(0))
	return x
}

// launch starts the program of a node, with a failpoint.
func (x *trial) launch(n *node, armed string) {
	x.t.Helper()
	n.Process = x.Build.Start(x.t, append(slices.Clone(n.environment), "TURNSTONE_FAILPOINTS="+armed), "serve")
}

func (x *trial) start() *protocol.ResearchTask {
	x.t.Helper()
	return x.user.Research(x.t, sitetest.ResearchBody{"question": x.corpus.topics[0].question, "depth": "quick"})
}

// follow reads the events of a task in the background, from all nodes in turn. ended is closed at its end.
func (x *trial) follow(task *protocol.ResearchTask) (ended chan struct{}, failed *error) {
	ended, failed = make(chan struct{}), new(error)
	var bases []string
	for _, n := range x.nodes[1:] {
		bases = append(bases, n.base)
	}
	ctx := sitetest.Within(x.t, sitetest.HangGuard)
	go func() {
		defer close(ended)
		*failed = x.user.FollowResearch(ctx, task.TaskID.String(), nil, bases...)
	}()
	return ended, failed
}

func (c chain) play(t *testing.T) {
	world := newCorpus(t, english, english.names[:1], smallCorpus)
	x := newTrial(t, sitetest.NewSite(t, world.settings(t, modeltest.Chat, false)...), world, c.nodes)
	over := x.user.Ledger.Plan()
	for _, n := range x.nodes { // any of them may begin the task
		internal := setting(n.environment, "TURNSTONE_INTERNAL_LISTEN")
		if err := sitetest.Arm(sitetest.Within(t, sitetest.HangGuard), internal, c.armed(1)); err != nil {
			t.Fatal(err)
		}
	}
	task := x.start()
	ended, failed := x.follow(task)
	var kept []boundary
	for {
		stopped := x.awaitStop(ended)
		if stopped == nil {
			break
		}
		x.faults++
		kept = append(kept, x.boundary(task))
		x.launch(stopped, c.armed(2))
	}
	if *failed != nil {
		t.Fatal(*failed)
	}
	for _, n := range x.nodes { // the last batch has stopped one of them
		n.Kill()
	}
	x.launch(x.nodes[0], "")
	x.nodes[0].AwaitLog("turnstone serves")
	kept = append(kept, x.boundary(task))
	over()
	x.check(task, kept)
	for _, kind := range everyStep { // a node that drains may store further batches
		if c.action == "kill" && !x.met[kind] {
			t.Errorf("no fault came after a step of the kind %s: %v", kind, x.met)
		}
	}
	if len(x.met) < len(everyStep)/2 {
		t.Errorf("faults came after steps of the kinds %v only", x.met)
	}
	t.Logf("%d faults, after steps of the kinds %v; %d calls, and %d in the undisturbed task", x.faults, x.met, len(world.entries(0))-x.calls, x.calls)
}

// maxDeaths is more than the number of processes that a task may end.
const maxDeaths = 9

// TestATaskThatEndsEveryProcessIsGivenUp kills each program right after it has adopted the task, as a page that exhausts the memory
// would. The task must end, so that the programs that follow do not die of it.
func TestATaskThatEndsEveryProcessIsGivenUp(t *testing.T) {
	t.Parallel()
	world := newCorpus(t, english, english.names[:1], smallCorpus)
	x := newTrial(t, sitetest.NewSite(t, world.settings(t, modeltest.Chat, false)...), world, 1)
	over := x.user.Ledger.Plan()
	deadly := chain{action: "kill", nodes: 1}.armed(1)
	if err := sitetest.Arm(sitetest.Within(t, sitetest.HangGuard), x.Internal, deadly); err != nil {
		t.Fatal(err)
	}
	task := x.start()
	ended, failed := x.follow(task)
	for stopped := x.awaitStop(ended); stopped != nil && x.faults < maxDeaths; stopped = x.awaitStop(ended) {
		if x.faults++; x.faults < maxDeaths {
			x.launch(stopped, deadly)
		} else {
			x.launch(stopped, "")
		}
	}
	<-ended
	if *failed != nil {
		t.Fatal(*failed)
	}
	x.nodes[0].Kill() // the last batch has stopped it
	x.launch(x.nodes[0], "")
	x.nodes[0].AwaitLog("turnstone serves")
	over()
	_, got := x.user.CheckResearch(t, task.TaskID.String(), false)
	if got.State != protocol.ResearchFailed || got.Failure == nil || got.Failure.Code != protocol.ResearchInterrupted {
		t.Errorf("after %d processes the task ended %s: %+v", x.faults, got.State, got.Failure)
	}
}

func (c chain) armed(batch int) string {
	return fmt.Sprintf("%s=%s@%d", failpoint.ResearchAfterRow, c.action, batch)
}

// setting returns the last value of a variable.
func setting(environment []string, name string) (value string) {
	for _, one := range environment {
		if rest, is := strings.CutPrefix(one, name+"="); is {
			value = rest
		}
	}
	return value
}

// awaitStop waits until a program has ended, and returns its node; nil: the task has ended.
func (x *trial) awaitStop(ended chan struct{}) *node {
	x.t.Helper()
	stopped := make(chan *node, len(x.nodes))
	for _, n := range x.nodes {
		process := n.Process
		go func() {
			select {
			case <-process.Ended():
				stopped <- n
			case <-ended:
			}
		}()
	}
	select {
	case n := <-stopped:
		return n
	case <-ended:
		return nil
	}
}

// boundary is what was stored when the program stopped, and how much had been asked for until then.
type boundary struct {
	stored []string // keys of steps
	asked  int
}

const entriesSQL = `select body from research_entries where task_id = $1 order by number`

// journal returns the journal of a task.
func (x *trial) journal(task *protocol.ResearchTask) []researchlog.Entry {
	x.t.Helper()
	rows, err := x.db.Query(sitetest.Within(x.t, sitetest.HangGuard), entriesSQL, rowID(task.TaskID))
	if err != nil {
		x.t.Fatal(err)
	}
	bodies, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		x.t.Fatal(err)
	}
	entries := make([]researchlog.Entry, len(bodies))
	for i, body := range bodies {
		if err := json.Unmarshal(body, &entries[i]); err != nil {
			x.t.Fatal(err)
		}
	}
	return entries
}

func (x *trial) boundary(task *protocol.ResearchTask) (b boundary) {
	x.t.Helper()
	last := "nothing"
	for _, e := range x.journal(task) {
		last = string(e.Kind)
		if e.Kind == researchlog.EntryResult {
			b.stored = append(b.stored, e.Step)
			last, _, _ = strings.Cut(e.Step, "-")
		}
	}
	x.met[last] = true
	b.asked = len(x.corpus.entries(0))
	return b
}

// check compares a task that faults have met with the undisturbed one.
func (x *trial) check(task *protocol.ResearchTask, kept []boundary) {
	x.t.Helper()
	r := resultOf(x.t, x.user, task.TaskID.String())
	if r.report != x.calm.report {
		x.t.Errorf("the report is\n%s\nand without faults\n%s", r.report, x.calm.report)
	}
	if got, want := sourcesOf(r), sourcesOf(x.calm); got != want {
		x.t.Errorf("the sources are\n%s\nand without faults\n%s", got, want)
	}
	requests := x.requests(r)
	stored := map[string]bool{}
	for _, e := range x.journal(task) {
		if e.Kind == researchlog.EntryResult && stored[e.Step] {
			x.t.Errorf("the step %s has two results", e.Step)
		}
		stored[e.Step] = true
	}
	log := x.corpus.entries(0)
	for _, b := range kept {
		for _, key := range b.stored {
			request, known := requests[key]
			if !known {
				x.t.Fatalf("the request of the step %s is not known", key)
			}
			if slices.Contains(log[b.asked:], request) {
				x.t.Errorf("the step %s was stored, and %q was asked for again", key, request)
			}
		}
	}
	if calls := len(log) - x.calls; calls < x.calls {
		x.t.Errorf("%d calls, and %d in the undisturbed task", calls, x.calls)
	}
}

// requests returns what each step asks for, as it is in the log of the corpus.
func (x *trial) requests(r *result) map[string]string {
	x.t.Helper()
	question := r.task.Question
	all := map[string]string{"plan": "model plan " + question, "summarize": "model summarize " + question, "gaps-1": "model gaps " + question}
	for _, q := range r.task.Plan {
		all["search-"+q.StepID+"-web"] = "search " + q.Question
		all["write-"+q.StepID] = "model write " + q.Question
	}
	for _, e := range r.log.Events {
		payload, err := e.Payload()
		if err != nil {
			x.t.Fatal(err)
		}
		if source, is := payload.(*protocol.ResearchSourceChanged); is && source.State == protocol.SourceFound {
			all["read-"+source.SourceID] = "page " + *source.URL
			all["judge-"+source.SourceID] = "model judge " + source.Title
		}
	}
	return all
}

// sourcesOf returns the kept sources without the times at which they were read.
func sourcesOf(r *result) string {
	var b strings.Builder
	for i := range r.sources {
		s := r.sources[i]
		number := 0
		if s.Number != nil {
			number = *s.Number
		}
		fmt.Fprintf(&b, "%s [%d] %s %s %s %+v\n", s.SourceID, number, s.Title, *s.URL, s.SHA256, s.Excerpts)
	}
	return b.String()
}

// TestNoStepIsRepeatedWheneverPostgresRestarts stops Postgres at once and starts it again while each step of a task asks for something.
func TestNoStepIsRepeatedWheneverPostgresRestarts(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "turnstone-research-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o711); err != nil { // the server has an account of its own
		t.Fatal(err)
	}
	server, err := embedded.StartPostgres(sitetest.Within(t, sitetest.HangGuard), embedded.PostgresOptions{DataDir: filepath.Join(folder, "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.WithoutCancel(t.Context())) })
	world := newCorpus(t, english, english.names[:1], smallCorpus)
	x := newTrial(t, sitetest.NewSiteOn(t, server, world.settings(t, modeltest.Chat, false)...), world, 1)
	over := x.user.Ledger.Plan()
	var restarts sync.WaitGroup
	var restarting sync.Mutex
	ctx := sitetest.Within(t, sitetest.HangGuard)
	task := x.start()
	world.onEntry(func(entry string) {
		restarting.Lock() // the answer waits for the end of an outage, and then meets the next one
		if err := server.StopAtOnce(ctx); err != nil {
			t.Errorf("stopping Postgres at %s: %v", entry, err)
		}
		x.faults++
		restarts.Go(func() { // the answer comes while Postgres is away
			defer restarting.Unlock()
			if err := server.Start(ctx); err != nil {
				t.Errorf("starting Postgres at %s: %v", entry, err)
			}
		})
	})
	ended, failed := x.follow(task)
	<-ended
	if *failed != nil {
		t.Fatal(*failed)
	}
	world.onEntry(nil)
	restarts.Wait()
	over()
	sitetest.Eventually(t, "the service is ready", func() bool { status, _ := sitetest.Readiness(t, x.Internal); return status == http.StatusOK })
	x.db = superuser(t, x.Site)
	x.check(task, nil)
	if calls := len(world.entries(0)) - x.calls; calls != x.calls {
		t.Errorf("%d calls, and %d in the undisturbed task:\n%s", calls, x.calls, strings.Join(world.entries(x.calls), "\n"))
	}
	if x.faults < x.calls {
		t.Errorf("%d restarts of Postgres for %d answers", x.faults, x.calls)
	}
	t.Logf("%d restarts of Postgres", x.faults)
}
