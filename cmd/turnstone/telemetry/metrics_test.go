package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
	"turnstone/actors/turn"
	"turnstone/http/router"
	"turnstone/persistence/journal"
	"turnstone/persistence/limits/limitstest"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/providers/scanner/scannertest"
)

const root = "../../../"

// registryOf records every collector that is registered, so that a test sees metrics without values too.
type registryOf struct {
	*prometheus.Registry
	all []prometheus.Collector
}

func (r *registryOf) Register(c prometheus.Collector) error {
	r.all = append(r.all, c)
	return r.Registry.Register(c)
}

// everyMetric returns a registry with the metrics of a running node.
func everyMetric(t *testing.T) (*registryOf, *Metrics) {
	t.Helper()
	registry := &registryOf{Registry: prometheus.NewRegistry()}
	m, err := New(registry, "abc")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Collect(testSources()); err != nil {
		t.Fatal(err)
	}
	if _, err := router.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	return registry, m
}

func testSources() Sources {
	var stored journal.Stats
	stored.Appends.Store(5)
	return Sources{
		Turns:    func() turn.Stats { return turn.Stats{Live: 3, Capacity: 10, Refused: 2} },
		Renewed:  func() *time.Time { return nil },
		Draining: func() bool { return true },
		Pools: func() []pg.PoolStats {
			return []pg.PoolStats{{Name: "app", Max: 4, InUse: 1, Idle: 2, Waited: 7, WaitTime: time.Second}}
		},
		Journal:   func() *journal.Stats { return &stored },
		Streams:   func() int { return 6 },
		Readiness: func(context.Context) map[string]bool { return map[string]bool{"cache": false, "persistence": true} },
		Disk:      func() Disk { return Disk{Free: 1 << 30, Size: 1 << 40, Full: true} },
	}
}

var (
	described = regexp.MustCompile(`fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", constLabels: {[^}]*}, variableLabels: {([^}]*)}`)
	row       = regexp.MustCompile("(?m)^\\| `(turnstone_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\| ([^|]*) \\| ([^|]*) \\|$")
)

type metric struct{ kind, labels, help, unit string }

// ours returns the metrics of this service: those of the Go runtime and of the process are documented elsewhere.
func ours(t *testing.T, registry *registryOf) map[string]metric {
	t.Helper()
	found := map[string]metric{}
	for _, collector := range registry.all {
		descriptions := make(chan *prometheus.Desc)
		go func() {
			defer close(descriptions)
			collector.Describe(descriptions)
		}()
		for d := range descriptions {
			parts := described.FindStringSubmatch(d.String())
			if parts == nil {
				t.Fatalf("unexpected description %s", d)
			}
			if !strings.HasPrefix(parts[1], namespace+"_") {
				continue
			}
			found[parts[1]] = metric{kindOf(collector, parts[1]), strings.ReplaceAll(parts[3], ",", ", "), parts[2], unitOf(parts[1])}
		}
	}
	return found
}

func kindOf(c prometheus.Collector, name string) string {
	switch c.(type) {
	case prometheus.Histogram, *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

func unitOf(name string) string {
	for _, unit := range []string{"seconds", "bytes"} {
		if strings.HasSuffix(name, "_"+unit) || strings.HasSuffix(name, "_"+unit+"_total") {
			return unit
		}
	}
	return "number"
}

// TestTheMetricsPageDescribesEveryMetric checks that docs/metrics.md has a row for every metric of the registry, with its
// type, labels, meaning and unit, and no other row.
func TestTheMetricsPageDescribesEveryMetric(t *testing.T) {
	registry, _ := everyMetric(t)
	registered := ours(t, registry)
	text, err := os.ReadFile(root + "docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, found := range row.FindAllStringSubmatch(string(text), -1) {
		listed[found[1]] = true
		if is, there := registered[found[1]]; !there {
			t.Errorf("docs/metrics.md has a row for %s, which does not exist", found[1])
		} else if got := (metric{found[2], strings.ReplaceAll(found[3], "`", ""), found[4], found[5]}); got != is {
			t.Errorf("docs/metrics.md has %q for %s, want %q", got, found[1], is)
		}
	}
	var missing []string
	for name, is := range registered {
		if !listed[name] {
			labels := ""
			if is.labels != "" {
				labels = "`" + strings.ReplaceAll(is.labels, ", ", "`, `") + "`"
			}
			missing = append(missing, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", name, is.kind, labels, is.help, is.unit))
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("docs/metrics.md lacks these rows:\n%s", strings.Join(missing, "\n"))
	}
}

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	registry, m := everyMetric(t)
	touchAll(t, m)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	problems = slices.DeleteFunc(problems, func(p promlint.Problem) bool { return !strings.HasPrefix(p.Metric, namespace+"_") })
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// touchAll gives every metric that is measured at least one value.
func touchAll(t *testing.T, m *Metrics) {
	t.Helper()
	ctx, failure := t.Context(), errors.New("secret text")
	for _, err := range []error{nil, failure, &llm.Error{Code: protocol.ModelUnavailable, Err: failure}} {
		model := llmtest.Answer("text")
		if err != nil {
			model.Play = func(context.Context, int, llm.Request, func(llm.Chunk) error) error { return err }
		}
		_ = m.Model(model).Stream(ctx, llm.Request{}, func(llm.Chunk) error { return nil })
	}
	for _, err := range []error{nil, failure, &toolbox.Failure{Code: protocol.ToolCallFailed, Detail: "secret text"}} {
		tool := toolboxtest.Says(&toolbox.Spec{Name: "clock"}, func() (string, error) { return "", err })
		_, _ = m.Tools([]toolbox.Tool{tool})[0].Run(ctx, nil)
	}
	failing := make(chan error, 1)
	failing <- failure
	for content, engine := range map[string]*scannertest.Fake{"secret text": {}, scannertest.EICAR: {}, "": {Results: failing}} {
		_, _ = m.Scanner(engine).Scan(ctx, strings.NewReader(content), int64(len(content)))
	}
	var limiter limitstest.Chosen
	_, _ = m.Limiter(&limiter).Take(ctx, "chat", "secret text")
	limiter.BreakDown()
	_, _ = m.Limiter(&limiter).Take(ctx, "chat", "secret text")
	for _, err := range []error{nil, failure} {
		m.JobEnded("expire", time.Second, err)
	}
	m.Batched(3, time.Millisecond)
	m.Appended(time.Millisecond)
	m.Observer(nil).TokenDelay(time.Millisecond)
	m.Observer(nil).FirstToken(time.Millisecond)
	m.UploadEntered(protocol.UploadReady)
	m.CertificateExpires("public", time.Unix(1, 0))
}

func TestOutcomesAreCountedAndTheTextsOfErrorsAreNot(t *testing.T) {
	registry, m := everyMetric(t)
	touchAll(t, m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(families)
	if strings.Contains(text, "secret text") {
		t.Error("the text of an error became a label")
	}
	for _, name := range []string{`"ok"`, `"error"`, `"model_unavailable"`, `"tool_error"`, `"clean"`, `"malware"`} {
		if !strings.Contains(text, "value:"+name) {
			t.Errorf("no metric has the outcome %s", name)
		}
	}
}

func TestCollectedValuesAreThoseOfTheirSources(t *testing.T) {
	registry, _ := everyMetric(t)
	want := map[string]float64{
		"turnstone_turns_live": 3, "turnstone_turns_capacity": 10, "turnstone_turns_refused_total": 2,
		"turnstone_node_draining": 1, "turnstone_http_streams_open": 6, "turnstone_journal_appends_total": 5, "turnstone_disk_full": 1,
		"turnstone_database_waits_total": 7, "turnstone_database_wait_seconds_total": 1, "turnstone_database_connections_max": 4,
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		value, checked := want[family.GetName()]
		if !checked {
			continue
		}
		delete(want, family.GetName())
		if one := family.GetMetric()[0]; one.GetGauge().GetValue()+one.GetCounter().GetValue() != value {
			t.Errorf("%s is %s, want %v", family.GetName(), one, value)
		}
	}
	if len(want) > 0 {
		t.Errorf("not collected: %v", want)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP turnstone_dependency_up 1 if a dependency works, by the checks of /ready.
		# TYPE turnstone_dependency_up gauge
		turnstone_dependency_up{dependency="cache"} 0
		turnstone_dependency_up{dependency="persistence"} 1
	`), "turnstone_dependency_up"); err != nil {
		t.Error(err)
	}
}

func TestTheAgeOfTheLeaseCountsFromItsLastRenewal(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	if age := leaseAge(&long); age < time.Hour {
		t.Errorf("the lease was renewed an hour ago, and its age is %s", age)
	}
	if age := leaseAge(nil); age != 0 {
		t.Errorf("the age of a lease without a renewal is %s", age)
	}
}

func TestMeasuringAnAppendAllocatesNothing(t *testing.T) {
	_, m := everyMetric(t)
	observer := m.Observer(nil)
	if allocated := testing.AllocsPerRun(1000, func() {
		observer.TokenDelay(time.Millisecond)
		m.Appended(time.Millisecond)
		m.Batched(4, time.Millisecond)
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}
