package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"turnstone/persistence"
	"turnstone/protocol"
)

// The process makes the conversation and dies before it answers: the key's next request gets that conversation.
func TestAnAnswerIsKeptInTheTransactionOfItsEffect(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	request := object{"title": "Kept"}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	key := protocol.IdempotencyKey{Method: "POST", Path: "/conversations", Key: "k", BodyHash: sha256.Sum256(text)}
	claim, _, err := w.DB.ClaimKey(t.Context(), c.account.AccountID, key)
	if err != nil {
		t.Fatal(err)
	}
	ctx := persistence.WithKeeper(t.Context(), &persistence.Keeper{Claim: claim, Answer: createdAt(key.Path)})
	made, err := w.DB.CreateConversation(ctx, c.account.AccountID, &persistence.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: "Kept",
	})
	if err != nil {
		t.Fatal(err)
	}
	repeated := c.expect(201, "POST", "/conversations", request, "Idempotency-Key", "k")
	if repeated.header.Get(replayedHeader) != "true" || repeated.header.Get("Location") != conversationPath(made.ConversationID) {
		t.Errorf("the repeat got %v", repeated.header)
	}
	fresh := c.expect(200, "GET", conversationPath(made.ConversationID), nil)
	if repeated.header.Get("ETag") != fresh.header.Get("ETag") || !bytes.Contains(repeated.body, []byte(made.ConversationID.String())) {
		t.Errorf("kept %s", repeated.body)
	}
	var list protocol.List[protocol.Conversation]
	c.expect(200, "GET", "/conversations", nil).into(t, &list)
	if len(list.Data) != 1 {
		t.Errorf("one key made %d conversations", len(list.Data))
	}
}
