package http

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/http/route"
	"turnstone/protocol"
)

// texts returns the text of the first part of each message on a page.
func texts(page decodedReply) []string {
	var all []string
	data, _ := page.at("data").([]any)
	for i := range data {
		all = append(all, fmt.Sprint(page.at(fmt.Sprintf("data.%d.parts.0.text", i))))
	}
	return all
}

func TestMessagesPageBothWaysAndAround(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Long")
	ids := u.storeMessages(id, "1", "2", "3", "4", "5", "6", "7", "8", "9")
	path := "/conversations/" + id + "/messages?limit=4"
	want := func(page decodedReply, next bool, expected ...string) {
		t.Helper()
		if got := texts(page); !slices.Equal(got, expected) {
			t.Errorf("the page has the messages %v, want %v", got, expected)
		}
		wantField(t, page, "has_more", next)
		if (page.at("next_cursor") != nil) != next {
			t.Errorf("next_cursor %v", page.at("next_cursor"))
		}
	}
	page := u.do(200, "GET", path, nil)
	want(page, true, "6", "7", "8", "9")
	wantField(t, page, "newer_cursor", nil)
	wantField(t, page, "data.0.sibling_count", 1.0)
	page = u.do(200, "GET", path+"&direction=older&cursor="+page.at("next_cursor").(string), nil)
	want(page, true, "2", "3", "4", "5")
	back := page.at("newer_cursor").(string)
	want(u.do(200, "GET", path+"&cursor="+page.at("next_cursor").(string), nil), false, "1")
	want(u.do(200, "GET", path+"&cursor="+back, nil), false, "6", "7", "8", "9")

	page = u.do(200, "GET", path+"&direction=newer", nil)
	want(page, true, "1", "2", "3", "4")
	want(u.do(200, "GET", path+"&direction=newer&cursor="+page.at("next_cursor").(string), nil), true, "5", "6", "7", "8")

	page = u.do(200, "GET", path+"&around="+ids[4], nil)
	want(page, true, "3", "4", "5", "6")
	want(u.do(200, "GET", path+"&cursor="+page.at("older_cursor").(string), nil), false, "1", "2")
	want(u.do(200, "GET", path+"&cursor="+page.at("newer_cursor").(string), nil), false, "7", "8", "9")

	cursor := page.at("newer_cursor").(string)
	for _, query := range []string{
		"&direction=older&cursor=" + cursor, "&around=" + ids[0] + "&cursor=" + cursor, "&direction=up", "&around=msg_1", "&branch_id=br_1",
		"&branch_id=" + protocol.NewBranchID().String() + "&cursor=" + cursor,
	} {
		u.do(422, "GET", path+query, nil)
	}
	u.do(404, "GET", path+"&around="+protocol.NewMessageID().String(), nil)
	u.do(404, "GET", path+"&branch_id="+protocol.NewBranchID().String(), nil)
	u.do(422, "GET", "/conversations/"+u.conversation("Other")+"/messages?cursor="+cursor, nil)
}

func TestAStreamingMessageReportsTheSequenceThatItCovers(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Live")
	u.storeMessages(id, "question")
	part := protocol.NewPartID()
	turn := u.liveTurn(id, &protocol.AnswerStarted{PartID: part, Format: "markdown"},
		&protocol.AnswerDelta{PartID: part, Delta: "so "}, &protocol.AnswerDelta{PartID: part, Offset: 3, Delta: "far"})
	page := u.do(200, "GET", "/conversations/"+id+"/messages", nil)
	wantField(t, page, "data.1.status", "streaming")
	wantField(t, page, "data.1.covers_sequence", 3.0)
	wantField(t, page, "data.1.parts.0.text", "so far")
	wantField(t, page, "data.1.parts.0.open", true)
	whole := u.do(200, "GET", "/conversations/"+id, nil)
	wantField(t, whole, "live_turn.turn_id", turn)
	wantField(t, whole, "live_turn.last_sequence", 3.0)
	wantField(t, whole, "live_turn.accepting_steering", true)
	wantField(t, whole, "unread", false)
}

func TestAReadMarkClearsUnread(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Read")
	ids := u.storeMessages(id, "question", "answer")
	path := "/conversations/" + id
	wantField(t, u.do(200, "GET", path, nil), "unread", true)
	marked := u.do(200, "PUT", path+"/read", map[string]any{"message_id": ids[1]})
	wantField(t, marked, "unread", false)
	wantField(t, marked, "version", 1.0)
	u.do(422, "PUT", path+"/read", map[string]any{"message_id": "msg_1"})
	u.do(422, "PUT", path+"/read", map[string]any{})
	u.do(404, "PUT", path+"/read", map[string]any{"message_id": protocol.NewMessageID()})
}

func TestTheQueueIsListed(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	id := u.conversation("Queue")
	for position := range 3 {
		_, err := w.DB.Exec(t.Context(), u.account.AccountID, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position)
			values ($1, $2, $3, 'queued', $4, $5)`, u.account.AccountID, protocol.NewFollowUpID(), u.parse(id), fmt.Sprint("later ", position), position+1)
		if err != nil {
			t.Fatal(err)
		}
	}
	path := "/conversations/" + id + "/follow-ups?limit=2"
	page := u.do(200, "GET", path, nil)
	wantField(t, page, "data.1.content", "later 1")
	wantField(t, page, "data.1.state", "queued")
	page = u.do(200, "GET", path+"&cursor="+page.at("next_cursor").(string), nil)
	wantField(t, page, "data.0.content", "later 2")
	wantField(t, page, "has_more", false)
	wantField(t, u.do(200, "GET", "/conversations/"+id, nil), "follow_ups.2.content", "later 2")
}

func TestAnItemOfTheQueueIsChanged(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	c := m.owner
	path := "/conversations/" + m.mine["conversation_id"] + "/follow-ups/" + m.mine["follow_up_id"]
	unversioned := c.expect(409, "PATCH", path, route.Object{"state": "queued"})
	if unversioned.Code != protocol.CodeVersionRequired || !strings.Contains(string(unversioned.body), `"later"`) {
		t.Errorf("without a version: %s", unversioned.body)
	}
	if stale := c.expect(409, "PATCH", path, route.Object{"state": "queued", "version": 7}); stale.Code != protocol.CodeStaleVersion {
		t.Errorf("with another version: %s", stale.body)
	}
	for _, content := range []route.Object{
		{"state": "started", "version": 1},
		{"version": 1},
		{"state": "held", "content": " ", "version": 1},
		{"state": "held", "content": strings.Repeat("x", protocol.MaxInputRunes+1), "version": 1},
	} {
		c.expect(422, "PATCH", path, content)
	}
	c.expect(422, "PATCH", path, route.Object{"state": "held", "version": 2}, "If-Match", `"v1"`)
	edited := c.expect(200, "PATCH", path, route.Object{"state": "held", "content": "What is 6*7?"}, "If-Match", `"v1"`)
	if edited.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag %s", edited.header.Get("ETag"))
	}
	var item protocol.FollowUp
	c.expect(200, "PATCH", path, route.Object{"state": "queued", "version": 2}).into(t, &item)
	if item.State != protocol.FollowUpStarted || item.TurnID == nil || item.Content != "What is 6*7?" {
		t.Fatalf("the released follow-up: %+v", item)
	}
	events := c.expect(200, "GET", "/chat/turns/"+item.TurnID.String()+"/events", nil)
	if !strings.Contains(string(events.body), "turn.finished") {
		t.Errorf("the events of the turn: %s", events.body)
	}
	if late := c.expect(409, "PATCH", path, route.Object{"state": "cancelled", "version": item.Version}); late.Code != protocol.CodeConflict {
		t.Errorf("after it was started: %s", late.body)
	}
}
