package http

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by route pattern and class of status: labels that no client can multiply.
type metrics struct {
	requests *prometheus.HistogramVec
	refused  *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "turnstone_http_request_seconds",
		Help:    "Time to answer a request; of a stream, its whole life.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"route", "status"}), refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "turnstone_http_limited_total",
		Help: "Requests that were over a limit.",
	}, []string{"bucket"})}
	if registry == nil {
		return m, nil
	}
	return m, errors.Join(registry.Register(m.requests), registry.Register(m.refused))
}

func (m *metrics) limited(from bucket) { m.refused.WithLabelValues(string(from)).Inc() }

func (m *metrics) request(pattern string, status int, took time.Duration) {
	const class = 100
	m.requests.WithLabelValues(pattern, strconv.Itoa(status/class)+"xx").Observe(took.Seconds())
}
