package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/protocol"
)

// The process creates the conversation and crashes before it responds. The next request with the key gets that
// conversation.
func TestAResponseIsStoredInTheTransactionOfItsEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	request := route.Object{"title": "Kept"}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	key := protocol.IdempotencyKey{Method: "POST", Path: "/conversations", Key: "k", BodyHash: sha256.Sum256(text)}
	claim, _, err := w.DB.Idempotency.ClaimKey(t.Context(), c.account.AccountID, key)
	if err != nil {
		t.Fatal(err)
	}
	ctx := idempotency.WithResponseStorer(t.Context(), &idempotency.ResponseStorer{Claim: claim, Build: func(made any) (*idempotency.StoredResponse, error) {
		return resource.StoredCreated(key.Path, 201, made)
	}})
	made, err := w.DB.Conversations.CreateConversation(ctx, c.account.AccountID, &conversations.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: "Kept",
	})
	if err != nil {
		t.Fatal(err)
	}
	repeated := c.expect(201, "POST", "/conversations", request, "Idempotency-Key", "k")
	if repeated.header.Get(replayedField) != "true" || repeated.header.Get("Location") != protocol.ConversationPath(made.ConversationID) {
		t.Errorf("headers of the repeat: %v", repeated.header)
	}
	fresh := c.expect(200, "GET", protocol.ConversationPath(made.ConversationID), nil)
	if repeated.header.Get("ETag") != fresh.header.Get("ETag") || !bytes.Contains(repeated.body, []byte(made.ConversationID.String())) {
		t.Errorf("the stored response is %s", repeated.body)
	}
	var list protocol.List[protocol.Conversation]
	c.expect(200, "GET", "/conversations", nil).into(t, &list)
	if len(list.Data) != 1 {
		t.Errorf("one key created %d conversations", len(list.Data))
	}
}
