package http

import (
	"testing"

	"turnstone/http/route"
)

func TestArchivingAndPinningChangeTheListsUnderTheVersionRule(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	id := u.conversation("First")
	u.conversation("Second")
	archive, pin := "/conversations/"+id+"/archive", "/conversations/"+id+"/pin"

	wantField(t, u.do(409, "PUT", pin, route.Object{"pinned": true}), "code", "version_required")
	pinned := u.do(200, "PUT", pin, route.Object{"pinned": true}, "If-Match", `"v1"`)
	if pinned.header.Get("ETag") != `"v2"` || pinned.at("pinned_at") == nil {
		t.Errorf("pinned: %s, %v", pinned.text, pinned.header)
	}
	wantField(t, u.do(200, "GET", "/conversations", nil), "data.0.conversation_id", id)
	wantField(t, u.do(200, "GET", "/conversations?pinned=true", nil), "data.1", nil)
	stale := u.do(409, "PUT", archive, route.Object{"archived": true, "version": 1})
	wantField(t, stale, "code", "stale_version")
	wantField(t, stale, "current.version", 2.0)
	u.do(422, "PUT", archive, route.Object{"archived": true, "version": 1}, "If-Match", `"v2"`)
	u.do(422, "PUT", archive, route.Object{"archived": "yes", "version": 2})
	u.do(422, "PUT", archive, route.Object{"version": 2})
	u.do(200, "PUT", archive, route.Object{"archived": true, "version": 2})
	wantField(t, u.do(200, "PUT", archive, route.Object{"archived": true, "version": 3}), "version", 3.0)
	wantField(t, u.do(409, "PUT", archive, route.Object{"archived": true}), "code", "version_required")
	wantField(t, u.do(200, "GET", "/conversations", nil), "data.0.title", "Second")
	wantField(t, u.do(200, "GET", "/conversations?archived=true", nil), "data.0.conversation_id", id)
	wantField(t, u.do(422, "PUT", archive, route.Object{"archived": false}, "If-Match", `W/"v3"`), "errors.0.field", "header.If-Match")
	wantField(t, u.do(200, "PUT", archive, route.Object{"archived": true}, "If-Match", "*"), "version", 3.0)
	wantField(t, u.do(200, "PUT", pin, route.Object{"pinned": false}, "If-Match", "*"), "version", 4.0)
	wantField(t, u.do(200, "PUT", pin, route.Object{"pinned": true}, "If-Match", "*"), "version", 5.0)
	u.do(422, "PUT", pin, route.Object{"pinned": false, "version": -1})
	restored := u.do(200, "PUT", archive, route.Object{"archived": false}, "If-Match", `"v5"`)
	wantField(t, restored, "archived_at", nil)
	wantField(t, u.do(200, "GET", "/conversations", nil), "data.0.conversation_id", id)
}
