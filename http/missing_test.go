package http

import (
	"encoding/json"
	testflag "flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
)

// An identifier of another account answers as one that names nothing: the matrix holds that for the bytes. That it holds
// for the time as well is shown twice.
//
// What can be held without a clock is the work: for every route and every name in its path or body, a foreign and a
// missing identifier have the service say the same things to Postgres in the same round trips, and Postgres run the same
// plans over as many rows and pages. This is what decides the time, it is the same in every run, and it is asserted, with
// an own identifier as the control that must differ.
//
// The clock itself is read too, because not all work is Postgres'. Welch's t of interleaved samples is printed as a
// figure, and asserted only when somebody asks for enough samples on a machine that does nothing else:
//
//	go test ./http -run TestForeignTakesAsLongAsMissing -v -timing.samples 20000
var timingSamples = testflag.Int("timing.samples", 300, "of each kind; from 10000 on Welch's t is asserted")

// wire stands between the service and Postgres and writes down what the two say to each other, in the pool that answers
// requests. auto_explain makes Postgres tell its plans there.
type wire struct {
	URL      string
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu         sync.Mutex
	asked      []string          // guarded by mu; the two directions apart, because they overlap
	answered   []string          // guarded by mu
	statements map[string]string // guarded by mu: SQL by the name of the prepared statement
	open       []net.Conn        // guarded by mu
}

func newWire(t *testing.T, database pgtest.Database) *wire {
	t.Helper()
	for setting, value := range map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
		"auto_explain.log_buffers": "on", "auto_explain.log_timing": "off", "auto_explain.log_format": "json",
		"auto_explain.log_level": "notice", "auto_explain.log_nested_statements": "on",
		"enable_seqscan": "off", // as of tables that are not as small as a test's
	} {
		database.Admin(t, fmt.Sprintf(`alter database %s set %s = '%s'`, database.Name, setting, value))
	}
	address, err := url.Parse(database.URL)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	query, folder := address.Query(), t.TempDir()
	w := &wire{target: filepath.Join(query.Get("host"), socket), statements: map[string]string{}}
	if w.listener, err = net.Listen("unix", filepath.Join(folder, socket)); err != nil {
		t.Fatal(err)
	}
	query.Set("host", folder)
	address.RawQuery = query.Encode()
	w.URL = address.String()
	w.running.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	for _, conn := range w.open {
		_ = conn.Close()
	}
	w.mu.Unlock()
	w.running.Wait()
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.open = append(w.open, client, server)
		w.mu.Unlock()
		w.running.Go(func() { w.pass(client, server) })
	}
}

// pass hands both ways on. Each message is written down before the other end can act on it.
func (w *wire) pass(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	asking, answering := pgproto3.NewBackend(client, server), pgproto3.NewFrontend(server, client)
	startup, err := asking.ReceiveStartupMessage()
	if err != nil {
		return
	}
	note := func(pgproto3.Message) {}
	if first, ok := startup.(*pgproto3.StartupMessage); ok && first.Parameters["role"] == "turnstone_app" {
		note = w.note
	}
	if send(server, startup) != nil {
		return
	}
	w.running.Go(func() {
		defer func() { _, _ = client.Close(), server.Close() }()
		for {
			message, err := answering.Receive()
			if err != nil {
				return
			}
			note(message)
			if send(client, message) != nil {
				return
			}
		}
	})
	for {
		message, err := asking.Receive()
		if err != nil {
			return
		}
		note(message)
		if send(server, message) != nil {
			return
		}
	}
}

func send(to net.Conn, message pgproto3.Message) error {
	text, err := message.Encode(nil)
	if err == nil {
		_, err = to.Write(text)
	}
	return err
}

func (w *wire) note(message pgproto3.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := message.(type) {
	case *pgproto3.Parse:
		w.statements[m.Name] = m.Query
		w.asked = append(w.asked, "parse "+m.Query)
	case *pgproto3.Bind:
		sizes := make([]int, len(m.Parameters))
		for i, parameter := range m.Parameters {
			sizes[i] = len(parameter)
		}
		w.asked = append(w.asked, fmt.Sprintf("run %s with %v bytes", w.statements[m.PreparedStatement], sizes))
	case *pgproto3.Query:
		w.asked = append(w.asked, "query "+m.String)
	case *pgproto3.Sync:
		w.asked = append(w.asked, "round trip")
	case *pgproto3.DataRow:
		size := 0
		for _, value := range m.Values {
			size += len(value)
		}
		w.answered = append(w.answered, fmt.Sprintf("row of %d bytes", size))
	case *pgproto3.CommandComplete:
		w.answered = append(w.answered, string(m.CommandTag))
	case *pgproto3.ErrorResponse:
		w.answered = append(w.answered, "error "+m.Code)
	case *pgproto3.NoticeResponse:
		w.answered = append(w.answered, plansIn(m.Message)...)
	}
}

// take hands out what was written down since the last time.
func (w *wire) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := strings.Join(append(w.asked, w.answered...), "\n")
	w.asked, w.answered = nil, nil
	return taken
}

// planNode is what counts of a node of a plan.
type planNode struct {
	Type   string     `json:"Node Type"`
	Index  string     `json:"Index Name"`
	Rows   float64    `json:"Actual Rows"`
	Loops  float64    `json:"Actual Loops"`
	Failed float64    `json:"Rows Removed by Filter"`
	Hit    int        `json:"Shared Hit Blocks"`
	Read   int        `json:"Shared Read Blocks"`
	Plans  []planNode `json:"Plans"`
}

func plansIn(notice string) []string {
	_, text, found := strings.Cut(notice, "plan:")
	var explained struct{ Plan planNode }
	if !found || json.Unmarshal([]byte(text), &explained) != nil {
		return []string{"notice " + notice}
	}
	return explained.Plan.lines(nil, "")
}

func (n *planNode) lines(list []string, indent string) []string {
	list = append(list, fmt.Sprintf("%s%s %s: %v rows × %v, %v removed, %d pages", indent, n.Type, n.Index, n.Rows, n.Loops, n.Failed, n.Hit+n.Read))
	for i := range n.Plans {
		list = n.Plans[i].lines(list, indent+"  ")
	}
	return list
}

// probe asks one route about a value of one of its names.
type probe struct {
	what string
	ask  func(value string) *reply
	own  string // of the asker
	of   string // of somebody else
	name string
}

// probes are all routes by all names in their paths and bodies, of things that the owner has.
func (m *matrix) probes() []probe {
	var list []probe
	for _, r := range m.routes {
		e := examples[r.name()]
		if r.policy.Public || e.creates {
			continue
		}
		for _, name := range namesIn(r.path) {
			list = append(list, probe{what: r.name() + " by " + name, name: name, own: m.theirs[name], of: m.mine[name], ask: func(value string) *reply {
				of := things{name: value}
				for other, known := range m.theirs {
					if other != name {
						of[other] = known
					}
				}
				return m.ask(m.stranger, r, of)
			}})
		}
		for _, name := range e.names {
			parent, field, nested := strings.Cut(name, ".")
			if !nested {
				field = parent
			}
			if m.mine[field] == "" { // nobody has one
				continue
			}
			list = append(list, probe{what: r.name() + " by " + name + " of the body", name: field, own: m.theirs[field], of: m.mine[field], ask: func(value string) *reply {
				content := e.body(m, m.theirs)
				content[parent] = value
				if nested {
					content[parent] = object{field: value, "mode": "edit"}
				}
				return m.send(m.stranger, r, m.theirs, content)
			}})
		}
	}
	return list
}

func TestForeignIsAsMuchWorkAsMissing(t *testing.T) {
	database := pgtest.NewDatabase(t)
	between := newWire(t, database)
	m := matrixOn(t, database, func(c *Config) {
		db, err := persistence.Open(t.Context(), persistence.Config{URL: between.URL, MaxConns: 1, Logger: zap.NewNop()}) // one, so that every plan is known to it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		c.DB = db
	})
	database.Admin(t, `analyze`)
	const settled = 12 // Postgres compares five custom plans with the generic one, then keeps to one of them
	work := func(p probe, value string) string {
		between.take()
		if answer := p.ask(value); answer.status != 404 {
			t.Errorf("%s: %d %s", p.what, answer.status, answer.body)
		}
		return between.take()
	}
	probes, statements := m.probes(), 0
	for _, p := range probes {
		for range settled {
			work(p, fresh(p.name))
			work(p, p.of)
		}
		missing, foreign := work(p, fresh(p.name)), work(p, p.of)
		const others = 3 // what the service does beside it may come between once; a difference of the route comes each time
		for again := 0; missing != foreign && again < others; again++ {
			missing, foreign = work(p, fresh(p.name)), work(p, p.of)
		}
		if missing != foreign {
			t.Errorf("%s: a missing one is\n%s\n\na foreign one is\n%s", p.what, missing, foreign)
		}
		if !strings.Contains(missing, "round trip") || !strings.Contains(missing, "pages") {
			t.Errorf("%s: nothing was seen of its work: %s", p.what, missing)
		}
		statements += strings.Count(missing, "run ")
	}
	t.Logf("%d routes and names, %d statements: foreign and missing are the same work", len(probes), statements)

	control := probes[slices.IndexFunc(probes, func(p probe) bool { return p.what == "GET /conversations/{conversation_id} by conversation_id" })]
	between.take()
	if answer := control.ask(control.own); answer.status != 200 {
		t.Fatalf("the control: %d %s", answer.status, answer.body)
	}
	if own := between.take(); own == work(control, fresh(control.name)) {
		t.Errorf("an own one is the same work, so this test sees nothing: %s", own)
	}
}

// timedRoutes are whose time is compared: reads and writes, by path and by body, before and behind the check of bodies.
var timedRoutes = []string{
	"GET /conversations/{conversation_id} by conversation_id",
	"GET /conversations/{conversation_id}/messages by conversation_id",
	"PUT /conversations/{conversation_id}/title by conversation_id",
	"POST /conversations/{conversation_id}/branches by message_id of the body",
	"GET /chat/turns/{turn_id} by turn_id",
	"GET /chat/turns/{turn_id}/events by turn_id",
}

// tellsApart is the |t| from which on two samples are not of one distribution.
const tellsApart = 4.5

func TestForeignTakesAsLongAsMissing(t *testing.T) {
	m := newMatrix(t)
	byName := map[string]probe{}
	for _, p := range m.probes() {
		byName[p.what] = p
	}
	asserted := *timingSamples >= 10_000
	for _, what := range timedRoutes {
		p, known := byName[what]
		if !known {
			t.Fatalf("%s is no route", what)
		}
		score := compare(*timingSamples, func() { p.ask(fresh(p.name)) }, func() { p.ask(p.of) })
		t.Logf("t = %6.2f of %d samples: foreign against missing, %s", score, *timingSamples, what)
		if asserted && math.Abs(score) >= tellsApart {
			t.Errorf("%s tells a foreign identifier from a missing one by its time", what)
		}
	}
	p := byName[timedRoutes[0]]
	score := compare(*timingSamples, func() { p.ask(fresh(p.name)) }, func() { p.ask(p.own) })
	t.Logf("t = %6.2f of %d samples: own against missing, the control", score, *timingSamples)
	if asserted && math.Abs(score) < tellsApart {
		t.Error("the control is not told apart: the measurement sees nothing")
	}
}

// compare is Welch's t of the times of two, asked in an order that nothing else keeps step with. The slowest twentieth
// of each is left out: it is the machine's.
func compare(samples int, first, second func()) float64 {
	var took [2][]float64
	ask := [2]func(){first, second}
	for range samples {
		order := rand.IntN(2) //nolint:gosec // nobody guesses it
		for _, which := range []int{order, 1 - order} {
			began := time.Now()
			ask[which]()
			took[which] = append(took[which], float64(time.Since(began)))
		}
	}
	const slowest = 20
	mean, variance := [2]float64{}, [2]float64{}
	for i, times := range took {
		slices.Sort(times)
		times = times[:len(times)-len(times)/slowest]
		for _, x := range times {
			mean[i] += x / float64(len(times))
		}
		for _, x := range times {
			variance[i] += (x - mean[i]) * (x - mean[i]) / float64(len(times)-1) / float64(len(times))
		}
	}
	return (mean[1] - mean[0]) / math.Sqrt(variance[0]+variance[1])
}
