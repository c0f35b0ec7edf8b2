package http

import (
	"bytes"
	stdhttp "net/http"

	"turnstone/http/response"
	"turnstone/persistence/idempotency"
	"turnstone/protocol"
)

// createdResponse returns the 201 response of a request that created a resource. Its Location is that of the
// conversation or, for other resources, the path of the request.
func createdResponse(path string, resource any) (*idempotency.StoredResponse, error) {
	stored := &idempotency.StoredResponse{
		Status: stdhttp.StatusCreated, Headers: map[string]string{"Content-Type": "application/json", "Location": path},
	}
	if c, ok := resource.(*protocol.Conversation); ok {
		stored.Headers["Location"], stored.Headers["ETag"] = conversationPath(c.ConversationID), response.ETagOf(c.Version)
	}
	var body bytes.Buffer
	err := response.WriteJSON(&body, resource)
	stored.Body = body.Bytes()
	return stored, err
}
