package accounts

import (
	_ "embed" // the descriptions of operations
	stdhttp "net/http"
	"slices"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of sign-ins and of accounts.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{
			{Name: "auth", Description: "Registration, sign-in, sign-out, and the sessions (devices) of an account."},
			{Name: "account", Description: "The preferences of the account, its export, imports and erasure."},
		},
		Params: []route.Param{
			route.Identifier[protocol.SessionID]("session_id", nil),
			route.Identifier[protocol.IdentityID]("identity_id", nil),
			route.Identifier("passkey_id", h.Passkeys.OwnsPasskey),
			route.Text("provider"),
		},
		Routes: slices.Concat(h.signInRoutes(), h.accountRoutes(), h.passkeyRoutes(), h.recoveryRoutes()),
	}
}

func (h *Handlers) signInRoutes() []route.Route {
	return []route.Route{
		route.Call("POST", "/auth/register", "register", "Create an account", route.PublicWrites, h.register).
			DescribedAs("Creates an account and signs it in. Email addresses are compared case-insensitively. "+
				"The response sets the session cookie and contains the CSRF token for subsequent requests.").
			WithExample(route.Object{"email": "ada@example.org", "password": "a calm tide at noon", "display_name": "Ada"}).
			WithCodes(protocol.CodeRegistrationClosed, protocol.CodeEmailTaken).WithStatus(stdhttp.StatusCreated).WithCookies(stdhttp.StatusCreated),
		route.Call("POST", "/auth/login", "login", "Sign in with a password", route.PublicWrites, h.login).
			DescribedAs("The response sets the session cookie and contains the CSRF token. An unknown email address and a wrong password return the same 401 response.").
			WithExample(route.Object{"email": "ada@example.org", "password": "a calm tide at noon"}).Documented(mayReturnUnauthorized).WithCookies(stdhttp.StatusOK),
		route.Call("POST", "/auth/logout", "logout", "Sign out", route.Writes.Unstored(), h.logout).
			DescribedAs("Ends the current session and clears its cookie. Other sessions of the account are not affected."),
		route.Call("GET", "/auth/session", "getSession", "Get the current session", route.Reads.Unstored(), h.getSession).
			DescribedAs("Returns the signed-in account, the CSRF token that requests with unsafe methods require, and the time at which the session expires."),
		route.Call("GET", "/auth/sessions", "listSessions", "List sessions", route.Lists, h.listSessions).
			DescribedAs("Lists the sessions of the account, most recently used first. Each signed-in device has one entry with the time of its last use."),
		route.Call("DELETE", "/auth/sessions", "endOtherSessions", "End all other sessions", route.Writes.Recent(), h.endOtherSessions).
			DescribedAs("Signs out every other device immediately and ends its open streams. Requires a sign-in within the last ten minutes."),
		route.Call("DELETE", "/auth/sessions/{session_id}", "endSession", "End a session", route.Writes, h.endSession).
			DescribedAs("Signs out one device immediately and ends its open streams."),
		route.Call("POST", "/auth/password", "changePassword", "Change the password", route.Writes.Unstored(), h.changePassword).WithCodes(protocol.CodeEmailTaken).
			DescribedAs("Changes the password and ends every other session. Requires the current password or, if the account has no password, a " +
				"sign-in within the last ten minutes. The response sets a new session cookie and contains a new CSRF token.").
			WithExample(route.Object{"current_password": "a calm tide at noon", "new_password": "two calm tides at noon"}).
			WithCodes(protocol.CodeReauthRequired).WithCookies(stdhttp.StatusOK),
		route.Call("POST", "/auth/reauthenticate", "reauthenticate", "Confirm the password", route.Writes.Unstored(), h.reauthenticate).
			DescribedAs("Verifies the password of the signed-in account again. The response sets a new session cookie and contains a new CSRF token. " +
				"For ten minutes, operations that require a recent sign-in accept them.").
			WithExample(route.Object{"password": "a calm tide at noon"}).
			WithCodes(protocol.CodeConflict).WithCookies(stdhttp.StatusOK),
		route.Stream("GET", "/auth/oidc/{provider}/start", "startOIDC", "Start a sign-in with an OpenID provider", route.Redirects, h.oidcStart).
			DescribedAs("For browsers. Redirects to the provider's authorization page with a state, a nonce and a PKCE challenge. With `link`, the identity is linked to the signed-in account.").
			WithCodes(protocol.CodeReauthRequired, protocol.CodeOrigin).WithCookies(stdhttp.StatusFound).Documented(route.DocumentRedirect),
		route.Stream("GET", "/auth/oidc/{provider}/callback", "finishOIDC", "Complete a sign-in with an OpenID provider", route.Redirects, h.oidcCallback).
			DescribedAs("For browsers. The provider redirects the browser to this path. Verifies the provider's response, signs in, and redirects to the `return_to` path of the start request.").
			WithCodes(protocol.CodeCSRF, protocol.CodeRegistrationClosed, protocol.CodeConflict, protocol.CodeEmailTaken).Documented(route.DocumentRedirect).
			WithCookies(stdhttp.StatusFound, stdhttp.StatusUnauthorized, stdhttp.StatusForbidden, stdhttp.StatusConflict, stdhttp.StatusServiceUnavailable),
	}
}

func (h *Handlers) accountRoutes() []route.Route {
	return []route.Route{
		route.Call("GET", "/account/identities", "listIdentities", "List identities", route.Lists, h.listIdentities).
			DescribedAs("Lists the identities at OpenID providers with which the account signs in, in the order in which they were linked. " +
				"`GET /auth/oidc/{provider}/start` with `link` links another one."),
		route.Call("DELETE", "/account/identities/{identity_id}", "unlinkIdentity", "Unlink an identity", route.Writes.Recent(), h.unlinkIdentity).
			DescribedAs("Removes an identity from the account, which cannot sign in with it any more. Sessions that it has signed in to continue. " +
				"The last way to sign in to an account is not removed (409, with the identity in `current`). " +
				"Requires a sign-in within the last ten minutes.").
			WithCodes(protocol.CodeConflict),
		route.Call("GET", "/account/security-log", "listSecurityLog", "List security events", route.Lists, h.listSecurityLog).
			DescribedAs("Lists what happened to the account: sign-ins, sessions, changes to passwords, passkeys, identities and the email address, " +
				"shares, exports and deletions, and refused requests. The newest events are first. Events are kept for 400 days."),
		route.Call("GET", "/account", "getAccount", "Get the account", route.Reads, h.getAccount).
			DescribedAs("Returns the signed-in account with its limits, and how much of them is used and left: live turns, files and their bytes, and " +
				"the model tokens of the day. The limits of requests are in the headers of each response."),
		route.Call("PUT", "/account/email", "changeEmail", "Change the email address", route.Writes.Recent(), h.changeEmail).
			DescribedAs(changeEmailDescription).
			WithExample(route.Object{"email": "ada@example.net"}).
			WithCodes(protocol.CodeEmailTaken, protocol.CodeStaleVersion),
		route.Call("PUT", "/account/name", "changeName", "Change the display name", route.Writes, h.changeName).
			DescribedAs("Changes the display name of the account. With the version of the account in If-Match or in `version`, an account that has changed since is not changed: 409 `stale_version`.").
			WithExample(route.Object{"display_name": "Ada Lovelace"}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("GET", "/account/settings", "getSettings", "Get the account's preferences", route.Reads, h.getSettings).
			DescribedAs("Returns the preferences. Until they are first changed, they are the defaults, with version 0."),
		route.Call("PUT", "/account/settings", "putSettings", "Replace the account's preferences", route.Writes, h.putSettings).
			DescribedAs("Replaces all preferences. Pass the version that the change is based on in If-Match or in `version`; if the preferences have " +
				"changed since that version, the request fails with 409 `stale_version`. Without a version, the last write wins.").
			WithExample(route.Object{"language": "en", "theme": "system", "send_key": "enter", "busy_action": "queue", "steering_delivery": "next_step", "default_profile": "auto", "version": 3}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("GET", "/account/instructions", "getAccountInstructions", "Get the account's instructions", route.Reads, h.getInstructions).
			DescribedAs("Returns the instructions that the account gives for all of its conversations. Instructions that were never written are empty and have version 0."),
		route.Call("PUT", "/account/instructions", "putAccountInstructions", "Replace the account's instructions", route.Writes, h.putInstructions).WithMaxBody(route.MediumBody).
			DescribedAs("Stores a new version of the instructions of the account. The model gets them in every turn that starts from now on, after "+
				"those of the project; temporary conversations are not excepted. Requires their current version in If-Match or in `version`.").
			WithExample(route.Object{"content": "I am a nurse. Answer briefly.", "version": 0}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
	}
}

func (h *Handlers) passkeyRoutes() []route.Route {
	const challenge = " The challenge is valid for five minutes, once, and in the browser that gets the cookie of this response."
	return []route.Route{
		route.Call("GET", "/account/passkeys", "listPasskeys", "List passkeys", route.Lists, h.listPasskeys).
			DescribedAs("Lists the passkeys of the account, in the order of their creation. An account has at most 20."),
		route.Call("PATCH", "/account/passkeys/{passkey_id}", "renamePasskey", "Rename a passkey", route.Writes, h.renamePasskey).
			DescribedAs("Changes the name under which the account displays the passkey. " +
				"With its version in If-Match or in `version`, a passkey that has changed since is not renamed: 409 `stale_version`.").
			WithExample(route.Object{"name": "Work laptop"}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("DELETE", "/account/passkeys/{passkey_id}", "deletePasskey", "Remove a passkey", route.Writes.Recent(), h.deletePasskey).
			DescribedAs("Removes a passkey, which cannot sign in any more. Sessions that it has signed in to continue. "+
				"The last way to sign in to an account is not removed (409). Requires a sign-in within the last ten minutes. "+
				"With the version of the passkey in If-Match, one that has changed since is not removed: 409 `stale_version`.").
			WithCodes(protocol.CodeConflict, protocol.CodeStaleVersion),
		route.Call("POST", "/auth/passkeys/register/start", "startPasskeyRegistration", "Start adding a passkey", route.Writes.Recent().Unstored(), h.startRegistration).
			DescribedAs("Returns the options for `navigator.credentials.create()`, in the form that `PublicKeyCredential.parseCreationOptionsFromJSON()` reads." +
				challenge + " Fails with 409 if the account has 20 passkeys. Requires a sign-in within the last ten minutes.").
			WithCodes(protocol.CodeConflict).WithCookies(stdhttp.StatusOK),
		route.Call("POST", "/auth/passkeys/register/finish", "finishPasskeyRegistration", "Add a passkey", route.Writes.Recent().Unstored(), h.finishRegistration).
			WithMaxBody(route.MediumBody).
			DescribedAs("Verifies the response of the authenticator, which `PublicKeyCredential.toJSON()` returns, and adds the passkey to the "+
				"account. The response sets a new session cookie and contains a new CSRF token. Requires a sign-in within the last ten minutes.").
			WithExample(route.Object{"name": "Work laptop", "credential": route.Object{
				"id": "kx7bW3Uq0mY", "rawId": "kx7bW3Uq0mY", "type": "public-key",
				"response": route.Object{"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0", "attestationObject": "o2NmbXRkbm9uZQ", "transports": []string{"internal"}},
			}}).
			WithCodes(protocol.CodeConflict).WithStatus(stdhttp.StatusCreated).
			WithCookies(stdhttp.StatusCreated, stdhttp.StatusConflict, stdhttp.StatusUnprocessableEntity),
		route.Call("POST", "/auth/passkeys/sign-in/start", "startPasskeySignIn", "Start a sign-in with a passkey", route.PublicWrites, h.startSignIn).
			DescribedAs("Returns the options for `navigator.credentials.get()`, in the form that `PublicKeyCredential.parseRequestOptionsFromJSON()` " +
				"reads. The authenticator chooses the account." + challenge).
			WithCodes(protocol.CodeConflict).WithCookies(stdhttp.StatusOK),
		route.Call("POST", "/auth/passkeys/sign-in/finish", "finishPasskeySignIn", "Sign in with a passkey", route.PublicWrites, h.finishSignIn).
			WithMaxBody(route.MediumBody).WithCodes(protocol.CodeConflict).
			DescribedAs("Verifies the signature of the authenticator, which `PublicKeyCredential.toJSON()` returns, and signs in. "+
				"The response sets the session cookie and contains the CSRF token. Every refused passkey gets the same 401 response.").
			WithExample(route.Object{"credential": credentialExample}).Documented(mayReturnUnauthorized).WithCookies(stdhttp.StatusOK, stdhttp.StatusUnauthorized),
		route.Call("POST", "/auth/passkeys/reauthenticate/start", "startPasskeyReauthentication", "Start a confirmation with a passkey", route.Writes.Unstored(), h.startReauthentication).
			DescribedAs("Returns the options for `navigator.credentials.get()` with a passkey of the signed-in account." + challenge + " Fails with 409 if the account has no passkey.").
			WithCodes(protocol.CodeConflict).WithCookies(stdhttp.StatusOK),
		route.Call("POST", "/auth/passkeys/reauthenticate/finish", "finishPasskeyReauthentication", "Confirm with a passkey", route.Writes.Unstored(), h.finishReauthentication).
			WithMaxBody(route.MediumBody).
			DescribedAs("Verifies the signature of a passkey of the signed-in account. "+
				"The response sets a new session cookie and contains a new CSRF token. "+
				"For ten minutes, operations that require a recent sign-in accept them.").
			WithExample(route.Object{"credential": credentialExample}).
			WithCodes(protocol.CodeConflict).WithCookies(stdhttp.StatusOK, stdhttp.StatusUnprocessableEntity),
	}
}

func (h *Handlers) recoveryRoutes() []route.Route {
	const exampleToken = "mt1_AZYN5YgOcQ2mY3Vx0bW3UgGWDeWIDnEOpmN1cdG1t1I"
	return []route.Route{
		route.Call("POST", "/auth/password/forgot", "requestPasswordReset", "Request a mail to reset the password", route.PublicWrites, h.forgotPassword).
			DescribedAs("Mails a link with which a new password can be set, once and within one hour. " +
				"The response is the same whether or not an account signs in with the address and a password, and takes the same time; the account is " +
				"looked for afterwards. Accounts without a password get no mail. Few mails are sent to one address and for one network; then the " +
				"request gets 429. If the service sends no mail, it gets 403 `mail_not_configured`.").
			WithExample(route.Object{"email": "ada@example.org"}).
			WithCodes(protocol.CodeMailNotConfigured).WithStatus(stdhttp.StatusAccepted),
		route.Call("POST", "/auth/password/reset", "resetPassword", "Set a new password with a mailed token", route.PublicWrites, h.resetPassword).
			DescribedAs("Sets a new password with the token of the link of a mail. " +
				"All sessions of the account end, and so do its other links and a change of its address that is not confirmed. " +
				"The owner is informed by mail. Nobody is signed in: sign in with the new password. " +
				"A token that is unknown, used or expired gets 422 for `body.token`; a password that is refused does not use up the token.").
			WithExample(route.Object{"token": exampleToken, "password": "two calm tides at noon"}),
		route.Call("POST", "/auth/email/verify", "verifyEmail", "Confirm a new email address with a mailed token", route.PublicWrites, h.verifyEmail).
			DescribedAs("Changes the email address of an account to the one to which the link with the token was mailed (`PUT /account/email`). " +
				"It works once, within 24 hours, and without a session. A token that is unknown, used, withdrawn or expired gets 422. " +
				"If another account signs in with the address meanwhile, the request fails with 409 `email_taken`.").
			WithExample(route.Object{"token": exampleToken}).
			WithCodes(protocol.CodeEmailTaken),
		route.Call("POST", "/account/pending-email/resend", "resendPendingEmail", "Send another confirmation mail", route.Writes, h.resendEmail).
			DescribedAs("Mails another link to the address that waits for its confirmation. The earlier link ends, and the new one works for 24 hours. "+
				"404: no address waits. If another account signs in with the address meanwhile, nothing is mailed and the request fails with 409 "+
				"`email_taken`, as `PUT /account/email` does: end the change, or request another address.").
			WithCodes(protocol.CodeMailNotConfigured, protocol.CodeEmailTaken),
		route.Call("DELETE", "/account/pending-email", "cancelPendingEmail", "Cancel a change of the email address", route.Writes, h.cancelEmail).
			DescribedAs("Ends a change of the email address that is not confirmed; its link ends. 404: no address waits. " +
				"With the version of the account in If-Match, an account that has changed since is not changed: 409 `stale_version`.").
			WithCodes(protocol.CodeStaleVersion),
	}
}
