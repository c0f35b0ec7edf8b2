package http

import (
	stdhttp "net/http"
	"slices"

	"turnstone/protocol"
)

// table is every route of the service. An endpoint is a line here, a handler and a method of the store.
func (s *Server) table() []route {
	return slices.Concat(
		[]route{
			// System
			call("GET", "/health", "getHealth", "Tells that the process answers; asks no dependency.", Policy{Public: true, NoStore: true}, s.getHealth).
				about("Contacts no dependency. For load balancers and supervisors that only need to know whether the process runs."),
			call("GET", "/ready", "getReady", "Tells whether the service can do its work, and which dependency keeps it from it.", Policy{Bucket: bucketReads, NoStore: true, Readiness: true}, s.getReady).
				about("Asks every dependency, at most once a second. 503 has the same body with the dependencies that are down; it is returned to every caller while no session can be checked. The internal listener serves the route without a session.").documented(mayBeUnready),
			call("GET", "/version", "getVersion", "Tells what runs here.", reads.noStore(), s.getVersion).
				about("The environment, the commit of the build and the family of the model provider."),
			// Sign-in
			call("POST", "/auth/register", "register", "Makes an account and signs it in.", enters, s.register).
				about("The address is compared without regard to case. The response sets the session cookie and has the CSRF token for the next requests.").
				sends(object{"email": "ada@example.org", "password": "a calm tide at noon", "display_name": "Ada"}).
				refuses(protocol.CodeRegistrationClosed, protocol.CodeEmailTaken).answers(stdhttp.StatusCreated),
			call("POST", "/auth/login", "login", "Signs in with a password.", enters, s.login).
				about("The response sets the session cookie and has the CSRF token. An unknown address and a wrong password get the same 401.").
				sends(object{"email": "ada@example.org", "password": "a calm tide at noon"}).documented(mayRefuse),
			call("POST", "/auth/logout", "logout", "Ends this session.", writes.noStore(), s.logout).
				about("Ends the session of the request and clears its cookie. Other sessions of the account go on."),
			call("GET", "/auth/session", "getSession", "Tells who is signed in, and gives the CSRF token.", reads.noStore(), s.getSession).
				about("Returns the signed-in account, the CSRF token that unsafe methods need, and the end of the session."),
			call("GET", "/auth/sessions", "listSessions", "Lists the account's sessions, the last used first.", reads, s.listSessions).
				about("One entry for each signed-in device, with the time of its last use."),
			call("DELETE", "/auth/sessions", "endOtherSessions", "Ends every session but this one.", writes.sudo(), s.endOtherSessions).
				about("Signs out every other device at once; their open streams end. Needs a sign-in within the last ten minutes."),
			call("DELETE", "/auth/sessions/{session_id}", "endSession", "Ends one session of the account.", writes, s.endSession).
				about("Signs out one device at once; its open streams end."),
			call("POST", "/auth/password", "changePassword", "Changes the password and ends every other session.", writes.noStore(), s.changePassword).
				about("Needs the current password; an account that signs in through a provider only needs a recent sign-in. The response has a new session cookie and CSRF token.").
				sends(object{"current_password": "a calm tide at noon", "new_password": "two calm tides at noon"}).
				refuses(protocol.CodeReauthRequired),
			call("POST", "/auth/reauthenticate", "reauthenticate", "Opens ten minutes for what needs a recent sign-in.", writes.noStore(), s.reauthenticate).
				about("Proves the password again. The response has a new session cookie and CSRF token; for ten minutes the routes that need a recent sign-in accept them.").
				sends(object{"password": "a calm tide at noon"}).
				refuses(protocol.CodeConflict),
			stream("GET", "/auth/oidc/{provider}/start", "startOIDC", "Sends the browser to an OpenID provider.", enters, s.oidcStart).
				about("For browsers: redirects to the provider's page with a state, a nonce and a PKCE challenge. With link, links the identity to the signed-in account.").
				refuses(protocol.CodeReauthRequired, protocol.CodeOrigin).documented(redirects),
			stream("GET", "/auth/oidc/{provider}/callback", "finishOIDC", "Where the provider sends the browser back to.", enters, s.oidcCallback).
				about("For browsers: checks what the provider sent, signs in, and redirects to return_to of the start.").
				refuses(protocol.CodeCSRF, protocol.CodeRegistrationClosed, protocol.CodeConflict, protocol.CodeEmailTaken).documented(redirects),
			// Account
			call("GET", "/account/settings", "getSettings", "Reads the account's preferences.", reads, s.getSettings).
				about("Before the first change these are the defaults, with version 0."),
			call("PUT", "/account/settings", "putSettings", "Replaces the account's preferences.", writes, s.putSettings).
				about("Replaces all preferences. With If-Match or version a change since then is refused; without, the last writer wins.").
				sends(object{"language": "en", "theme": "system", "send_key": "enter", "busy_action": "queue", "default_profile": "auto", "version": 3}).
				refuses(protocol.CodeStaleVersion),
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
