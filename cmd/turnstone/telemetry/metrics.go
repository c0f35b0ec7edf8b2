package telemetry

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"turnstone/actors/observe"
	"turnstone/protocol"
)

// The buckets of histograms, in seconds.
var (
	// storeBuckets are for one operation of a store on the same network.
	storeBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	// delayBuckets are for the delay of a token. The goal is a p99 of 100 ms.
	delayBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	// waitBuckets are for what a user waits for: the first token, a tool, a scan.
	waitBuckets = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	// workBuckets are for work in the background and whole answers.
	workBuckets = []float64{.01, .05, .25, 1, 5, 15, 60, 300, 1800}
	// batchBuckets are numbers of appends in one statement, up to the limit of the journal.
	batchBuckets = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
)

// Metrics has the metrics that are measured when something happens. Sources has those that are read for each request of
// /metrics. Its methods may be called from any goroutine. Observing takes no lock and allocates nothing on the path of a
// token: those metrics have no labels.
type Metrics struct {
	registry prometheus.Registerer

	tokenDelay, firstToken, appendTime, statementTime, batchAppends prometheus.Histogram

	modelCalls    *prometheus.HistogramVec
	modelFirst    *prometheus.HistogramVec
	toolCalls     *prometheus.HistogramVec
	jobs          *prometheus.HistogramVec
	scans         *prometheus.HistogramVec
	limiter       prometheus.Histogram
	limiterErrors *prometheus.CounterVec
	uploads       *prometheus.CounterVec
	research      *prometheus.CounterVec
	certificates  *prometheus.GaugeVec
}

// New registers the metrics. build is the commit of the binary; empty: unknown.
func New(registry prometheus.Registerer, build string) (*Metrics, error) {
	m := &Metrics{
		registry: registry,
		tokenDelay: histogram("token_delay_seconds", "From the publication of a stored batch of events until its bytes are ready for the connection "+
			"of the first reader; one sample for each batch.", delayBuckets),
		firstToken:    histogram("turn_first_token_seconds", "From the start of a turn until its first text is visible.", waitBuckets),
		appendTime:    histogram("journal_append_seconds", "From the submission of an append until it is stored.", storeBuckets),
		statementTime: histogram("journal_statement_seconds", "Duration of a statement that stored appends.", storeBuckets),
		batchAppends:  histogram("journal_batch_appends", "Appends that one statement stored.", batchBuckets),
		modelCalls:    histograms("model_call_seconds", "Duration of a model call, by the family of the provider and the outcome.", workBuckets, "provider", "outcome"),
		modelFirst:    histograms("model_first_chunk_seconds", "From the start of a model call until its first chunk.", waitBuckets, "provider"),
		toolCalls:     histograms("tool_call_seconds", "Duration of a tool call, by the tool and the outcome.", waitBuckets, "tool", "outcome"),
		jobs:          histograms("job_seconds", "Duration of a run of a background job, by its kind and the outcome.", workBuckets, "kind", "outcome"),
		scans:         histograms("scan_seconds", "Duration of a malware scan, by its verdict.", waitBuckets, "verdict"),
		limiter:       histogram("limiter_seconds", "Duration of a decision of the limiter.", storeBuckets),
		limiterErrors: counters("limiter_errors_total", "Requests for which the limiter could not decide, by bucket.", "bucket"),
		uploads:       counters("uploads_total", "Uploads that entered a state on this node.", "state"),
		research:      counters("research_tasks_total", "Research tasks that entered a state on this node.", "state"),
		certificates:  gauges("certificate_expiry_timestamp_seconds", "Time at which a certificate expires, since 1970.", "certificate"),
	}
	buildInfo := gauges("build_info", "Always 1; the labels name the commit and the Go version of the binary.", "build", "go")
	goVersion := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
	}
	buildInfo.WithLabelValues(build, goVersion).Set(1)
	return m, register(registry,
		m.tokenDelay, m.firstToken, m.appendTime, m.statementTime, m.batchAppends, m.modelCalls, m.modelFirst, m.toolCalls, m.jobs, m.scans,
		m.limiter, m.limiterErrors, m.uploads, m.research, m.certificates, buildInfo,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

const namespace = "turnstone"

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func register(registry prometheus.Registerer, all ...prometheus.Collector) error {
	var failures []error
	for _, one := range all {
		failures = append(failures, registry.Register(one))
	}
	return errors.Join(failures...)
}

// Observer returns what a node reports to. tracer may be nil.
func (m *Metrics) Observer(tracer trace.Tracer) observe.Observer {
	return observe.Observer{
		Tracer:     tracer,
		TokenDelay: func(took time.Duration) { m.tokenDelay.Observe(took.Seconds()) },
		FirstToken: func(took time.Duration) { m.firstToken.Observe(took.Seconds()) },
	}
}

// Appended counts an append that the journal stored.
func (m *Metrics) Appended(took time.Duration) { m.appendTime.Observe(took.Seconds()) }

// Batched counts a statement that stored appends.
func (m *Metrics) Batched(appends int, took time.Duration) {
	m.batchAppends.Observe(float64(appends))
	m.statementTime.Observe(took.Seconds())
}

// JobEnded counts a run of a background job.
func (m *Metrics) JobEnded(kind string, took time.Duration, err error) {
	m.jobs.WithLabelValues(kind, outcome(err == nil)).Observe(took.Seconds())
}

// ResearchEntered counts a research task that entered a state.
func (m *Metrics) ResearchEntered(state protocol.ResearchState) {
	m.research.WithLabelValues(string(state)).Inc()
}

// UploadEntered counts an upload that entered a state.
func (m *Metrics) UploadEntered(state protocol.UploadState) {
	m.uploads.WithLabelValues(string(state)).Inc()
}

// CertificateExpires publishes when a certificate of the service expires. name is a constant.
func (m *Metrics) CertificateExpires(name string, at time.Time) {
	m.certificates.WithLabelValues(name).Set(float64(at.Unix()))
}

const (
	outcomeOK    = "ok"
	outcomeError = "error"
)

func outcome(ok bool) string {
	if ok {
		return outcomeOK
	}
	return outcomeError
}
