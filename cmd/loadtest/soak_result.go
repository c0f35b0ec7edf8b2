package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What may be broken.
const (
	lostKind       = "lost"
	gapKind        = "gaps"
	changedKind    = "changed bytes"
	doubleKind     = "doubles"
	notDurableKind = "seen, not durable"
	outsideKind    = "5xx away from faults"
	unexpectedKind = "answers that are not allowed"
)

var breachKinds = []string{lostKind, gapKind, changedKind, doubleKind, notDurableKind, outsideKind, unexpectedKind}

const (
	sampleEvery = 10 * time.Second
	// keptTexts is how many breaches of a kind are told in full.
	keptTexts = 10
	mega      = 1e6
	fileTime  = "20060102T150405Z"
)

// vitals are what a process uses.
type vitals struct {
	RSS         int64 `json:"rss_bytes"`
	PSS         int64 `json:"pss_bytes"`
	Heap        int64 `json:"heap_in_use_bytes"`
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"descriptors"`
	Postgres    int   `json:"postgres_connections"`
	Redis       int   `json:"redis_connections"`
}

// soakSample is one look, and what was seen since the one before.
type soakSample struct {
	At        float64            `json:"at_seconds"`
	Process   int64              `json:"process"` // which one of the run
	LiveTurns int                `json:"live_turns"`
	Service   float64            `json:"service_cpus"`
	Postgres  float64            `json:"postgres_cpus"`
	Others    float64            `json:"others_cpus"`
	Client    int64              `json:"client_rss_bytes"`
	Vitals    *vitals            `json:"vitals,omitempty"` // none while a fault is at work
	TokenRate float64            `json:"tokens_per_second"`
	EventRate float64            `json:"events_per_second"`
	Times     map[string]*spread `json:"milliseconds"`
}

// part is a stretch of the run with all of its delays.
type part struct {
	name    string
	from    time.Duration
	times   [timings]*hdrhistogram.Histogram
	samples []*soakSample
}

// soakResult is what a run found.
type soakResult struct {
	Begun    time.Time     `json:"begun"`
	For      time.Duration `json:"for_ns"`
	Took     time.Duration `json:"took_ns"`
	Every    time.Duration `json:"fault_every_ns"`
	Seed     uint64        `json:"seed"`
	Commit   string        `json:"commit"`
	Capacity int           `json:"capacity_turns"`
	Turns    int           `json:"kept_turns"`

	Before   vitals              `json:"before"`
	After    vitals              `json:"after"`
	Faults   map[string]int      `json:"faults"`
	Longest  map[string]float64  `json:"longest_fault_seconds"`
	Breaches map[string]int      `json:"breaches"`
	Texts    map[string][]string `json:"breach_texts"`
	Statuses map[string]int      `json:"turns_ended"`
	Acks     map[string]int64    `json:"acknowledged"`
	Cuts     map[string]int      `json:"cuts_away_from_faults"`
	Database string              `json:"database"`
	Tokens   int64               `json:"tokens"`
	Events   int64               `json:"events"`

	CutsInFaults    int `json:"cuts_in_faults"`
	CutsElsewhere   int `json:"cuts_elsewhere"`
	RefusedInFaults int `json:"refused_in_faults"`
	RefusedInCrowds int `json:"refused_while_others_had_the_machine"`

	RSSGrowth float64  `json:"rss_growth_percent"`
	RSSSlope  float64  `json:"rss_slope_bytes_per_hour"`
	Failed    []string `json:"failed"`

	Samples []*soakSample `json:"samples"`

	machine machine
	mu      sync.Mutex // for all that clients note
	started time.Time
	parts   []*part
	pending []string // guarded by mu: refusals away from faults, until we know what else the machine did
	looked  time.Time

	usage   usage // at weighed
	weighed time.Time
}

func newSoakResult(c soakCommand) *soakResult {
	m := describeMachine()
	r := &soakResult{
		Begun: time.Now().UTC(), For: c.For, Every: c.FaultEvery, Seed: c.Seed, Commit: m.commit, machine: m,
		Faults: map[string]int{}, Longest: map[string]float64{}, Breaches: map[string]int{}, Texts: map[string][]string{},
		Statuses: map[string]int{}, Acks: map[string]int64{}, Cuts: map[string]int{},
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

func (r *soakResult) begin(k *soak) error {
	r.started, r.looked = time.Now(), time.Now()
	u, err := k.site.cpu()
	r.usage, r.weighed = u, time.Now()
	return err
}

func (r *soakResult) note(counter *int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
	if text != "" && (len(r.Cuts) < keptTexts || r.Cuts[text] > 0) {
		r.Cuts[text]++
	}
}

func (r *soakResult) breach(times int, kind, text string) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Breaches[kind] += times
	if told = len(r.Texts[kind]) < keptTexts; told {
		r.Texts[kind] = append(r.Texts[kind], fmt.Sprintf("%s: %s", time.Since(r.started).Round(time.Millisecond), text))
	}
	return told
}

func (r *soakResult) ended(status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Statuses[status]++
}

func (r *soakResult) struck(name string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Faults[name]++
	r.Longest[name] = max(r.Longest[name], took.Seconds())
}

// sample looks every ten seconds until ctx ends, between the moments at which faults strike.
func (k *soak) sample(ctx context.Context) {
	if wait(ctx, sampleEvery/2) != nil {
		return
	}
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.result.cut(k, false)
		}
	}
}

// cut takes a sample of what was since the last one. What is seen when no more turns begin is no part of the series.
func (r *soakResult) cut(k *soak, drained bool) {
	now := time.Now()
	over := now.Sub(r.looked).Seconds()
	r.looked = now
	times, tokens, events := k.meter.empty()
	s := &soakSample{
		At: now.Sub(r.started).Seconds(), Process: k.restarts.Load(), Times: map[string]*spread{},
		TokenRate: float64(tokens) / over, EventRate: float64(events) / over,
	}
	place := r.parts[0]
	for _, one := range r.parts {
		if now.Sub(r.started) > one.from+sampleEvery/2 {
			place = one
		}
	}
	for what, h := range times {
		if h.TotalCount() > 0 {
			each := spreadOf(h)
			s.Times[timingNames[what]] = &each
		}
		place.times[what].Merge(h)
	}
	r.Tokens, r.Events = r.Tokens+tokens, r.Events+events
	if k.weigh(s) {
		r.judgeRefusals(k, s.Others)
	}
	if drained {
		return
	}
	place.samples, r.Samples = append(place.samples, s), append(r.Samples, s)
	memory := "–"
	if s.Vitals != nil {
		memory = fmt.Sprintf("%.0f MB, %d goroutines, %d descriptors", float64(s.Vitals.RSS)/mega, s.Vitals.Goroutines, s.Vitals.Descriptors)
	}
	delay := spreadOf(times[tokenTime])
	k.say("%5.0f s: %d live, %.0f tokens/s, delay p50 %.1f p99 %.1f ms; %s; CPUs %.2f, Postgres %.2f, others %.2f",
		s.At, s.LiveTurns, s.TokenRate, delay.P50, delay.P99, memory, s.Service, s.Postgres, s.Others)
}

// crowded is the share of the processors that others must have for a refusal to be theirs: a service that gets no
// processor in time answers 503, as it should.
const crowded = 0.7

// refused keeps a 503 away from faults until the sample tells what else the machine did.
func (r *soakResult) refused(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, text)
}

func (r *soakResult) judgeRefusals(k *soak, others float64) {
	r.mu.Lock()
	pending := r.pending
	r.pending = nil
	theirs := others >= crowded*float64(r.machine.processors)
	if theirs {
		r.RefusedInCrowds += len(pending)
	}
	r.mu.Unlock()
	if theirs {
		return
	}
	for _, text := range pending {
		k.breach(outsideKind, "%s (others had %.2f processors)", text, others)
	}
}

// sinceLast is what was used since; a process that is a new one has used all of it since.
func (u usage) sinceLast(before usage) usage {
	if u.service < before.service {
		before.service = 0
	}
	if u.postgres < before.postgres {
		before.postgres = 0
	}
	return u.minus(before)
}

// weigh adds what the processes use, unless one of them is away; timed says whether processor times are known.
func (k *soak) weigh(s *soakSample) (timed bool) {
	if !k.processes.TryRLock() {
		return false
	}
	defer k.processes.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), sampleEvery/2)
	defer cancel()
	if u, err := k.site.cpu(); err == nil {
		now := time.Now()
		if over := now.Sub(k.result.weighed).Seconds(); !k.result.weighed.IsZero() {
			d := u.sinceLast(k.result.usage)
			timed = true
			s.Service, s.Postgres, s.Others = d.service.Seconds()/over, d.postgres.Seconds()/over, d.foreign().Seconds()/over
		}
		k.result.usage, k.result.weighed = u, now
	}
	if v, err := k.look(ctx); err == nil {
		s.Vitals = &v
	}
	if live, err := k.site.metric(ctx, "turnstone_turns_live"); err == nil {
		s.LiveTurns = int(live)
	}
	if text, err := os.ReadFile("/proc/self/smaps_rollup"); err == nil {
		s.Client, _ = parseMemory(text, "Rss:") // told only
	}
	return timed
}

// look reads what the service's process uses.
func (k *soak) look(ctx context.Context) (v vitals, err error) {
	pid := k.site.service.pid()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return v, err
	}
	var errs [6]error
	v.RSS, errs[0] = parseMemory(text, "Rss:")
	v.PSS, errs[1] = parseMemory(text, "Pss:")
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	v.Descriptors, errs[2] = len(entries), err
	metrics, err := k.site.metrics(ctx)
	if err != nil {
		return v, err
	}
	v.Goroutines, v.Heap = int(metrics["go_goroutines"]), int64(metrics["go_memstats_heap_inuse_bytes"])
	for name, value := range metrics {
		if strings.HasPrefix(name, "turnstone_database_connections{") {
			v.Postgres += int(value)
		}
	}
	v.Redis, errs[3] = redisClients(ctx, k.site.redis.URL())
	return v, errors.Join(errs[:]...)
}

// redisClients is how many connections a Redis has beside ours.
func redisClients(ctx context.Context, address string) (int, error) {
	at, err := url.Parse(address)
	if err != nil {
		return 0, err
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", at.Path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, err
	}
	if _, err := conn.Write([]byte("INFO clients\r\n")); err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if count, found := strings.CutPrefix(lines.Text(), "connected_clients:"); found {
			n, err := strconv.Atoi(strings.TrimSpace(count))
			return n - 1, err
		}
	}
	return 0, errors.New("redis tells no clients")
}

// finish draws the verdict.
func (r *soakResult) finish(k *soak) {
	r.Took = time.Since(r.Begun)
	a := &k.acks
	for name, n := range map[string]int64{
		"starts": a.starts.Load(), "ends": a.ends.Load(), "inputs": a.steers.Load(), "cancels": a.cancels.Load(), "queue items": a.queued.Load(),
		"drafts and titles": a.writes.Load(), "readers that left and came again": a.returns.Load(), "turns read again": a.rereads.Load(),
	} {
		r.Acks[name] = n
	}
	for _, kind := range breachKinds {
		if n := r.Breaches[kind]; n > 0 {
			r.Failed = append(r.Failed, fmt.Sprintf("%s: %d", kind, n))
		}
	}
	second, last := middle(r.parts[2].samples, rssOf), middle(r.parts[4].samples, rssOf)
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
	if r.For-r.parts[1].from >= leastStretch && r.RSSGrowth > rssGrowth {
		r.Failed = append(r.Failed, fmt.Sprintf("memory grew by %.1f %%", r.RSSGrowth))
	}
	r.Failed = append(r.Failed, slipped(r.Before, r.After)...)
}

// slipped tells what did not come back to where it began.
func slipped(before, after vitals) (list []string) {
	for _, each := range []struct {
		name          string
		before, after int
	}{
		{"goroutines", before.Goroutines, after.Goroutines},
		{"descriptors", before.Descriptors, after.Descriptors},
		{"Postgres connections", before.Postgres, after.Postgres},
		{"Redis connections", before.Redis, after.Redis},
	} {
		if each.after > each.before+baselineSlip {
			list = append(list, fmt.Sprintf("%d %s at rest, %d before", each.after, each.name, each.before))
		}
	}
	return list
}

func rssOf(s *soakSample) float64 {
	if s.Vitals == nil {
		return 0
	}
	return float64(s.Vitals.RSS)
}

// middle is the median of what samples have of something.
func middle(list []*soakSample, of func(*soakSample) float64) float64 {
	var values samples
	for _, one := range list {
		if v := of(one); v > 0 {
			values = append(values, v)
		}
	}
	return values.median()
}

func (r *soakResult) write(folder string) error {
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

func (r *soakResult) markdown() string {
	var out strings.Builder
	faults := 0
	for _, n := range r.Faults {
		faults += n
	}
	out.WriteString("# Soak\n\nWritten by `make soak`. A share of the measured capacity is kept alive for long, open loop, with all of the product's\n" +
		"ordinary traffic: turns of every length, readers that go and come again, inputs, cancels, queue items, drafts, titles,\n" +
		"pages and lists. Meanwhile something breaks again and again. Clients hold the service to what it acknowledged, and the\n" +
		"database is held against what the clients know at the end.\n\n")
	out.WriteString(r.machine.markdown(r.Took))
	fmt.Fprintf(&out, "\n%s with %s live turns at %d tokens/s", r.For, number(float64(r.Turns)), tokensASecond)
	if r.Capacity > 0 {
		fmt.Fprintf(&out, ", %.0f %% of a measured capacity of %s in the same traffic", 100*float64(r.Turns)/float64(r.Capacity), number(float64(r.Capacity)))
	}
	fmt.Fprintf(&out, "; %d faults, one every %s; seed %d. %s tokens in %s events were read.\n\n", faults, r.Every, r.Seed, number(float64(r.Tokens)), number(float64(r.Events)))
	out.WriteString("## Verdict\n\n" + r.verdict().markdown())
	out.WriteString("\nDelays drift with the machine's other work, so they are told and judge nothing; see others' CPUs below.\n")
	fmt.Fprintf(&out, "\n## What was acknowledged, and held to\n\n%s", counted("what", r.Acks).markdown())
	fmt.Fprintf(&out, "\nThe database has %s. Turns ended: %s.\n", r.Database, inline(r.Statuses))
	fmt.Fprintf(&out, "\n%d requests were refused (503) and %d connections broke in faults or within %s of one; %d connections broke at other\n"+
		"times. %d requests were refused in ten seconds in which processes that are no part of this had more than %.0f %% of the\nprocessors.\n",
		r.RefusedInFaults, r.CutsInFaults, settleAfter, r.CutsElsewhere, r.RefusedInCrowds, crowded*100)
	out.WriteString("\n## Faults\n\n" + r.faultTable().markdown())
	out.WriteString("\n## By quarter\n\nThe service is ended and started again in the first part of the run only. The rest is the life of one process, in four\nquarters. Delays are in milliseconds, away from faults unless it says otherwise.\n\n" + r.partTable().markdown())
	out.WriteString("\nA token counts from when it was due until its reader had it, a first event from when the start was due, an append from an\n" +
		"input or a cancel until its 202 (one append to the turn's log), a write from a draft or a title until its answer.\n")
	return out.String()
}

// verdict is what was wanted and what came.
func (r *soakResult) verdict() *table {
	t := newTable("what", "seen", "must", "")
	say := func(met bool) string {
		if met {
			return "met"
		}
		return "**not met**"
	}
	for _, kind := range breachKinds {
		t.add(kind, r.Breaches[kind], 0, say(r.Breaches[kind] == 0))
	}
	judged := say(r.RSSGrowth <= rssGrowth)
	if r.For-r.parts[1].from < leastStretch {
		judged = "too short to say"
	}
	t.add("memory (RSS), last quarter against the second", fmt.Sprintf("%+.1f %%, slope %+.1f MB an hour", r.RSSGrowth, r.RSSSlope/mega), fmt.Sprintf("≤ +%.0f %%", rssGrowth), judged)
	for _, each := range []struct {
		name          string
		before, after int
	}{
		{"goroutines at rest", r.Before.Goroutines, r.After.Goroutines},
		{"descriptors at rest", r.Before.Descriptors, r.After.Descriptors},
		{"Postgres connections at rest", r.Before.Postgres, r.After.Postgres},
		{"Redis connections at rest", r.Before.Redis, r.After.Redis},
	} {
		t.add(each.name+", after against before", fmt.Sprintf("%d, %d", each.after, each.before), fmt.Sprintf("≤ +%d", baselineSlip), say(each.after <= each.before+baselineSlip))
	}
	for _, what := range []int{firstTime, appendTime, tokenTime} {
		drift := spreadOf(r.parts[4].times[what]).P99 / spreadOf(r.parts[2].times[what]).P99
		t.add("p99 of "+timingNames[what]+", last quarter against the second", number(drift)+" ×", fmt.Sprintf("≤ %.1f ×", latencyDrift), "told")
	}
	return t
}

func counted[N int | int64](head string, of map[string]N) *table {
	t := newTable(head, "times")
	for _, name := range slices.Sorted(maps.Keys(of)) {
		t.add(name, number(float64(of[name])))
	}
	return t
}

func inline(of map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, number(float64(of[name]))+" "+name)
	}
	return strings.Join(list, ", ")
}

func (r *soakResult) faultTable() *table {
	t := newTable("fault", "times", "longest s, until what was stopped served again")
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		t.add(name, r.Faults[name], r.Longest[name])
	}
	return t
}

func (r *soakResult) partTable() *table {
	head := []string{""}
	for _, one := range r.parts {
		head = append(head, one.name)
	}
	t := newTable(head...)
	row := func(name string, of func(*part) string) {
		cells := []any{name}
		for _, one := range r.parts {
			cells = append(cells, of(one))
		}
		t.add(cells...)
	}
	row("from", func(p *part) string { return p.from.Round(time.Second).String() })
	for what, name := range timingNames {
		row(name+": p50, p99, max", func(p *part) string {
			if p.times[what].TotalCount() == 0 {
				return "–"
			}
			s := spreadOf(p.times[what])
			return number(s.P50) + ", " + number(s.P99) + ", " + number(s.Max)
		})
	}
	for _, each := range []struct {
		name string
		of   func(*soakSample) float64
	}{
		{"tokens/s", func(s *soakSample) float64 { return s.TokenRate }},
		{"live turns", func(s *soakSample) float64 { return float64(s.LiveTurns) }},
		{"RSS MB", func(s *soakSample) float64 { return rssOf(s) / mega }},
		{"PSS MB", vital(func(v *vitals) float64 { return float64(v.PSS) / mega })},
		{"heap in use MB", vital(func(v *vitals) float64 { return float64(v.Heap) / mega })},
		{"goroutines", vital(func(v *vitals) float64 { return float64(v.Goroutines) })},
		{"descriptors", vital(func(v *vitals) float64 { return float64(v.Descriptors) })},
		{"Postgres connections", vital(func(v *vitals) float64 { return float64(v.Postgres) })},
		{"Redis connections", vital(func(v *vitals) float64 { return float64(v.Redis) })},
		{"the service's CPUs", func(s *soakSample) float64 { return s.Service }},
		{"Postgres' CPUs", func(s *soakSample) float64 { return s.Postgres }},
		{"others' CPUs", func(s *soakSample) float64 { return s.Others }},
		{"the load client's RSS MB", func(s *soakSample) float64 { return float64(s.Client) / mega }},
	} {
		row(each.name, func(p *part) string { return number(middle(p.samples, each.of)) })
	}
	return t
}

func vital(of func(*vitals) float64) func(*soakSample) float64 {
	return func(s *soakSample) float64 {
		if s.Vitals == nil {
			return 0
		}
		return of(s.Vitals)
	}
}
