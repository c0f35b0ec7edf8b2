package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/descope/virtualwebauthn"

	"turnstone/cmd/turnstone/sitetest"
)

// passkeys adds a passkey with a virtual authenticator, confirms a session and signs in with it, and removes it.
func (w *walk) passkeys() {
	address, err := url.Parse(w.site.Base)
	if err != nil {
		w.t.Fatal(err)
	}
	// The service of the walk is at a loopback address, for which the domain of passkeys is localhost.
	party := virtualwebauthn.RelyingParty{ID: "localhost", Name: "Turnstone", Origin: "http://localhost:" + address.Port()}
	device, key := virtualwebauthn.NewAuthenticator(), virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeRSA)
	w.call("listIdentities", nil, nil)
	w.call("listSecurityLog", nil, nil)
	created := w.call("startPasskeyRegistration", nil, nil)
	creation, err := virtualwebauthn.ParseAttestationOptions(string(created.Body))
	if err != nil {
		w.t.Fatalf("%v: %s", err, created.Body)
	}
	device.Options.UserHandle = []byte(creation.UserID)
	credential := func(text string) map[string]any {
		var members map[string]any
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			w.t.Fatal(err)
		}
		return members
	}
	sign := func(asked *sitetest.Response) map[string]any {
		request, err := virtualwebauthn.ParseAssertionOptions(string(asked.Body))
		if err != nil {
			w.t.Fatalf("%v: %s", err, asked.Body)
		}
		key.Counter++
		return map[string]any{"credential": credential(virtualwebauthn.CreateAssertionResponse(party, device, key, *request))}
	}
	added := w.call("finishPasskeyRegistration", nil, map[string]any{
		"name": sitetest.Canary, "credential": credential(virtualwebauthn.CreateAttestationResponse(party, device, key, *creation)),
	})
	w.guest.token = added.Text(w.t, http.StatusCreated, "session", "csrf_token")
	path := args{"passkey_id": added.Text(w.t, http.StatusCreated, "passkey", "passkey_id")}
	w.call("renamePasskey", path, map[string]any{"name": "Laptop"}).Text(w.t, http.StatusOK, "name")
	w.guest.token = w.call("finishPasskeyReauthentication", nil, sign(w.call("startPasskeyReauthentication", nil, nil))).
		Text(w.t, http.StatusOK, "csrf_token")
	other := w.newGuest()
	signed := sign(other.call(w.t, "startPasskeySignIn", nil, nil))
	other.token = other.call(w.t, "finishPasskeySignIn", nil, signed).Text(w.t, http.StatusOK, "csrf_token")
	if used := other.call(w.t, "listPasskeys", nil, nil).Text(w.t, http.StatusOK, "data", 0, "last_used_at"); used == "" {
		w.t.Error("the passkey was not used")
	}
	other.call(w.t, "logout", nil, nil).Want(w.t, http.StatusNoContent, nil)
	other.token = ""
	other.call(w.t, "finishPasskeySignIn", nil, signed).Text(w.t, http.StatusUnauthorized, "code")
	w.call("deletePasskey", path, nil).Want(w.t, http.StatusNoContent, nil)
}
