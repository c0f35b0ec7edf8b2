package http

import (
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestBranchesAreMadeListedAndSwitched(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Tree")
	path := "/conversations/" + id
	ids := u.storeMessages(id, "one", "two", "three", "four")
	trunk := u.do(200, "GET", path, nil).at("active_branch_id")

	made := u.do(201, "POST", path+"/branches", map[string]any{"message_id": ids[2], "mode": "edit", "name": " Other way "})
	wantField(t, made, "name", "Other way")
	wantField(t, made, "base_message_id", ids[1])
	wantField(t, made, "active", true)
	wantField(t, u.do(200, "GET", path, nil), "active_branch_id", made.at("branch_id"))
	u.storeMessages(id, "three again")
	page := u.do(200, "GET", path+"/messages", nil)
	wantField(t, page, "data.2.sibling_index", 1.0)
	wantField(t, page, "data.2.sibling_count", 2.0)
	wantField(t, page, "data.2.previous_sibling.message_id", ids[2])
	wantField(t, page, "data.2.previous_sibling.branch_id", trunk)
	wantField(t, page, "data.2.next_sibling", nil)
	wantField(t, page, "branch_id", made.at("branch_id"))

	list := u.do(200, "GET", path+"/branches?limit=1", nil)
	wantField(t, list, "data.0.branch_id", trunk)
	list = u.do(200, "GET", path+"/branches?limit=1&cursor="+list.at("next_cursor").(string), nil)
	wantField(t, list, "data.0.branch_id", made.at("branch_id"))
	wantField(t, list, "has_more", false)

	wantField(t, u.do(409, "PUT", path+"/active-branch", map[string]any{"branch_id": trunk}), "code", "version_required")
	switched := u.do(200, "PUT", path+"/active-branch", map[string]any{"branch_id": trunk}, "If-Match", `"v2"`)
	wantField(t, switched, "head_message_id", ids[3])
	u.do(404, "PUT", path+"/active-branch", map[string]any{"branch_id": protocol.NewBranchID(), "version": 3})

	wantField(t, u.do(200, "GET", path, nil), "active_branch_id", trunk) // as every other device sees it
	wantField(t, u.do(200, "GET", path, nil), "version", 3.0)

	fork := u.do(201, "POST", path+"/branches", map[string]any{"message_id": ids[1], "mode": "fork"})
	wantField(t, fork, "title", "Tree (copy)")
	wantField(t, fork, "message_count", 2.0)
	if fork.header.Get("Location") != "/conversations/"+fork.at("conversation_id").(string) {
		t.Errorf("Location %s", fork.header.Get("Location"))
	}
	for _, content := range []map[string]any{
		{"message_id": ids[1], "mode": "edit"},
		{"message_id": ids[0], "mode": "regenerate"},
		{"message_id": ids[0], "mode": "prune"},
		{"message_id": "msg_1", "mode": "edit"},
		{"mode": "edit"},
		{"message_id": ids[0], "mode": "edit", "name": strings.Repeat("n", 201)},
	} {
		u.do(422, "POST", path+"/branches", content)
	}
	u.do(404, "POST", path+"/branches", map[string]any{"message_id": protocol.NewMessageID(), "mode": "fork"})
	turn := u.liveTurn(id)
	busy := u.do(409, "POST", path+"/branches", map[string]any{"message_id": ids[0], "mode": "edit"})
	wantField(t, busy, "code", "turn_in_progress")
	wantField(t, busy, "current.turn_id", turn)
	wantField(t, u.do(409, "PUT", path+"/active-branch", map[string]any{"branch_id": made.at("branch_id"), "version": 3}), "code", "turn_in_progress")
}

func TestBranchesAreRenamedAndFormATree(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	id := u.conversation("Tree")
	ids := u.storeMessages(id, "one", "two", "three", "four")
	path := "/conversations/" + id + "/branches"
	made := u.do(201, "POST", path, map[string]any{"message_id": ids[2], "mode": "edit", "name": " In Celsius "})
	wantField(t, made, "name", "In Celsius")
	wantField(t, made, "base_message_id", ids[1])
	wantField(t, made, "base_depth", 2.0)
	wantField(t, made, "head_depth", 2.0)
	if made.header.Get("ETag") != `"v1"` {
		t.Errorf("ETag %s", made.header.Get("ETag"))
	}
	list := u.do(200, "GET", path, nil)
	wantField(t, list, "data.0.parent_branch_id", nil)
	wantField(t, list, "data.1.parent_branch_id", list.at("data.0.branch_id"))

	branch := path + "/" + made.at("branch_id").(string)
	named := u.do(200, "PATCH", branch, map[string]any{"name": "In Kelvin"}, "If-Match", `"v1"`)
	wantField(t, named, "name", "In Kelvin")
	wantField(t, named, "version", 2.0)
	stale := u.do(409, "PATCH", branch, map[string]any{"name": "In Fahrenheit", "version": 1})
	wantField(t, stale, "code", "stale_version")
	wantField(t, stale, "current.name", "In Kelvin")
	wantField(t, u.do(200, "PATCH", branch, map[string]any{"name": ""}), "version", 3.0)
	u.do(422, "PATCH", branch, map[string]any{"name": strings.Repeat("n", 201)})
	u.do(422, "PATCH", branch, map[string]any{})
	u.do(422, "PATCH", branch, map[string]any{"name": "x", "version": 2}, "If-Match", `"v3"`)
	u.do(404, "PATCH", path+"/"+protocol.NewBranchID().String(), map[string]any{"name": "x"})
	other := u.do(201, "POST", "/conversations", map[string]any{"title": "Other"})
	u.do(404, "PATCH", path+"/"+other.at("active_branch_id").(string), map[string]any{"name": "x"})
	stranger := signUp(t, w)
	stranger.do(404, "PATCH", branch, map[string]any{"name": "x"})
}

func TestADraftIsReplacedUnderItsOwnVersion(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	path := "/conversations/" + u.conversation("Draft") + "/draft"
	list := []listedFile{{name: "a.txt", kind: protocol.FileText, size: 1}}
	u.storeRows(list)
	file := list[0].id
	draft := u.do(200, "PUT", path, map[string]any{"content": "half a", "attachments": []string{file}, "version": 0})
	wantField(t, draft, "version", 1.0)
	wantField(t, draft, "attachments.0", file)
	stale := u.do(409, "PUT", path, map[string]any{"content": "other", "version": 0})
	wantField(t, stale, "code", "stale_version")
	wantField(t, stale, "current.content", "half a")
	draft = u.do(200, "PUT", path, map[string]any{"content": ""}, "If-Match", `"v1"`)
	wantField(t, draft, "content", "")
	if draft.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag %s", draft.header.Get("ETag"))
	}
	u.do(200, "PUT", path, map[string]any{"content": "last writer"})
	u.do(422, "PUT", path, map[string]any{"content": strings.Repeat("x", 100_001)})
	u.do(422, "PUT", path, map[string]any{"content": "x", "attachments": []string{"file_1"}})
	u.do(422, "PUT", path, map[string]any{})
}

func TestUsageIsRecordedListedAndSummed(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	path := "/conversations/" + u.conversation("Usage") + "/usage"
	record := u.do(201, "POST", path, map[string]any{"kind": "speech", "quantity": 1.5, "unit": "seconds", "occurred_at": "2026-01-02T03:04:05Z"})
	wantField(t, record, "source", "client")
	wantField(t, record, "occurred_at", "2026-01-02T03:04:05.000Z")
	for _, content := range []map[string]any{
		{"kind": "k", "quantity": 0, "unit": "u"},
		{"kind": "k", "quantity": -1, "unit": "u"},
		{"kind": "", "quantity": 1, "unit": "u"},
		{"kind": "k", "quantity": 1},
		{"kind": "k", "quantity": 1, "unit": "u", "occurred_at": "2999-01-01T00:00:00Z"},
		{"kind": "k", "quantity": 1, "unit": "u", "occurred_at": "yesterday"},
	} {
		u.do(422, "POST", path, content)
	}
	wantField(t, u.do(200, "GET", path, nil), "data.0.kind", "speech")
	for _, profile := range []string{"balanced", "coding"} {
		_, err := s.DB.Exec(t.Context(), u.account.AccountID, `insert into usage_records (account_id, usage_id, source, kind, quantity, unit, turn_id, profile, usage, occurred_at)
			values ($1, $2, 'server', 'turn', 1, 'turn', $3, $4, '{"input_tokens": 3}', '2026-01-02T10:00:00Z')`,
			u.account.AccountID, protocol.NewUsageID(), protocol.NewTurnID(), profile)
		if err != nil {
			t.Fatal(err)
		}
	}
	query := "/usage?from=2026-01-01&to=2026-02-01T00:00:00Z"
	days := u.do(200, "GET", query, nil)
	wantField(t, days, "data.0.key", "2026-01-02")
	wantField(t, days, "data.0.turns", 2.0)
	wantField(t, days, "data.0.input_tokens", 6.0)
	profiles := u.do(200, "GET", query+"&group_by=profile&limit=1", nil)
	wantField(t, profiles, "data.0.key", "balanced")
	profiles = u.do(200, "GET", query+"&group_by=profile&limit=1&cursor="+profiles.at("next_cursor").(string), nil)
	wantField(t, profiles, "data.0.key", "coding")
	wantField(t, profiles, "has_more", false)
	u.do(200, "GET", "/usage", nil)
	for _, wrong := range []string{"?from=2026-02-01&to=2026-01-01", "?from=2020-01-01&to=2026-01-01", "?from=x", "?group_by=hour"} {
		u.do(422, "GET", "/usage"+wrong, nil)
	}
}
