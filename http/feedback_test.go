package http

import (
	"fmt"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestFeedbackIsShownInItsMessageUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Rated")
	path := "/conversations/" + id + "/feedback"
	none := u.do(409, "PUT", path, map[string]any{"rating": "up"})
	wantField(t, none, "code", "conflict")
	wantField(t, none, "current.message_id", nil)
	ids := u.storeMessages(id, "one", "two", "three", "four")

	rated := u.do(200, "PUT", path, map[string]any{"message_id": ids[3], "rating": "down", "reasons": []string{"inaccurate", "other"}, "comment": " Off by one "})
	wantField(t, rated, "message_id", ids[3])
	wantField(t, rated, "feedback.comment", "Off by one")
	page := u.do(200, "GET", "/conversations/"+id+"/messages", nil)
	wantField(t, page, "data.3.feedback.rating", "down")
	wantField(t, page, "data.3.feedback.reasons.1", "other")
	wantField(t, page, "data.1.feedback", nil)
	wantField(t, u.do(200, "GET", "/conversations/"+id, nil), "version", 1.0)

	stranger := signUp(t, s)
	foreign := stranger.storeMessages(stranger.conversation("Other"), "one", "two")[1]
	for _, other := range []any{ids[1], ids[2], protocol.NewMessageID(), foreign} {
		for _, refused := range []decodedReply{
			u.do(409, "PUT", path, map[string]any{"message_id": other, "rating": "up"}),
			u.do(409, "DELETE", path+"?message_id="+fmt.Sprint(other), nil),
		} {
			wantField(t, refused, "current.message_id", ids[3])
			wantField(t, refused, "current.feedback.rating", "down")
		}
	}
	replaced := u.do(200, "PUT", path, map[string]any{"message_id": nil, "rating": "up"})
	wantField(t, replaced, "feedback.comment", "")
	wantField(t, replaced, "feedback.reasons.0", nil)
	u.do(204, "DELETE", path+"?message_id="+ids[3], nil)
	u.do(204, "DELETE", path, nil)
	wantField(t, u.do(200, "GET", "/conversations/"+id+"/messages", nil), "data.3.feedback", nil)

	for _, wrong := range []map[string]any{
		{},
		{"rating": "sideways"},
		{"rating": "up", "reasons": []string{"inaccurate"}},
		{"rating": "down", "reasons": []string{"accurate"}},
		{"rating": "down", "reasons": []string{"unclear", "unclear"}},
		{"rating": "down", "reasons": []string{"lucky"}},
		{"rating": "up", "comment": strings.Repeat("é", protocol.MaxFeedbackComment+1)},
		{"rating": "up", "message_id": "msg_1"},
	} {
		u.do(422, "PUT", path, wrong)
	}
	u.do(200, "PUT", path, map[string]any{"rating": "up", "comment": strings.Repeat("é", protocol.MaxFeedbackComment)})
	u.do(422, "DELETE", path+"?message_id=msg_1", nil)
}
