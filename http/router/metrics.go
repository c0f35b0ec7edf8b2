package router

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics measures requests by route pattern and by class of status. A client cannot add values to these labels.
type metrics struct{ requests *prometheus.HistogramVec }

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "turnstone_http_request_seconds",
		Help:    "Duration of a request; of a stream, until it has ended.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"route", "status"})}
	if registry == nil {
		return m, nil
	}
	return m, registry.Register(m.requests)
}

func (m *metrics) request(pattern string, status int, took time.Duration) {
	const class = 100
	m.requests.WithLabelValues(pattern, strconv.Itoa(status/class)+"xx").Observe(took.Seconds())
}
