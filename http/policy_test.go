package http

import (
	"bytes"
	stdhttp "net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/go-chi/chi/v5"
)

// publicRoutes are all that may ever be asked without a session: the contract's list. A route that is not here needs one.
var publicRoutes = []string{
	"GET /health",
	"GET /shared/{token}", "GET /shared/{token}/files/{n}", "GET /s/{token}",
	"POST /auth/register", "POST /auth/login", "GET /auth/oidc/{provider}/start", "GET /auth/oidc/{provider}/callback",
	"GET /", "GET /c/*", "GET /p/*", "GET /library", "GET /settings", "GET /assets/*", "GET /robots.txt",
}

// documentServer is a Server that only knows its routes.
func documentServer(t *testing.T) *Server {
	t.Helper()
	s, err := New(Config{Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "http", Host: "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryRouteHasAPolicyAndEveryPolicyARoute(t *testing.T) {
	s := documentServer(t)
	walked := map[string]bool{}
	err := chi.Walk(s.router, func(method, pattern string, _ stdhttp.Handler, _ ...func(stdhttp.Handler) stdhttp.Handler) error {
		name := method + " " + pattern
		policy, listed := s.policies[name]
		switch {
		case !listed:
			t.Errorf("%s has no policy: it was not put into the table", name)
		case policy.Public && !slices.Contains(publicRoutes, name):
			t.Errorf("%s is public, and the contract does not say so", name)
		case policy.Public && policy.Sudo:
			t.Errorf("%s is public and needs a recent sign-in", name)
		case policy.Idempotent && (policy.Public || method != "POST"):
			t.Errorf("%s takes an Idempotency-Key but is no POST of an account", name)
		}
		walked[name] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.policies {
		if !walked[name] {
			t.Errorf("%s has a policy but no route", name)
		}
	}
}

func TestEveryNameInAPathIsParsedAndOwned(t *testing.T) {
	s := documentServer(t)
	for _, route := range s.routes {
		for _, name := range namesIn(route.path) {
			if pathParams[name].parse == nil {
				t.Errorf("%s: nobody knows how {%s} is spelled", route.path, name)
			}
		}
		op := operationAt(s.api.OpenAPI(), route.method, route.path)
		if op.RequestBody != nil && len(namesIn(route.path)) > 0 && pathParams[namesIn(route.path)[0]].owned == nil {
			t.Errorf("%s %s reads its body before anybody asked whose {%s} it is", route.method, route.path, namesIn(route.path)[0])
		}
	}
}

func TestEveryCreatingPOSTOfAnAccountIsIdempotent(t *testing.T) {
	s := documentServer(t)
	own := map[string]string{
		"POST /chat":                "replays by the turn that it began",
		"POST /chat/steering":       "replays by client_steering_id",
		"POST /auth/logout":         "creates nothing",
		"POST /auth/password":       "creates nothing",
		"POST /auth/reauthenticate": "creates nothing",
	}
	for name, policy := range s.policies {
		if name[:4] == "POST" && !policy.Public && !policy.Idempotent && own[name] == "" {
			t.Errorf("%s takes no Idempotency-Key", name)
		}
	}
}
