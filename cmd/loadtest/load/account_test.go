package load

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"turnstone/protocol"
)

func TestRenderedRequestsHaveEveryCookieOfTheSession(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "s", Path: "/"})
		http.SetCookie(w, &http.Cookie{Name: "device", Value: "d", Path: "/"})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(protocol.SessionInfo{Account: protocol.Account{AccountID: protocol.NewAccountID()}, CSRFToken: "token"})
	}))
	t.Cleanup(service.Close)
	t.Cleanup(Transport.CloseIdleConnections)
	accounts, err := SignUp(t.Context(), service.URL, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range [][]byte{accounts[0].ChatRequest("hello", ""), accounts[0].EventsRequest("turn_1", 0)} {
		for _, want := range []string{"session=s", "device=d"} {
			if !bytes.Contains(request, []byte(want)) {
				t.Errorf("%q does not contain %q", request, want)
			}
		}
	}
}
