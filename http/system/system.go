// Package system handles the requests about the service itself: whether it runs and is ready, its version and its profiles.
//
// It contains no SQL and no state.
package system

import (
	"context"
	stdhttp "net/http"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/ready"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/protocol"
)

// Handlers handle the requests about the service itself.
type Handlers struct {
	Readiness   *ready.Checker
	Draining    func() bool // nil: never
	Environment string
	BuildSHA    string // empty: unknown
	ModelFamily string
	Profiles    []protocol.ProfileAbilities
}

type health struct {
	Status string `json:"status" enum:"ok"`
}

// getHealth reports that the process is running. It contacts no dependency.
func (h *Handlers) getHealth(context.Context, *resource.Nothing) (*resource.Body[health], error) {
	return resource.OK(health{Status: "ok"}), nil
}

// readyOutput is a response with status 200, or 503 with Retry-After.
type readyOutput struct {
	Status     int
	RetryAfter string `header:"Retry-After"`
	Body       ready.Readiness
}

func (h *Handlers) getReady(ctx context.Context, _ *resource.Nothing) (*readyOutput, error) {
	return h.withStatus(h.Readiness.Check(ctx)), nil
}

// withStatus adds whether the node is draining, and the status of the response.
func (h *Handlers) withStatus(report ready.Readiness) *readyOutput {
	if h.Draining != nil && h.Draining() {
		report.Status, report.Draining = ready.StatusNotReady, true
	}
	if report.Status != ready.StatusReady {
		return &readyOutput{stdhttp.StatusServiceUnavailable, ready.RetryAfter, report}
	}
	return &readyOutput{Status: stdhttp.StatusOK, Body: report}
}

// mayReturnNotReady documents that /ready can respond 503 with the result of its checks instead of a problem.
func mayReturnNotReady(api huma.API, op *huma.Operation) {
	route.JSONResponse[ready.Readiness](api, op, stdhttp.StatusServiceUnavailable, "Not ready: a dependency is down, or the node is draining.")
}

// Internal serves /health and /ready on the internal listener, which has no sign-in. There, /ready has a parameter that may be
// repeated: exclude names a check that is reported but not required. An orchestrator that takes a node out of service
// excludes the dependencies that all nodes share, so that the fault of one does not take out all nodes.
func (h *Handlers) Internal(mux *stdhttp.ServeMux) {
	mux.HandleFunc("GET /health", func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
		writeInternal(w, stdhttp.StatusOK, health{Status: "ok"})
	})
	mux.HandleFunc("GET /ready", func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		report, known := h.Readiness.Check(r.Context()).Without(r.URL.Query()["exclude"])
		if !known {
			response.Refuse(w, protocol.Invalid("query.exclude", "does not name a check, or names one twice"))
			return
		}
		answer := h.withStatus(report)
		writeInternal(w, answer.Status, answer.Body)
	})
}

func writeInternal(w stdhttp.ResponseWriter, status int, value any) {
	w.Header().Set("Cache-Control", "no-store")
	_ = response.SendJSON(w, status, value) // both values can be encoded
}

// Version is the response of GET /version.
type Version struct {
	Service     string  `json:"service" enum:"turnstone"`
	Environment string  `json:"environment"`
	BuildSHA    *string `json:"build_sha"`
	ModelFamily string  `json:"model_provider_family"`
}

func (h *Handlers) getVersion(context.Context, *resource.Nothing) (*resource.Body[Version], error) {
	version := Version{Service: "turnstone", Environment: h.Environment, ModelFamily: h.ModelFamily}
	if h.BuildSHA != "" {
		version.BuildSHA = &h.BuildSHA
	}
	return resource.OK(version), nil
}

func (h *Handlers) listProfiles(context.Context, *resource.Nothing) (*resource.Body[protocol.List[protocol.ProfileAbilities]], error) {
	return resource.OK(protocol.List[protocol.ProfileAbilities]{Data: h.Profiles}), nil
}
