package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

// The kinds of breaches.
const (
	lostKind       = string(verify.Lost)
	gapKind        = string(verify.Gaps)
	changedKind    = string(verify.Changed)
	duplicateKind  = "duplicates"
	notDurableKind = "seen, but not durable"
	outsideKind    = "5xx away from faults"
	brokenKind     = "connections broken away from faults"
	unexpectedKind = "unexpected responses"
)

// breachKind returns the kind of a breach that a reader found.
func breachKind(found verify.Kind) string {
	switch found {
	case verify.Lost, verify.Gaps, verify.Changed:
		return string(found)
	case verify.Malformed:
		return unexpectedKind
	}
	return duplicateKind
}

var breachKinds = []string{lostKind, gapKind, changedKind, duplicateKind, notDurableKind, outsideKind, brokenKind, unexpectedKind}

const (
	sampleInterval = 10 * time.Second
	// maxTexts is the number of breaches of a kind whose texts are stored.
	maxTexts = 10
	mega     = 1e6
	fileTime = "20060102T150405Z"
)

// sample holds the resources at one time, and the rates and delays since the previous sample.
type sample struct {
	At        float64                 `json:"at_seconds"`
	Process   int64                   `json:"process"` // restarts of the service so far
	LiveTurns int                     `json:"live_turns"`
	Service   float64                 `json:"service_cpus"`
	Postgres  float64                 `json:"postgres_cpus"`
	Others    float64                 `json:"others_cpus"`
	Client    int64                   `json:"client_rss_bytes"`
	Vitals    *resources              `json:"vitals,omitempty"` // nil if unreadable, for example during a restart
	TokenRate float64                 `json:"tokens_per_second"`
	EventRate float64                 `json:"events_per_second"`
	Times     map[string]*load.Spread `json:"milliseconds"`
}

// part is a section of the run, with all of its delays and samples.
type part struct {
	name    string
	from    time.Duration
	times   [timings]*hdrhistogram.Histogram
	samples []*sample
}

// result is the result of a run. It is written as JSON and as a document.
type result struct {
	Begun    time.Time     `json:"begun"`
	For      time.Duration `json:"for_ns"`
	Took     time.Duration `json:"took_ns"`
	Every    time.Duration `json:"fault_every_ns"`
	Seed     uint64        `json:"seed"`
	Commit   string        `json:"commit"`
	Capacity int           `json:"capacity_turns"`
	Turns    int           `json:"kept_turns"`

	Before   resources           `json:"before"`
	After    resources           `json:"after"`
	Slow     []string            `json:"slow_routes,omitempty"`
	Faults   map[string]int      `json:"faults"`
	Longest  map[string]float64  `json:"longest_fault_seconds"`
	Breaches map[string]int      `json:"breaches"`
	Texts    map[string][]string `json:"breach_texts"`
	Statuses map[string]int      `json:"turns_ended"`
	Acks     map[string]int64    `json:"acknowledged"`
	Database string              `json:"database"`
	Tokens   int64               `json:"tokens"`
	Events   int64               `json:"events"`

	CutsInFaults    int `json:"cuts_in_faults"`
	RefusedInFaults int `json:"refused_in_faults"`

	RSSGrowth float64  `json:"rss_growth_percent"`
	RSSSlope  float64  `json:"rss_slope_bytes_per_hour"`
	Failed    []string `json:"failed"`

	Samples []*sample `json:"samples"`

	host      figures.Host
	mu        sync.Mutex // guards the counters and texts that clients update
	started   time.Time
	parts     []*part
	sampledAt time.Time

	usage   site.Usage // CPU times at usageAt
	usageAt time.Time
}

func newResult(c Command) *result {
	m := figures.ThisHost()
	r := &result{
		Begun: time.Now().UTC(), For: c.For, Every: c.FaultEvery, Seed: c.Seed, Commit: m.Commit, host: m,
		Faults: map[string]int{}, Longest: map[string]float64{}, Breaches: map[string]int{}, Texts: map[string][]string{},
		Statuses: map[string]int{}, Acks: map[string]int64{},
	}
	for _, kind := range breachKinds {
		r.Breaches[kind] = 0
	}
	restarts := time.Duration(restartShare * float64(c.For))
	r.parts = append(r.parts, &part{name: "with restarts", times: newTimes()})
	for i := range 4 {
		from := restarts + time.Duration(i)*(c.For-restarts)/4
		r.parts = append(r.parts, &part{name: "quarter " + strconv.Itoa(i+1), from: from, times: newTimes()})
	}
	return r
}

func (r *result) begin(k *soak) error {
	r.started, r.sampledAt = time.Now(), time.Now()
	u, err := k.site.CPU()
	r.usage, r.usageAt = u, time.Now()
	return err
}

func (r *result) count(counter *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
}

func (r *result) breach(times int, kind, text string) (shown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Breaches[kind] += times
	if shown = len(r.Texts[kind]) < maxTexts; shown {
		r.Texts[kind] = append(r.Texts[kind], fmt.Sprintf("%s: %s", time.Since(r.started).Round(time.Millisecond), text))
	}
	return shown
}

func (r *result) ended(status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Statuses[status]++
}

func (r *result) recordFault(name string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Faults[name]++
	r.Longest[name] = max(r.Longest[name], took.Seconds())
}

// sample takes a sample every ten seconds until ctx ends. It starts after half that time, so that samples fall between
// the planned times of faults.
func (k *soak) sample(ctx context.Context) {
	if clock.Sleep(ctx, sampleInterval/2) != nil {
		return
	}
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.result.takeSample(k, false)
		}
	}
}

// takeSample takes a sample of the time since the previous one. If drained is set, no more turns start: delays and
// counts are still added up, but the sample is not part of the series.
func (r *result) takeSample(k *soak, drained bool) {
	now := time.Now()
	over := now.Sub(r.sampledAt).Seconds()
	r.sampledAt = now
	times, tokens, events := k.meter.empty()
	s := &sample{
		At: now.Sub(r.started).Seconds(), Process: k.restarts.Load(), Times: map[string]*load.Spread{},
		TokenRate: float64(tokens) / over, EventRate: float64(events) / over,
	}
	current := r.parts[0]
	for _, one := range r.parts {
		if now.Sub(r.started) > one.from+sampleInterval/2 {
			current = one
		}
	}
	for what, h := range times {
		if h.TotalCount() > 0 {
			each := load.SpreadOf(h)
			s.Times[timingNames[what]] = &each
		}
		current.times[what].Merge(h)
	}
	r.Tokens, r.Events = r.Tokens+tokens, r.Events+events
	k.addResources(s)
	if drained {
		return
	}
	current.samples, r.Samples = append(current.samples, s), append(r.Samples, s)
	memory := "–"
	if s.Vitals != nil {
		memory = fmt.Sprintf("%.0f MB, %d goroutines, %d descriptors", float64(s.Vitals.RSS)/mega, s.Vitals.Goroutines, s.Vitals.Descriptors)
	}
	delay := load.SpreadOf(times[tokenTime])
	k.Say("%5.0f s: %d live, %.0f tokens/s, delay p50 %.1f p99 %.1f ms; %s; CPUs %.2f, Postgres %.2f, others %.2f",
		s.At, s.LiveTurns, s.TokenRate, delay.P50, delay.P99, memory, s.Service, s.Postgres, s.Others)
}

// addResources adds the resources of the processes to a sample, unless one of them is being restarted.
func (k *soak) addResources(s *sample) {
	if !k.processes.TryRLock() {
		return
	}
	defer k.processes.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), sampleInterval/2)
	defer cancel()
	if u, err := k.site.CPU(); err == nil {
		now := time.Now()
		if over := now.Sub(k.result.usageAt).Seconds(); !k.result.usageAt.IsZero() {
			d := u.SinceLast(k.result.usage)
			s.Service, s.Postgres, s.Others = d.Service.Seconds()/over, d.Postgres.Seconds()/over, d.Others().Seconds()/over
		}
		k.result.usage, k.result.usageAt = u, now
	}
	if v, err := k.readVitals(ctx); err == nil {
		s.Vitals = &v
	}
	if live, err := k.site.Metric(ctx, "turnstone_turns_live"); err == nil {
		s.LiveTurns = int(live)
	}
	if text, err := os.ReadFile("/proc/self/smaps_rollup"); err == nil {
		s.Client, _ = site.ParseMemory(text, "Rss:") // for information only, so an error is ignored
	}
}

// finish computes the totals and lists the failures.
func (r *result) finish(k *soak) {
	r.Took = time.Since(r.Begun)
	a := &k.acks
	for name, n := range map[string]int64{
		"starts": a.starts.Load(), "turns ended": a.ends.Load(), "inputs": a.steers.Load(), "cancels": a.cancels.Load(), "follow-ups": a.queued.Load(),
		"drafts and titles": a.writes.Load(), "readers that left and resumed": a.returns.Load(), "turns read again": a.rereads.Load(),
	} {
		r.Acks[name] = n
	}
	for _, kind := range breachKinds {
		if n := r.Breaches[kind]; n > 0 {
			r.Failed = append(r.Failed, fmt.Sprintf("%s: %d", kind, n))
		}
	}
	second, last := medianOf(r.parts[2].samples, rssOf), medianOf(r.parts[4].samples, rssOf)
	r.RSSGrowth = growth(second, last)
	var hours, sizes []float64
	for _, one := range r.parts[2:] {
		for _, s := range one.samples {
			if s.Vitals != nil {
				hours, sizes = append(hours, s.At/time.Hour.Seconds()), append(sizes, float64(s.Vitals.RSS))
			}
		}
	}
	r.RSSSlope = slope(hours, sizes)
	if r.long() {
		if !(r.RSSGrowth <= rssGrowth) { // also if it is not a number
			r.Failed = append(r.Failed, fmt.Sprintf("memory grew by %.1f %%", r.RSSGrowth))
		}
		for _, what := range judgedDrifts {
			if drift := r.drift(what); !(drift <= delayDrift) {
				r.Failed = append(r.Failed, fmt.Sprintf("the p99 of %s grew to %.2f times", timingNames[what], drift))
			}
		}
	}
	r.Failed = append(append(r.Failed, leaks(r.Before, r.After)...), r.Slow...)
}

// long reports whether the run is long enough to measure growth and drift.
func (r *result) long() bool { return r.For-r.parts[1].from >= leastStretch }

// judgedDrifts are the delays that must not grow during a run.
var judgedDrifts = []int{firstTime, appendTime}

// drift returns the p99 of a delay in the last quarter, divided by that in the second.
func (r *result) drift(what int) float64 {
	return load.SpreadOf(r.parts[4].times[what]).P99 / load.SpreadOf(r.parts[2].times[what]).P99
}

func rssOf(s *sample) float64 {
	if s.Vitals == nil {
		return 0
	}
	return float64(s.Vitals.RSS)
}

// medianOf returns the median of a value over samples. A sample without the value has 0 and does not count.
func medianOf(list []*sample, of func(*sample) float64) float64 {
	var values figures.Samples
	for _, one := range list {
		if v := of(one); v > 0 {
			values = append(values, v)
		}
	}
	return values.Median()
}

func (r *result) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if math.IsNaN(r.RSSGrowth) { // JSON has no NaN
		r.RSSGrowth = 0
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, r.Begun.Format(fileTime)+".json"), append(text, '\n'), 0o644)
}

func (r *result) markdown() string {
	var out strings.Builder
	faults := 0
	for _, n := range r.Faults {
		faults += n
	}
	out.WriteString("# Soak\n\nWritten by `make soak`. The test runs a share of the measured capacity for a long time, as an open-loop load with all of\n" +
		"the product's ordinary traffic: turns of every length, readers that disconnect and resume, steering inputs, cancels,\n" +
		"follow-ups, drafts, titles, pages and lists. Meanwhile it injects faults at regular intervals. The clients check that\n" +
		"whatever the service acknowledged took effect. At the end the database is compared with what the clients know.\n\n")
	out.WriteString(r.host.Markdown(r.Took))
	fmt.Fprintf(&out, "\n%s with %s live turns at %d tokens/s", r.For, figures.Number(float64(r.Turns)), load.TokensPerSecond)
	if r.Capacity > 0 {
		fmt.Fprintf(&out, ", %.0f %% of a measured capacity of %s in the same traffic", 100*float64(r.Turns)/float64(r.Capacity), figures.Number(float64(r.Capacity)))
	}
	fmt.Fprintf(&out, "; %d faults, one every %s; seed %d. %s tokens in %s events were read.\n\n", faults, r.Every, r.Seed, figures.Number(float64(r.Tokens)), figures.Number(float64(r.Events)))
	out.WriteString("## Verdict\n\n" + r.verdict().Markdown())
	fmt.Fprintf(&out, "\n## Acknowledged operations that were checked\n\n%s", counted("operation", r.Acks).Markdown())
	fmt.Fprintf(&out, "\nThe database has %s. Turns by final status: %s.\n", r.Database, inline(r.Statuses))
	fmt.Fprintf(&out, "\n%d requests were refused (503) and %d connections broke during a fault or within %s after it.\n", r.RefusedInFaults, r.CutsInFaults, settleAfter)
	out.WriteString("\n## Faults\n\n" + r.faultTable().Markdown())
	out.WriteString("\n## By quarter\n\nFaults restart the service in the first part of the run only. " +
		"A single process runs through the rest, which is divided\ninto four quarters. " +
		"Delays are in milliseconds, and exclude faults unless a row says otherwise.\n\n" + r.partTable().Markdown())
	out.WriteString("\nThe delay of a token is the time from when it was due until its reader had it; that of a first event starts when the\n" +
		"turn's start was due. An append is timed from an input or a cancel to its 202 (one append to the turn's log), a write from\n" +
		"a draft or a title to its response, a read from a request for a page or a list to its response.\n")
	return out.String()
}

// verdict returns the table of checks, with what was measured, the limit and the result.
func (r *result) verdict() *figures.Table {
	t := figures.NewTable("check", "measured", "must", "")
	say := func(met bool) string {
		if met {
			return "met"
		}
		return "**not met**"
	}
	for _, kind := range breachKinds {
		t.Add(kind, r.Breaches[kind], 0, say(r.Breaches[kind] == 0))
	}
	if r.long() {
		t.Add("memory (RSS), last quarter compared with the second", fmt.Sprintf("%+.1f %%, slope %+.1f MB per hour", r.RSSGrowth, r.RSSSlope/mega),
			fmt.Sprintf("≤ +%.0f %%", rssGrowth), say(r.RSSGrowth <= rssGrowth))
		for _, what := range judgedDrifts {
			t.Add("p99 of "+timingNames[what]+", last quarter divided by the second", figures.Number(r.drift(what))+" ×", fmt.Sprintf("≤ %.1f ×", delayDrift), say(r.drift(what) <= delayDrift))
		}
	}
	for _, each := range []struct {
		name          string
		before, after int
	}{
		{"goroutines at rest", r.Before.Goroutines, r.After.Goroutines},
		{"descriptors at rest", r.Before.Descriptors, r.After.Descriptors},
		{"Postgres connections at rest", r.Before.Postgres, r.After.Postgres},
		{"Redis connections at rest", r.Before.Redis, r.After.Redis},
	} {
		t.Add(each.name+", after and before", fmt.Sprintf("%d, %d", each.after, each.before), fmt.Sprintf("≤ +%d", restTolerance), say(each.after <= each.before+restTolerance))
	}
	t.Add("processors used at rest, after and before", fmt.Sprintf("%.2f, %.2f", r.After.Processors, r.Before.Processors), fmt.Sprintf("≤ %.1f", busyAtRest), say(r.After.Processors <= busyAtRest))
	return t
}

func counted[N int | int64](head string, of map[string]N) *figures.Table {
	t := figures.NewTable(head, "count")
	for _, name := range slices.Sorted(maps.Keys(of)) {
		t.Add(name, figures.Number(float64(of[name])))
	}
	return t
}

func inline(of map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, figures.Number(float64(of[name]))+" "+name)
	}
	return strings.Join(list, ", ")
}

func (r *result) faultTable() *figures.Table {
	t := figures.NewTable("fault", "count", "longest in s, until a stopped process served again")
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		t.Add(name, r.Faults[name], r.Longest[name])
	}
	return t
}

func (r *result) partTable() *figures.Table {
	head := []string{""}
	for _, one := range r.parts {
		head = append(head, one.name)
	}
	t := figures.NewTable(head...)
	row := func(name string, of func(*part) string) {
		cells := []any{name}
		for _, one := range r.parts {
			cells = append(cells, of(one))
		}
		t.Add(cells...)
	}
	row("from", func(p *part) string { return p.from.Round(time.Second).String() })
	for what, name := range timingNames {
		row(name+": p50, p99, max", func(p *part) string {
			if p.times[what].TotalCount() == 0 {
				return "–"
			}
			s := load.SpreadOf(p.times[what])
			return figures.Number(s.P50) + ", " + figures.Number(s.P99) + ", " + figures.Number(s.Max)
		})
	}
	for _, each := range []struct {
		name string
		of   func(*sample) float64
	}{
		{"tokens/s", func(s *sample) float64 { return s.TokenRate }},
		{"live turns", func(s *sample) float64 { return float64(s.LiveTurns) }},
		{"RSS MB", func(s *sample) float64 { return rssOf(s) / mega }},
		{"PSS MB", vital(func(v *resources) float64 { return float64(v.PSS) / mega })},
		{"heap in use MB", vital(func(v *resources) float64 { return float64(v.Heap) / mega })},
		{"goroutines", vital(func(v *resources) float64 { return float64(v.Goroutines) })},
		{"descriptors", vital(func(v *resources) float64 { return float64(v.Descriptors) })},
		{"Postgres connections", vital(func(v *resources) float64 { return float64(v.Postgres) })},
		{"Redis connections", vital(func(v *resources) float64 { return float64(v.Redis) })},
		{"the service's CPUs", func(s *sample) float64 { return s.Service }},
		{"Postgres' CPUs", func(s *sample) float64 { return s.Postgres }},
		{"others' CPUs", func(s *sample) float64 { return s.Others }},
		{"the load client's RSS MB", func(s *sample) float64 { return float64(s.Client) / mega }},
	} {
		row(each.name, func(p *part) string { return figures.Number(medianOf(p.samples, each.of)) })
	}
	return t
}

// vital returns a function that reads a value of a sample's vitals, or 0 if the sample has none.
func vital(of func(*resources) float64) func(*sample) float64 {
	return func(s *sample) float64 {
		if s.Vitals == nil {
			return 0
		}
		return of(s.Vitals)
	}
}
