package http

import (
	"bytes"
	"encoding/json"
	testflag "flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"turnstone/http/route"
	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol/proxytest"
)

// timingSamples is the number of samples of each kind that TestForeignTakesAsLongAsMissing takes.
//
// A request with an identifier of another account gets the same response as one whose identifier names nothing. The
// authorization matrix checks that the bytes are equal. Two tests in this file check that the time is equal as well.
//
// TestForeignIsAsMuchWorkAsMissing compares the work, without a clock. For every route and every name in its path or
// body, a foreign and a missing identifier must make the service send the same statements to Postgres in the same round
// trips, and make Postgres run the same plans over as many rows and pages. The work determines the time, and it is the
// same in every run, so the test asserts it. An identifier of the caller is the control: its work must differ.
//
// TestForeignTakesAsLongAsMissing measures the time, because Postgres does not do all of the work. It prints Welch's t
// of interleaved samples, and asserts it only from 10,000 samples on. Run it on a host computer that does nothing else:
//
//	go test ./http -run TestForeignTakesAsLongAsMissing -v -timing.samples 20000
var timingSamples = testflag.Int("timing.samples", 100, "samples of each kind; from 10000 on, Welch's t is asserted")

// recordingProxy is a proxy between the service and Postgres. It records the messages in both directions, on the
// connections of the pool that serves requests. auto_explain makes Postgres send its plans on the same connections.
type recordingProxy struct {
	*proxytest.Proxy
	URL string

	// Guarded by mu.
	mu         sync.Mutex
	sent       []string          // messages of the service; separate from received, because the two directions overlap
	received   []string          // messages of Postgres
	statements map[string]string // SQL by the name of the prepared statement
}

// newRecordingProxy starts a proxy for a database and makes Postgres report its plans. The proxy runs until the test
// ends.
func newRecordingProxy(t *testing.T, database pgtest.Database) *recordingProxy {
	t.Helper()
	for setting, value := range map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
		"auto_explain.log_buffers": "on", "auto_explain.log_timing": "off", "auto_explain.log_format": "json",
		"auto_explain.log_level": "notice", "auto_explain.log_nested_statements": "on",
		"enable_seqscan": "off", // so that the plans are those of tables that are larger than a test's
	} {
		database.Admin(t, fmt.Sprintf(`alter database %s set %s = '%s'`, database.Name, setting, value))
	}
	w := &recordingProxy{statements: map[string]string{}}
	w.Proxy, w.URL = pgtest.NewProxy(t, database.URL, w.pass)
	return w
}

// pass forwards messages in both directions. It records each message before it forwards it, and so before the receiver
// can act on it.
func (w *recordingProxy) pass(client, server net.Conn) {
	var replies sync.WaitGroup
	defer replies.Wait()
	defer func() { _, _ = client.Close(), server.Close() }()
	fromClient, fromServer := pgproto3.NewBackend(client, server), pgproto3.NewFrontend(server, client)
	startup, err := fromClient.ReceiveStartupMessage()
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
	replies.Go(func() {
		defer func() { _, _ = client.Close(), server.Close() }()
		for {
			message, err := fromServer.Receive()
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
		message, err := fromClient.Receive()
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

func (w *recordingProxy) note(message pgproto3.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := message.(type) {
	case *pgproto3.Parse:
		w.statements[m.Name] = m.Query
		w.sent = append(w.sent, "parse "+m.Query)
	case *pgproto3.Bind:
		sizes := make([]int, len(m.Parameters))
		for i, parameter := range m.Parameters {
			sizes[i] = len(parameter)
		}
		w.sent = append(w.sent, fmt.Sprintf("run %s with %v bytes", w.statements[m.PreparedStatement], sizes))
	case *pgproto3.Query:
		w.sent = append(w.sent, "query "+m.String)
	case *pgproto3.Sync:
		w.sent = append(w.sent, "round trip")
	case *pgproto3.DataRow:
		size := 0
		for _, value := range m.Values {
			if len(bytes.Trim(value, "0123456789")) > 0 { // the identifier of a transaction gets longer with time
				size += len(value)
			}
		}
		w.received = append(w.received, fmt.Sprintf("row of %d bytes", size))
	case *pgproto3.CommandComplete:
		w.received = append(w.received, string(m.CommandTag))
	case *pgproto3.ErrorResponse:
		w.received = append(w.received, "error "+m.Code)
	case *pgproto3.NoticeResponse:
		w.received = append(w.received, plansIn(m.Message)...)
	}
}

// take returns the messages that were recorded since the last call.
func (w *recordingProxy) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := strings.Join(append(w.sent, w.received...), "\n")
	w.sent, w.received = nil, nil
	return taken
}

// planNode contains the fields of a plan node that are compared.
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

// probe sends requests to one route, with a chosen value for one name in its path or body.
type probe struct {
	what string
	ask  func(value string) *reply
	own  string // an identifier of the caller
	of   string // an identifier of another account
	name string
}

// probes returns a probe for each name in the path and the body of each route. It leaves out public routes, routes that
// create the object that the path names, and names for which the owner has no identifier.
func (m *matrix) probes() []probe {
	var list []probe
	for _, r := range m.Routes() {
		e := examples[nameOf(r)]
		if r.Policy.Public || e.creates {
			continue
		}
		for _, name := range identifierNames(r.Path) {
			list = append(list, probe{what: nameOf(r) + " by " + name, name: name, own: m.theirs[name], of: m.mine[name], ask: func(value string) *reply {
				of := identifiers{name: value}
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
			if m.mine[field] == "" { // no account has one
				continue
			}
			list = append(list, probe{what: nameOf(r) + " by " + name + " of the body", name: field, own: m.theirs[field], of: m.mine[field], ask: func(value string) *reply {
				content := e.body(m, m.theirs)
				content[parent] = value
				if nested {
					content[parent] = route.Object{field: value, "mode": "edit"}
				}
				return m.send(m.stranger, r, m.theirs, content)
			}})
		}
	}
	return list
}

func TestForeignIsAsMuchWorkAsMissing(t *testing.T) {
	database := pgtest.NewDatabase(t)
	proxy := newRecordingProxy(t, database)
	m := matrixOn(t, database, func(c *testConfig) {
		// One connection, so that it has cached every plan.
		db, err := persistence.Open(t.Context(), persistence.Config{URL: proxy.URL, MaxConns: 1, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		c.use(db)
	})
	database.Admin(t, `analyze`)
	// settled is the number of requests of each kind before the comparison. Postgres compares five custom plans with
	// the generic one, and then uses one of the two.
	const settled = 12
	work := func(p probe, value string) string {
		proxy.take()
		if resp := p.ask(value); resp.status != 404 {
			t.Errorf("%s: %d %s", p.what, resp.status, resp.body)
		}
		return proxy.take()
	}
	probes, statements := m.probes(), 0
	for _, p := range probes {
		for range settled {
			work(p, unusedID(p.name))
			work(p, p.of)
		}
		missing, foreign := work(p, unusedID(p.name)), work(p, p.of)
		if missing != foreign {
			t.Errorf("%s: the work for a missing identifier is\n%s\n\nthe work for a foreign one is\n%s", p.what, missing, foreign)
		}
		if !strings.Contains(missing, "round trip") || !strings.Contains(missing, "pages") {
			t.Errorf("%s: its work was not recorded: %s", p.what, missing)
		}
		statements += strings.Count(missing, "run ")
	}
	t.Logf("%d routes and names, %d statements: foreign and missing identifiers cause the same work", len(probes), statements)

	control := probes[slices.IndexFunc(probes, func(p probe) bool { return p.what == "GET /conversations/{conversation_id} by conversation_id" })]
	proxy.take()
	if resp := control.ask(control.own); resp.status != 200 {
		t.Fatalf("the control: %d %s", resp.status, resp.body)
	}
	if own := proxy.take(); own == work(control, unusedID(control.name)) {
		t.Errorf("an identifier of the caller causes the same work, so this test cannot detect a difference: %s", own)
	}
}

// timedRoutes names the probes whose time is compared: reads and writes, with the identifier in the path or in the
// body, with the lookup before or after the check of the body.
var timedRoutes = []string{
	"GET /conversations/{conversation_id} by conversation_id",
	"GET /conversations/{conversation_id}/messages by conversation_id",
	"PUT /conversations/{conversation_id}/title by conversation_id",
	"POST /conversations/{conversation_id}/branches by message_id of the body",
	"GET /chat/turns/{turn_id} by turn_id",
	"GET /chat/turns/{turn_id}/events by turn_id",
	"GET /files/{file_id}/content by file_id",
	"PUT /files/uploads/{upload_id}/content by upload_id",
}

// significantT is the minimum |t| of two samples that count as samples of different distributions.
const significantT = 4.5

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
			t.Fatalf("%s is not a probe", what)
		}
		score := compare(*timingSamples, func() { p.ask(unusedID(p.name)) }, func() { p.ask(p.of) })
		t.Logf("t = %6.2f of %d samples: foreign against missing, %s", score, *timingSamples, what)
		if asserted && math.Abs(score) >= significantT {
			t.Errorf("the time of %s distinguishes a foreign identifier from a missing one", what)
		}
	}
	p := byName[timedRoutes[0]]
	score := compare(*timingSamples, func() { p.ask(unusedID(p.name)) }, func() { p.ask(p.own) })
	t.Logf("t = %6.2f of %d samples: own against missing, the control", score, *timingSamples)
	if asserted && math.Abs(score) < significantT {
		t.Error("the time does not distinguish the control, so the measurement cannot detect a difference")
	}
}

// compare returns Welch's t of the times of two functions. It calls them in pairs in a random order, so that no
// periodic disturbance affects one of them more. It leaves out the slowest twentieth of each, which the host computer causes.
func compare(samples int, first, second func()) float64 {
	var took [2][]float64
	ask := [2]func(){first, second}
	for range samples {
		order := rand.IntN(2) // only the order of samples
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
