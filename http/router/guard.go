package router

import (
	"errors"
	stdhttp "net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/ready"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/protocol"
)

// guard returns a handler that runs the checks that the policy requires, and then the given handler. The order is the
// same for every route, and no step reveals more to a stranger than the steps before it:
//
//	malformed headers, path or query 400/404/422 → session 401 → origin, CSRF, recent sign-in 403
//	→ replay of an idempotent request → limit 429/503 → identifiers of the path 404 → ownership 404
//	→ body 415/413/400 → queue of heavy requests 429 → values 422 → the handler, 409 and success
//
// checkForm runs the first step, and guard the steps up to the limit. checkPath, readBody and enterQueue, which run
// inside huma, run the steps up to the queue; huma itself checks the values.
func (rt *Router) guard(policy route.Policy, op *huma.Operation, handler func(huma.Context)) stdhttp.Handler {
	streams := op.Metadata["streams"] == true
	maxBody, _ := op.Metadata["max_body"].(int64)
	restore, _ := op.Metadata["restore"].(func([]byte) ([]byte, error))
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		ex := stateOf(r.Context())
		ex.pattern, ex.public, ex.unlimited, ex.success, ex.restore, ex.maxBody = op.Path, policy.Public, r.Context(), op.DefaultStatus, restore, maxBody
		w.Header().Set("Cache-Control", policy.CacheControl())
		if !streams {
			bounded, cancel := withTimeout(r, policy)
			defer cancel()
			r = bounded
		}
		checked := rt.Readiness.Ended()
		err := rt.pass(w, r, ex, policy, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
			run := func(w stdhttp.ResponseWriter, r *stdhttp.Request) { handler(humachi.NewContext(op, r, w)) }
			if streams || !route.Safe(r.Method) {
				run(w, r)
			} else {
				compress(w, r, run)
			}
		})
		if err == nil || policy.Readiness && ex.Caller == nil && rt.reportNotReady(w, r, checked, err) {
			return
		}
		rt.Fail(w, r, err)
	})
}

// pass runs the steps of the guard up to the limit, and then the handler.
func (rt *Router) pass(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState, policy route.Policy, handler stdhttp.HandlerFunc) error {
	if err := rt.admit(r, ex, policy); err != nil {
		return err
	}
	defer ex.ReleaseSlot()
	key, err := idempotencyKey(w, r, ex, policy)
	if err != nil {
		return err
	}
	ctx, cancel := afterBody(r.Context(), ex, ex.BodyTook)
	defer cancel()
	r = r.WithContext(ctx)
	if replayed, err := rt.replays.replay(w, r, ex, key); replayed || err != nil {
		return reused(policy, err)
	}
	if err := rt.limit(r, ex, policy.Bucket); err != nil {
		return err
	}
	return reused(policy, rt.replays.runOnce(w, r, ex, key, handler))
}

// reused makes a key with another body a conflict on the routes whose policy says so, with what the first request created.
func reused(policy route.Policy, err error) error {
	var mismatch *protocol.Error
	if policy.OneBody && errors.As(err, &mismatch) && mismatch.Code == protocol.CodeIdempotencyMismatch {
		return protocol.Conflict(protocol.CodeIdempotencyReused, mismatch.Current, "The key was used with another body.")
	}
	return err
}

// admit checks the session, the origin, the CSRF token and the recent sign-in. It then takes one of the account's
// request slots.
func (rt *Router) admit(r *stdhttp.Request, ex *requestState, policy route.Policy) error {
	if !policy.Public {
		ctx, cancel := exchange.UntilFirstByte(r.Context())
		defer cancel()
		if err := rt.Auth.Authenticate(ctx, ex.Request); err != nil {
			return err
		}
	}
	if err := rt.Auth.CheckOrigin(r, ex.Request); err != nil {
		return err
	}
	if !policy.Public && !route.Safe(r.Method) {
		if err := rt.Auth.CheckCSRF(r, ex.Request); err != nil {
			return err
		}
	}
	if policy.Sudo && !ex.Caller.RecentlySignedIn(rt.Now()) {
		return auth.ErrReauthRequired()
	}
	if !policy.Public {
		ctx, cancel := exchange.UntilFirstByte(r.Context())
		defer cancel()
		rt.Auth.Refresh(ctx, ex.Request)
	}
	return rt.requests.Acquire(&ex.Exchange, policy.Cancels)
}

// reportNotReady responds to an unauthenticated caller of /ready with the result of the checks if persistence is down:
// then no session can be verified, and nobody can sign in. It returns false if the response must be the error cause
// instead. checked is the number of checks that had ended when the request started.
func (rt *Router) reportNotReady(w stdhttp.ResponseWriter, r *stdhttp.Request, checked int64, cause error) bool {
	if protocol.CodeOf(cause) != protocol.CodeUnavailable {
		checked = 0
	}
	report := rt.Readiness.CheckAfter(r.Context(), checked)
	if report.Checks[ready.CheckPersistence] != ready.CheckDown {
		return false
	}
	w.Header().Set("Retry-After", ready.RetryAfter)
	_ = response.SendJSON(w, stdhttp.StatusServiceUnavailable, report) // a report can be encoded
	return true
}
