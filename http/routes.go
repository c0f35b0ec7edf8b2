package http

import (
	stdhttp "net/http"
	"slices"
)

// table is every route of the service. An endpoint is a line here, a handler and a method of the store.
func (s *Server) table() []route {
	return slices.Concat(
		[]route{
			// System
			call("GET", "/health", "getHealth", "Tells that the process answers; asks no dependency.", Policy{Public: true, NoStore: true}, s.getHealth),
			call("GET", "/ready", "getReady", "Tells whether the service can do its work, and which dependency keeps it from it.", Policy{Bucket: bucketReads, NoStore: true, Readiness: true}, s.getReady).documented(mayBeUnready),
			call("GET", "/version", "getVersion", "Tells what runs here.", reads.noStore(), s.getVersion),
			// Sign-in
			call("POST", "/auth/register", "register", "Makes an account and signs it in.", enters, s.register).answers(stdhttp.StatusCreated),
			call("POST", "/auth/login", "login", "Signs in with a password.", enters, s.login).documented(mayRefuse),
			call("POST", "/auth/logout", "logout", "Ends this session.", writes.noStore(), s.logout),
			call("GET", "/auth/session", "getSession", "Tells who is signed in, and gives the CSRF token.", reads.noStore(), s.getSession),
			call("GET", "/auth/sessions", "listSessions", "Lists the account's sessions, the last used first.", reads, s.listSessions),
			call("DELETE", "/auth/sessions", "endOtherSessions", "Ends every session but this one.", writes.sudo(), s.endOtherSessions),
			call("DELETE", "/auth/sessions/{session_id}", "endSession", "Ends one session of the account.", writes, s.endSession),
			call("POST", "/auth/password", "changePassword", "Changes the password and ends every other session.", writes.noStore(), s.changePassword),
			call("POST", "/auth/reauthenticate", "reauthenticate", "Opens ten minutes for what needs a recent sign-in.", writes.noStore(), s.reauthenticate),
			stream("GET", "/auth/oidc/{provider}/start", "startOIDC", "Sends the browser to an OpenID provider.", enters, s.oidcStart).documented(redirects),
			stream("GET", "/auth/oidc/{provider}/callback", "finishOIDC", "Where the provider sends the browser back to.", enters, s.oidcCallback).documented(redirects),
			// Account
			call("GET", "/account/settings", "getSettings", "Reads the account's preferences.", reads, s.getSettings),
			call("PUT", "/account/settings", "putSettings", "Replaces the account's preferences.", writes, s.putSettings),
		},
		s.chatRoutes(),
		s.conversationRoutes(),
		s.messageRoutes(),
		s.draftRoutes(),
		s.branchRoutes(),
		s.followUpRoutes(),
		s.usageRoutes(),
	)
}
