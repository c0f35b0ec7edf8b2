package http

import (
	"bytes"
	"net/url"
	"slices"
	"testing"
)

// publicRoutes lists the routes that need no session, as the contract defines them. All other routes need one.
var publicRoutes = []string{
	"GET /health",
	"GET /shared/{token}", "GET /shared/{token}/files/{n}", "GET /shared/{token}/artifacts/{n}", "GET /s/{token}",
	"POST /auth/register", "POST /auth/login", "POST /auth/passkeys/sign-in/start", "POST /auth/passkeys/sign-in/finish", "GET /auth/oidc/{provider}/start", "GET /auth/oidc/{provider}/callback",
	"POST /auth/password/forgot", "POST /auth/password/reset", "POST /auth/email/verify",
	"GET /", "GET /c/*", "GET /p/*", "GET /library", "GET /settings", "GET /reset-password", "GET /confirm-email", "GET /assets/*", "GET /robots.txt",
}

// documentServer returns a Server without dependencies, for tests that only look at its routes.
func documentServer(t *testing.T) *Server {
	t.Helper()
	s, err := New(Config{Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "http", Host: "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestThePolicyOfEveryRouteIsThatOfTheContract(t *testing.T) {
	t.Parallel()
	for _, r := range documentServer(t).Routes() {
		name, policy := nameOf(r), r.Policy
		switch {
		case policy.Public && !slices.Contains(publicRoutes, name):
			t.Errorf("%s is public, but not in the list of the contract", name)
		case policy.Public && policy.Sudo:
			t.Errorf("%s is public and needs a recent sign-in", name)
		case policy.Idempotent && (policy.Public || r.Method != "POST"):
			t.Errorf("%s takes an Idempotency-Key but is not a POST that needs a session", name)
		}
	}
}

func TestEveryCreatingPOSTOfAnAccountIsIdempotent(t *testing.T) {
	t.Parallel()
	s := documentServer(t)
	own := map[string]string{
		"POST /chat":                                "replays by the turn that it started",
		"POST /chat/steering":                       "replays by client_steering_id",
		"POST /auth/logout":                         "creates nothing",
		"POST /auth/password":                       "creates nothing",
		"POST /auth/reauthenticate":                 "creates nothing",
		"POST /account/pending-email/resend":        "each request sends a mail",
		"POST /auth/passkeys/register/start":        "creates nothing",
		"POST /auth/passkeys/register/finish":       "a challenge works once",
		"POST /auth/passkeys/reauthenticate/start":  "creates nothing",
		"POST /auth/passkeys/reauthenticate/finish": "creates nothing",
		"POST /conversations/{conversation_id}/follow-ups/{follow_up_id}/promote": "creates nothing",
		"POST /transcriptions":                              "stores nothing",
		"POST /files/attachment-states":                     "creates nothing",
		"POST /conversations/{conversation_id}/attachments": "creates nothing",
		"POST /projects/{project_id}/restore":               "creates nothing",
		"POST /artifacts/{artifact_id}/restore":             "the base version makes a repeat a conflict",
		"POST /research-tasks/{task_id}/cancel":             "creates nothing",
		"POST /research-tasks/{task_id}/steering":           "replays by client_steering_id",
	}
	for _, r := range s.Routes() {
		if r.Method == "POST" && !r.Policy.Public && !r.Policy.Idempotent && own[nameOf(r)] == "" {
			t.Errorf("%s takes no Idempotency-Key", nameOf(r))
		}
	}
}
