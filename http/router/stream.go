package router

import (
	stdhttp "net/http"
	"time"
)

// BeginStream implements exchange.Carrier: the request is counted when it becomes a stream. ended logs it and measures the stream.
func (ex *requestState) BeginStream() (ended func()) {
	rt := ex.router
	rt.Metrics.request(ex.method, ex.pattern, stdhttp.StatusOK, time.Since(ex.Started))
	ex.streams = true
	request := ex.finished(stdhttp.StatusOK)
	return func() { rt.logRequest(request) }
}
