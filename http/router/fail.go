package router

import (
	"context"
	"errors"
	"fmt"
	stdhttp "net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"go.uber.org/zap"

	"turnstone/http/exchange"
	"turnstone/http/response"
	"turnstone/persistence/audit"
)

// Fail writes an error as the response. The response must not have started.
func (rt *Router) Fail(w stdhttp.ResponseWriter, r *stdhttp.Request, err error) {
	p := rt.finishProblem(w, r, response.ProblemOf(err), err)
	if redirectsErrors(r) {
		redirectToApp(w, p)
		return
	}
	p.Send(w)
}

// finishProblem adds the ID of the request and the headers to a problem, and logs server errors. A 401 or 403 over the
// refusal limit of its address is replaced by a 429.
func (rt *Router) finishProblem(w stdhttp.ResponseWriter, r *stdhttp.Request, p *response.Problem, cause error) *response.Problem {
	ex := stateOf(r.Context())
	if p.Status == stdhttp.StatusUnauthorized || p.Status == stdhttp.StatusForbidden {
		if over := rt.Auth.DrawRefusal(r.Context(), ex.Request); over != nil {
			p, cause = response.ProblemOf(over), over
		}
	}
	rt.Metrics.problem(string(p.Code), p.Status)
	p.RequestID = ex.ID
	header := w.Header()
	if p.Status >= stdhttp.StatusInternalServerError || p.Status == stdhttp.StatusUnauthorized && !ex.public { // not for the quota
		exchange.HideLimit(w)
	}
	if p.Retry > 0 {
		header.Set("Retry-After", strconv.Itoa(p.Retry))
	}
	if p.Status == stdhttp.StatusUnauthorized && !ex.public {
		rt.Auth.ClearCookie(header)
	}
	if p.Status == stdhttp.StatusNotFound && ex.Caller != nil && ex.pattern != unknownPattern {
		rt.Auth.Record(ex.Request, audit.EventNotFound) // the caller may be guessing identifiers
	}
	if p.Status >= stdhttp.StatusInternalServerError && r.Context().Err() == nil {
		rt.Log.Error("request failed", zap.String("request_id", ex.ID), zap.String("route", ex.pattern),
			zap.String("code", string(p.Code)), zap.Error(cause))
	}
	return p
}

// redirectsErrors reports whether an error is sent as a redirect, because a browser is navigating to a provider or back
// and would display a problem document to the user.
func redirectsErrors(r *stdhttp.Request) bool {
	return strings.HasPrefix(stateOf(r.Context()).pattern, "/auth/oidc/") && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// redirectToApp redirects the browser to the app, which explains the refusal.
func redirectToApp(w stdhttp.ResponseWriter, p *response.Problem) {
	w.Header().Del("Retry-After") // on a redirect, it would ask the client to wait before following it
	response.Redirect(w, "/?refused="+url.QueryEscape(string(p.Code)))
}

func (rt *Router) failOperation(ctx huma.Context, err error) {
	r, w := humachi.Unwrap(ctx)
	rt.Fail(w, r, err)
}

// failStream writes the error as the response, or logs it if the response has started.
func (rt *Router) failStream(w stdhttp.ResponseWriter, r *stdhttp.Request, err error) {
	if responseStarted(w) {
		if r.Context().Err() == nil && !errors.Is(err, context.Canceled) { // the client is still connected
			rt.Log.Info("stream failed", zap.String("request_id", exchange.RequestIDOf(r.Context())), zap.Error(err))
		}
		return
	}
	rt.Fail(w, r, err)
}

// responseStarted reports whether the response has started.
func responseStarted(w stdhttp.ResponseWriter) bool {
	for {
		switch v := w.(type) {
		case *recorder:
			return v.status != 0
		case interface{ Unwrap() stdhttp.ResponseWriter }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// init replaces huma's constructors of errors. huma stores them in global variables, so ours have no Router of their
// own; they find it in the context of the request.
func init() {
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
	huma.ErrorFormatter = func(format string, values ...any) string {
		for i, value := range values {
			if number, is := value.(float64); is { // the limits of numbers, which %v writes as 1e+07
				values[i] = strconv.FormatFloat(number, 'f', -1, 64)
			}
		}
		return fmt.Sprintf(format, values...)
	}
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return response.HumaProblem(status, msg, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		r, w := humachi.Unwrap(ctx)
		p, cause := response.HumaProblem(status, msg, errs), errors.Join(errs...)
		if cause == nil {
			cause = errors.New(msg)
		}
		return stateOf(r.Context()).router.finishProblem(w, r, p, cause)
	}
}
