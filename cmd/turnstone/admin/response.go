package admin

import (
	"net/http"

	"turnstone/http/response"
)

// Fail sends an error as the response. Operators also get its cause, which clients must not see.
func Fail(w http.ResponseWriter, err error) {
	p := response.UnroutedProblem(err)
	p.Detail = err.Error()
	w.Header().Set("Cache-Control", "no-store")
	p.Send(w)
}

// WriteJSON sends a response with a JSON body.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Cache-Control", "no-store")
	_ = response.SendJSON(w, status, body) // the bodies can be encoded
}
