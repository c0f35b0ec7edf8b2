package router

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures requests and limits. All labels have values from the code: patterns of routes, known methods, classes of status,
// and codes of errors. A client cannot add values to them.
type Metrics struct {
	requests *prometheus.HistogramVec
	streams  *prometheus.HistogramVec
	problems *prometheus.CounterVec
	limited  *prometheus.CounterVec
}

// NewMetrics registers the metrics of requests. Without a registry, requests are measured but not published.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "turnstone_http_request_seconds",
			Help:    "Duration of a request; of a stream, until it begins.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"method", "route", "status"}),
		streams: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "turnstone_http_stream_seconds",
			Help:    "Duration of a stream, from its request to its end.",
			Buckets: []float64{1, 5, 15, 60, 300, 900, 3600, 14400},
		}, []string{"route"}),
		problems: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "turnstone_http_problems_total",
			Help: "Responses with an error, by its code and status.",
		}, []string{"code", "status"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "turnstone_http_limited_total",
			Help: "Requests that were refused because they were over a limit.",
		}, []string{"bucket"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, one := range []prometheus.Collector{m.requests, m.streams, m.problems, m.limited} {
		if err := registry.Register(one); err != nil {
			return nil, fmt.Errorf("registering the metrics of requests: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) request(method, pattern string, status int, took time.Duration) {
	const class = 100
	m.requests.WithLabelValues(method, pattern, strconv.Itoa(status/class)+"xx").Observe(took.Seconds())
}

func (m *Metrics) stream(pattern string, took time.Duration) {
	m.streams.WithLabelValues(pattern).Observe(took.Seconds())
}

func (m *Metrics) problem(code string, status int) {
	m.problems.WithLabelValues(code, strconv.Itoa(status)).Inc()
}

// Limited counts a request that is over the limit of a bucket.
func (m *Metrics) Limited(bucket string) { m.limited.WithLabelValues(bucket).Inc() }
