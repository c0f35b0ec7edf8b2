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
//	session 401 → origin, CSRF, recent sign-in 403 → replay of an idempotent request → limit 429/503
//	→ identifiers of the path 404 → ownership 404 → body 415/413/400 → values 422 → the handler, 409 and success
//
// guard does the steps up to the limit; checkPath and readBody, which run inside huma, do the next; huma itself the
// values.
func (s *Server) guard(policy Policy, op *huma.Operation, handler func(huma.Context)) stdhttp.Handler {
	streams := op.Metadata["streams"] == true
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		ex := exchangeOf(r.Context())
		ex.pattern = op.Path
		w.Header().Set("Cache-Control", policy.cacheControl())
		if streams && r.Method == stdhttp.MethodHead {
			s.unknownMethod(w, r)
			return
		}
		if !streams {
			bounded, cancel := withTimeout(r)
			defer cancel()
			r = bounded
		}
		if err := s.admit(w, r, ex, policy); err != nil {
			s.fail(w, r, err)
			return
		}
		s.once(w, r, ex, policy, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
			if err := s.limit(w, r, ex, policy.Bucket); err != nil {
				s.fail(w, r, err)
				return
			}
			handler(humachi.NewContext(op, r, w))
		})
	})
}

// admit decides who may ask at all.
func (s *Server) admit(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *exchange, policy Policy) error {
	if !policy.Public {
		if err := s.authenticate(w, r, ex); err != nil {
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
		return protocol.Errorf(protocol.CodeReauthRequired, "This needs a recent sign-in: POST /auth/reauthenticate first.")
	}
	return nil
}
