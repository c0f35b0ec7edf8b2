package admin

import (
	"encoding/json"
	"net/http"

	"turnstone/http/response"
)

func fail(w http.ResponseWriter, err error) {
	WriteJSON(w, response.ProblemOf(err).Status, Error{err.Error()})
}

// WriteJSON writes a response with a JSON body.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // it fails only if the client is gone
}

// Error is the response body of a failed command.
type Error struct {
	Detail string `json:"detail"`
}
