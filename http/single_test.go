package http

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
)

// TestEachObjectIsReadAlone checks that the route of one object returns what the list that has it returns, and that an object
// is not found in another conversation, nor after its own was deleted.
func TestEachObjectIsReadAlone(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	c, here := m.owner, "/conversations/"+m.mine["conversation_id"]
	other := m.conversation(m.owner)
	there := "/conversations/" + other["conversation_id"]
	for name, etag := range map[string]bool{
		"messages/" + m.mine["message_id"]: false, "branches/" + m.mine["branch_id"]: true,
		"follow-ups/" + m.mine["follow_up_id"]: true, "usage/" + m.mine["usage_id"]: false,
	} {
		list, _, _ := strings.Cut(name, "/")
		var page struct {
			Data []map[string]any `json:"data"`
		}
		c.expect(200, "GET", here+"/"+list, nil).into(t, &page)
		var one map[string]any
		resp := c.expect(200, "GET", here+"/"+name, nil)
		resp.into(t, &one)
		if !slices.ContainsFunc(page.Data, func(listed map[string]any) bool { return reflect.DeepEqual(listed, one) }) {
			t.Errorf("%s is %s, but the list has %v", name, resp.body, page.Data)
		}
		if (resp.header.Get("ETag") != "") != etag {
			t.Errorf("%s has the ETag %q", name, resp.header.Get("ETag"))
		}
		c.expect(404, "GET", there+"/"+name, nil)
	}
	var shares protocol.List[protocol.Share]
	c.expect(200, "GET", "/shares?limit=1", nil).into(t, &shares)
	var share protocol.Share
	c.expect(200, "GET", "/shares/"+shares.Data[0].ShareID.String(), nil).into(t, &share)
	if !reflect.DeepEqual(share, shares.Data[0]) {
		t.Errorf("the share is %+v, listed as %+v", share, shares.Data[0])
	}

	saved := c.expect(200, "PUT", there+"/draft", route.Object{"content": "Later."})
	if draft := c.expect(200, "GET", there+"/draft", nil); string(draft.body) != string(saved.body) || draft.header.Get("ETag") != saved.header.Get("ETag") {
		t.Errorf("the draft is %s %v, and was saved as %s", draft.body, draft.header, saved.body)
	}

	c.expect(204, "DELETE", there, nil)
	for _, name := range []string{
		"/messages/" + other["message_id"], "/branches/" + other["branch_id"], "/follow-ups/" + other["follow_up_id"],
		"/usage/" + other["usage_id"], "/draft", "/turns",
	} {
		c.expect(404, "GET", there+name, nil)
	}
	c.expect(404, "GET", "/shares/"+other["share_id"], nil)
}

// TestTheLocationOfACreatedObjectIsItsAddress checks that GET of the Location of each new object returns it.
func TestTheLocationOfACreatedObjectIsItsAddress(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	conversation := "/conversations/" + m.conversation(m.owner)["conversation_id"]
	for path, body := range map[string]route.Object{
		"/conversations": {}, "/projects": {"name": "New"}, conversation + "/follow-ups": {"content": "Next"},
		conversation + "/usage":  {"kind": "characters", "quantity": 3, "unit": "character"},
		conversation + "/shares": {},
		"/files/uploads":         {"filename": "a.txt", "media_type": "text/plain", "size": 10, "purpose": "attachment"},
	} {
		made := m.owner.expect(201, "POST", path, body, keyField, "one")
		again := m.owner.expect(201, "POST", path, body, keyField, "one")
		location := made.header.Get("Location")
		if again.header.Get("Location") != location {
			t.Errorf("%s: the Location is %s, and that of its replay %s", path, location, again.header.Get("Location"))
		}
		found := m.owner.expect(200, "GET", location, nil)
		var before, after map[string]any
		if json.Unmarshal(made.body, &before) != nil || json.Unmarshal(found.body, &after) != nil {
			t.Fatal(string(found.body))
		}
		for name, value := range after {
			if before[name] != nil && strings.HasSuffix(name, "_id") && !reflect.DeepEqual(value, before[name]) {
				t.Errorf("%s: the %s of %s is %v, want %v", path, name, location, value, before[name])
			}
		}
	}
}

func TestTheTurnsOfAConversationAreListedInPages(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	var want []protocol.TurnID
	path := "/conversations/" + m.mine["conversation_id"] + "/turns"
	for range 2 {
		resp := m.owner.expect(200, "POST", "/chat", route.Object{
			"conversation_id": m.mine["conversation_id"], "input": []route.Object{{"type": "text", "text": "Again"}},
		})
		var turn protocol.Turn
		m.owner.expect(200, "GET", resp.header.Get("Location"), nil).into(t, &turn)
		want = append(want, turn.TurnID)
	}
	first := idtest.Parse[protocol.TurnID](t, m.mine["turn_id"])
	want = append([]protocol.TurnID{first}, want...)
	slices.Reverse(want)
	var got []protocol.TurnID
	for next := path + "?limit=2"; next != ""; {
		var list protocol.List[protocol.Turn]
		m.owner.expect(200, "GET", next, nil).into(t, &list)
		for i := range list.Data {
			var alone protocol.Turn
			m.owner.expect(200, "GET", "/chat/turns/"+list.Data[i].TurnID.String(), nil).into(t, &alone)
			if !reflect.DeepEqual(alone, list.Data[i]) {
				t.Errorf("the list has %+v, but the turn is %+v", list.Data[i], alone)
			}
			got = append(got, list.Data[i].TurnID)
		}
		next = ""
		if list.HasMore {
			next = path + "?limit=2&cursor=" + *list.NextCursor
			m.stranger.expect(422, "GET", "/conversations/"+m.theirs["conversation_id"]+"/turns?cursor="+*list.NextCursor, nil)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// accountState is what tests read of GET /account.
type accountState struct {
	protocol.Account
	Limits struct {
		LiveTurns quota                 `json:"live_turns"`
		Files     quota                 `json:"files"`
		FileBytes quota                 `json:"file_bytes"`
		Tokens    *protocol.TokenBudget `json:"tokens"`
	} `json:"limits"`
}

type quota struct{ Limit, Used, Left int64 }

func TestTheAccountShowsItsLimits(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	read := func() (state accountState) {
		m.owner.expect(200, "GET", "/account", nil).into(t, &state)
		return state
	}
	before := read()
	if before.Account != m.owner.account || before.Limits.LiveTurns != (quota{Limit: 5, Left: 5}) || before.Limits.Tokens != nil {
		t.Errorf("%+v", before)
	}
	upload := m.openUpload(m.owner)
	after := read().Limits
	if after.Files.Used != before.Limits.Files.Used+1 || after.Files.Left != before.Limits.Files.Left-1 ||
		after.FileBytes.Used != before.Limits.FileBytes.Used+10 || after.FileBytes.Used+after.FileBytes.Left != after.FileBytes.Limit {
		t.Errorf("with an upload: %+v, before: %+v", after, before.Limits)
	}
	m.owner.expect(200, "DELETE", "/files/uploads/"+upload["upload_id"], nil)
	if ended := read().Limits; ended != before.Limits {
		t.Errorf("after the upload: %+v, before: %+v", ended, before.Limits)
	}
	fresh := m.disposableClient()
	var state accountState
	fresh.expect(200, "GET", "/account", nil).into(t, &state)
	if state.Limits.Files.Used != 0 || state.Limits.FileBytes.Used != 0 || state.Limits.Files.Limit == 0 {
		t.Errorf("a new account: %+v", state.Limits)
	}
}
