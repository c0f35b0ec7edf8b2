package http

import (
	stdhttp "net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"turnstone/protocol"
)

// guard puts in front of a handler what its policy asks for. The order is the same for every route, and each step tells
// a stranger no more than the one before it:
//
//	malformed headers, path or query 400/404/422 → session 401 → origin, CSRF, recent sign-in 403
//	→ replay of an idempotent request → limit 429/503 → identifiers of the path 404 → ownership 404
//	→ body 415/413/400 → values 422 → the handler, 409 and success
//
// checkForm does the first step, guard those up to the limit; checkPath and readBody, which run inside huma, do the next;
// huma itself the values.
func (s *Server) guard(policy Policy, op *huma.Operation, handler func(huma.Context)) stdhttp.Handler {
	streams := op.Metadata["streams"] == true
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		ex := exchangeOf(r.Context())
		ex.pattern, ex.public, ex.unlimited = op.Path, policy.Public, r.Context()
		w.Header().Set("Cache-Control", policy.cacheControl())
		if streams && r.Method == stdhttp.MethodHead {
			s.unknownMethod(w, r)
			return
		}
		if !streams {
			bounded, cancel := withTimeout(r, policy)
			defer cancel()
			r = bounded
		}
		checked := s.ready.checks.Load()
		err := s.pass(w, r, ex, policy, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
			handler(humachi.NewContext(op, r, w))
		})
		if err == nil || policy.Readiness && ex.caller == nil && s.reportNotReady(w, r, checked, err) {
			return
		}
		s.fail(w, r, err)
	})
}

// pass does the steps of the guard up to the limit, then lets the handler work.
func (s *Server) pass(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *exchange, policy Policy, handler stdhttp.HandlerFunc) error {
	if err := s.admit(r, ex, policy); err != nil {
		return err
	}
	defer s.leaveRequest(ex)
	key, err := s.idempotencyKey(w, r, ex, policy)
	if err != nil {
		return err
	}
	ctx, cancel := afterBody(r.Context(), ex, ex.bodyTook)
	defer cancel()
	r = r.WithContext(ctx)
	if answered, err := s.replay(w, r, ex, key); answered || err != nil {
		return err
	}
	if err := s.limit(w, r, ex, policy.Bucket); err != nil {
		return err
	}
	return s.once(w, r, ex, key, handler)
}

// admit decides who may ask at all, and takes one of the account's slots for requests.
func (s *Server) admit(r *stdhttp.Request, ex *exchange, policy Policy) error {
	if !policy.Public {
		ctx, cancel := untilAnswered(r.Context())
		defer cancel()
		if err := s.authenticate(ctx, ex); err != nil {
			return err
		}
	}
	if err := s.checkOrigin(r, ex); err != nil {
		return err
	}
	if !policy.Public && !safe(r.Method) {
		if err := s.checkCSRF(r, ex); err != nil {
			return err
		}
	}
	if policy.Sudo && !ex.caller.recentlySignedIn(s.now()) {
		return errReauthRequired()
	}
	if !policy.Public {
		ctx, cancel := untilAnswered(r.Context())
		defer cancel()
		s.keepYoung(ctx, ex)
	}
	return s.enterRequest(ex, policy)
}

func errReauthRequired() error {
	return protocol.Errorf(protocol.CodeReauthRequired, "This needs a recent sign-in: POST /auth/reauthenticate first.")
}
