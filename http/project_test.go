package http

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"turnstone/actors/llm"
	"turnstone/http/route"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

// project creates a project and returns its identifier.
func (u *user) project(name string) string {
	u.t.Helper()
	return u.do(201, "POST", "/projects", route.Object{"name": name}).at("project_id").(string)
}

func TestAProjectIsCreatedChangedAndListed(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	made := u.do(201, "POST", "/projects", route.Object{"name": " " + strings.Repeat("ü", 200) + " "})
	id := made.at("project_id").(string)
	path := "/projects/" + id
	if made.header.Get("Location") != path || made.header.Get("ETag") != `"v1"` {
		t.Errorf("headers %v", made.header)
	}
	wantField(t, made, "state", "active")
	wantField(t, made, "conversation_count", 0.0)
	wantField(t, made, "file_count", 0.0)
	for _, name := range []string{"", " ", strings.Repeat("ü", 201)} {
		u.do(422, "POST", "/projects", route.Object{"name": name})
		u.do(422, "PUT", path+"/name", route.Object{"name": name, "version": 1})
	}
	wantField(t, u.do(409, "PUT", path+"/name", route.Object{"name": "Kitchen"}), "code", "version_required")
	renamed := u.do(200, "PUT", path+"/name", route.Object{"name": "Kitchen"}, "If-Match", `"v1"`)
	wantField(t, renamed, "name", "Kitchen")
	stale := u.do(409, "PUT", path+"/archive", route.Object{"archived": true, "version": 1})
	wantField(t, stale, "code", "stale_version")
	wantField(t, stale, "current.version", 2.0)
	wantField(t, u.do(200, "PUT", path+"/archive", route.Object{"archived": true, "version": 2}), "state", "archived")
	wantField(t, u.do(200, "GET", "/projects", nil), "data.0", nil)
	wantField(t, u.do(200, "GET", "/projects?state=archived", nil), "data.0.project_id", id)
	wantField(t, u.do(409, "PUT", path+"/name", route.Object{"name": "Bath", "version": 3}), "current.state", "archived")
	conflict := u.do(409, "POST", path+"/conversations", route.Object{"title": "x"})
	wantField(t, conflict, "code", "conflict")
	wantField(t, conflict, "current.project_id", id)
	wantField(t, u.do(409, "POST", "/conversations", route.Object{"project_id": id}), "code", "conflict")
	u.do(200, "PUT", path+"/archive", route.Object{"archived": false, "version": 3})
	for i := range 3 {
		u.project(fmt.Sprint("more ", i))
	}
	first := u.do(200, "GET", "/projects?limit=3", nil)
	wantField(t, first, "has_more", true)
	wantField(t, first, "data.0.name", "more 2")
	rest := u.do(200, "GET", "/projects?limit=3&cursor="+first.at("next_cursor").(string), nil)
	wantField(t, rest, "data.0.name", "Kitchen")
	wantField(t, rest, "next_cursor", nil)
	u.do(422, "GET", "/projects?state=any&limit=3&cursor="+first.at("next_cursor").(string), nil)
	u.do(422, "GET", "/projects?state=gone", nil)
}

func TestSettingsAndInstructionsOfAProject(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	path := "/projects/" + u.project("Kitchen")
	wantField(t, u.do(200, "GET", path+"/settings", nil), "version", 0.0)
	wantField(t, u.do(409, "PUT", path+"/settings", route.Object{"default_profile": "coding"}), "code", "version_required")
	changed := u.do(200, "PUT", path+"/settings", route.Object{"default_profile": "coding", "tools": route.Object{"off": []string{"calculate"}}, "version": 0})
	wantField(t, changed, "version", 1.0)
	wantField(t, changed, "memory_scope", "account")
	wantField(t, u.do(409, "PUT", path+"/settings", route.Object{"version": 0}), "current.default_profile", "coding")
	wantField(t, changed, "tools.off.0", "calculate")
	u.do(422, "PUT", path+"/settings", route.Object{"tools": route.Object{"off": slices.Repeat([]string{"calculate"}, protocol.MaxProjectTools+1)}, "version": 1})
	u.do(422, "PUT", path+"/settings", route.Object{"tools": route.Object{"off": []string{"no_such_tool"}}, "version": 1})
	u.do(422, "PUT", path+"/settings", route.Object{"default_profile": "best", "version": 1})

	wantField(t, u.do(200, "GET", path+"/instructions", nil), "content", "")
	longest := strings.Repeat("ü", protocol.MaxInstructions)
	u.do(422, "PUT", path+"/instructions", route.Object{"content": longest + "x", "version": 0})
	wantField(t, u.do(200, "PUT", path+"/instructions", route.Object{"content": longest, "version": 0}), "version", 1.0)
	second := u.do(200, "PUT", path+"/instructions", route.Object{"content": "Be brief."}, "If-Match", `"v1"`)
	if second.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag %s", second.header.Get("ETag"))
	}
	wantField(t, u.do(409, "PUT", path+"/instructions", route.Object{"content": "x", "version": 1}), "current.content", "Be brief.")
	wantField(t, u.do(200, "GET", path+"/instructions?version=1", nil), "content", longest)
	u.do(404, "GET", path+"/instructions?version=3", nil)
	u.do(422, "GET", path+"/instructions?version=0x", nil)
}

func TestADeletedProjectIsConfirmedHiddenAndRestored(t *testing.T) {
	t.Parallel()
	w, turns := conversationWorld(t)
	u := signUp(t, w)
	id := u.project("Kitchen")
	path := "/projects/" + id
	inside := u.do(201, "POST", path+"/conversations", route.Object{"title": "Inside"}).at("conversation_id").(string)
	u.conversation("Outside")
	u.storeMessages(inside, "question")
	turn := u.liveTurn(inside)
	recipe := []listedFile{{name: "recipe.txt", kind: protocol.FileText, size: 1}}
	u.storeRows(recipe)
	u.addFile(id, recipe[0].id)
	u.do(200, "PUT", path+"/instructions", route.Object{"content": "Use grams."}, "If-Match", `"v0"`)
	u.do(201, "POST", "/prompts", route.Object{"project_id": id, "name": "scale", "text": "Scale this for {{guests}}."})
	wantField(t, u.do(409, "DELETE", path, nil), "code", "version_required")
	first := u.do(409, "DELETE", path, nil, "If-Match", `"v1"`)
	wantField(t, first, "code", "confirmation_required")
	wantField(t, first, "current.confirmation.will_delete.conversations", 1.0)
	wantField(t, first, "current.confirmation.will_delete.live_turns", 1.0)
	wantField(t, first, "current.confirmation.will_delete.files", 1.0)
	wantField(t, first, "current.confirmation.will_delete.instructions", 1.0)
	wantField(t, first, "current.confirmation.will_delete.prompts", 1.0)
	if detail := first.at("detail").(string); !strings.Contains(detail, "restored for 30 days") || strings.Contains(detail, "cannot be undone") {
		t.Errorf("the detail is %q", detail)
	}
	token := first.at("current.confirmation.token").(string)
	u.do(409, "DELETE", path, nil, "If-Match", `"v1"`, "X-Confirm", "no")
	other := "/projects/" + u.project("Other")
	u.do(409, "DELETE", other, nil, "If-Match", `"v1"`, "X-Confirm", token)
	if len(turns.cancelled) != 0 {
		t.Fatalf("cancelled %v without a confirmation", turns.cancelled)
	}
	deleted := u.do(200, "DELETE", path, nil, "If-Match", `"v1"`, "X-Confirm", token)
	wantField(t, deleted, "state", "deleted")
	if deleted.at("purge_at") == nil || len(turns.cancelled) != 1 || turns.cancelled[0].String() != turn || turns.by != protocol.CancelledByDeletion || turns.scope != protocol.CancelTurn {
		t.Errorf("deleted %s, cancelled %+v", deleted.text, turns)
	}
	hidden := "/conversations/" + inside
	for _, read := range []string{hidden, hidden + "/messages", hidden + "/branches", hidden + "/follow-ups", hidden + "/usage", hidden + "/move-targets"} {
		u.do(404, "GET", read, nil)
	}
	u.do(404, "PUT", hidden+"/draft", route.Object{"content": "x"})
	u.do(404, "PUT", hidden+"/project", route.Object{"project_id": nil, "version": 1})
	list := u.do(200, "GET", "/conversations", nil)
	wantField(t, list, "data.0.title", "Outside")
	wantField(t, list, "data.1", nil)
	wantField(t, u.do(200, "GET", path+"/conversations", nil), "data.0", nil)
	u.do(404, "POST", path+"/conversations", route.Object{"title": "x"})
	wantField(t, u.do(200, "GET", "/projects?state=deleted", nil), "data.0.project_id", id)
	wantField(t, u.do(409, "POST", path+"/restore", route.Object{"version": 1}), "code", "stale_version")
	wantField(t, u.do(200, "POST", path+"/restore", route.Object{"version": 2}), "state", "active")
	wantField(t, u.do(409, "POST", path+"/restore", route.Object{"version": 3}), "code", "conflict")
	wantField(t, u.do(200, "GET", hidden, nil), "title", "Inside")
	wantField(t, u.do(200, "GET", path+"/conversations", nil), "data.0.conversation_id", inside)
	events := w.events(u.account.AccountID)
	if !contains(events, projects.EventProjectDeleted) || !contains(events, projects.EventProjectRestored) {
		t.Errorf("the audit contains %v", events)
	}
	work := u.do(200, "GET", path+"/work-history?limit=2", nil)
	wantField(t, work, "data.0.kind", "project_restored")
	wantField(t, work, "data.0.by", "user")
	wantField(t, work, "data.1.kind", "project_deleted")
	work = u.do(200, "GET", path+"/work-history?limit=2&cursor="+work.at("next_cursor").(string), nil) // the files and the instructions
	older := u.do(200, "GET", path+"/work-history?cursor="+work.at("next_cursor").(string), nil)
	wantField(t, older, "data.0.kind", "conversation_created")
	wantField(t, older, "data.0.conversation_id", inside)
}

func TestAConversationMovesBetweenProjects(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	id, project := u.conversation("A"), u.project("Kitchen")
	path := "/conversations/" + id
	wantField(t, u.do(200, "GET", path+"/move-targets", nil), "data.0.project_id", project)
	wantField(t, u.do(409, "PUT", path+"/project", route.Object{"project_id": project}), "code", "version_required")
	wantField(t, u.do(200, "PUT", path+"/project", route.Object{"project_id": project, "version": 1}), "project_id", project)
	wantField(t, u.do(200, "PUT", path+"/project", route.Object{"project_id": project, "version": 2}), "version", 2.0)
	wantField(t, u.do(409, "PUT", path+"/project", route.Object{"project_id": nil, "version": 1}), "current.project_id", project)
	u.do(422, "PUT", path+"/project", route.Object{"version": 2})
	u.do(422, "PUT", path+"/project", route.Object{"project_id": "proj_x", "version": 2})
	wantField(t, u.do(200, "GET", path+"/move-targets", nil), "data.0", nil)
	wantField(t, u.do(200, "GET", "/projects/"+project, nil), "conversation_count", 1.0)
	wantField(t, u.do(200, "GET", "/conversations?project_id="+project, nil), "data.0.conversation_id", id)
	wantField(t, u.do(200, "PUT", path+"/project", route.Object{"project_id": nil}, "If-Match", `"v2"`), "project_id", nil)
	u.do(422, "POST", "/conversations", route.Object{"project_id": project, "temporary": true})
}

func TestARepeatedCreationInAProjectMakesNothingNew(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	for _, path := range []string{"/projects", "/projects/" + u.project("Kitchen") + "/conversations"} {
		body := route.Object{"name": "Twice", "title": "Twice"}
		first := u.do(201, "POST", path, body, "Idempotency-Key", "key-1")
		second := u.do(201, "POST", path, body, "Idempotency-Key", "key-1")
		if first.text != second.text || second.header.Get("Idempotent-Replayed") != "true" || second.header.Get("Location") != first.header.Get("Location") ||
			second.header.Get("ETag") != first.header.Get("ETag") {
			t.Errorf("%s: %s and %s, %v", path, first.text, second.text, second.header)
		}
	}
}

func TestAnotherAccountsProjectIsAMissingOne(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	owner, stranger := signUp(t, w), signUp(t, w)
	theirs, missing := owner.project("secret"), protocol.NewProjectID().String()
	own := stranger.conversation("own")
	for _, ask := range []struct {
		method, path string
		content      any
	}{
		{"GET", "/projects/%s", nil},
		{"GET", "/projects/%s/settings", nil},
		{"GET", "/projects/%s/instructions", nil},
		{"GET", "/projects/%s/work-history", nil},
		{"GET", "/projects/%s/conversations", nil},
		{"GET", "/projects/%s/search?q=secret", nil},
		{"POST", "/projects/%s/conversations", route.Object{"title": "x"}},
		{"PUT", "/projects/%s/name", route.Object{"name": "x", "version": 1}},
		{"PUT", "/projects/%s/archive", route.Object{"archived": true, "version": 1}},
		{"PUT", "/projects/%s/settings", route.Object{"version": 0}},
		{"PUT", "/projects/%s/instructions", route.Object{"content": "x", "version": 0}},
		{"POST", "/projects/%s/restore", route.Object{"version": 1}},
		{"DELETE", "/projects/%s", nil},
		{"POST", "/conversations", route.Object{"project_id": "%s"}},
		{"POST", "/prompts", route.Object{"project_id": "%s"}},
		{"PUT", "/conversations/" + own + "/project", route.Object{"project_id": "%s", "version": 1}},
	} {
		var texts [2]string
		for i, id := range []string{theirs, missing} {
			path, content := ask.path, ask.content
			if strings.Contains(path, "%s") {
				path = fmt.Sprintf(path, id)
			} else {
				content = route.Object{"project_id": id, "version": 1, "name": "x", "text": "x"}
			}
			got := stranger.do(404, ask.method, path, content, "If-Match", "")
			texts[i] = strings.ReplaceAll(got.text, got.RequestID, "")
		}
		if texts[0] != texts[1] || strings.Contains(texts[0], "secret") {
			t.Errorf("%s %s reveals that the project exists: %s and %s", ask.method, ask.path, texts[0], texts[1])
		}
	}
}

// recordingModel is a model that stores its requests and answers "fine".
type recordingModel struct {
	mu       sync.Mutex
	requests []llm.Request // guarded by mu
}

func (m *recordingModel) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	m.mu.Lock()
	m.requests = append(m.requests, request)
	m.mu.Unlock()
	return modeltest.Emit(ctx, emit, modeltest.Answer("fine")...)
}

func (*recordingModel) Continues() bool { return true }

func (*recordingModel) Family() string { return "scripted" }

func (*recordingModel) Ready(context.Context) error { return nil }

// last returns the last request.
func (m *recordingModel) last() llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[len(m.requests)-1]
}

func TestEveryTurnOfAProjectHasItsInstructions(t *testing.T) {
	t.Parallel()
	model := &recordingModel{}
	w := newWorld(t, func(c *testConfig) { c.Turns = nodeOn(t, c, model, nil, func() { t.Error("the node was fenced") }) })
	u := signUp(t, w)
	id := u.project("Kitchen")
	path := "/projects/" + id
	u.do(200, "PUT", path+"/instructions", route.Object{"content": "Use metric units.", "version": 0})
	say := func(body route.Object) {
		t.Helper()
		body["input"] = []route.Object{{"type": "text", "text": "Hello"}}
		u.expect(200, "POST", "/chat", body)
	}
	say(route.Object{"project_id": id})
	if last := model.last(); !strings.HasSuffix(last.System, "\n\n<instructions>\nUse metric units.\n</instructions>") || len(last.Tools) == 0 {
		t.Errorf("the first turn has %q and %d tools", last.System, len(last.Tools))
	}
	conversation := u.do(200, "GET", path+"/conversations", nil).at("data.0.conversation_id")
	u.do(200, "PUT", path+"/instructions", route.Object{"content": "Use pounds.", "version": 1})
	u.do(200, "PUT", path+"/settings", route.Object{"tools": route.Object{"off": []string{"calculate"}}, "version": 0})
	say(route.Object{"conversation_id": conversation})
	if last := model.last(); !strings.HasSuffix(last.System, "\n\n<instructions>\nUse pounds.\n</instructions>") || strings.Contains(last.System, "metric") {
		t.Errorf("the second turn has %q", last.System)
	} else {
		for _, tool := range last.Tools {
			if tool.Name == "calculate" {
				t.Error("the second turn has a tool that is disabled")
			}
		}
	}
	u.do(200, "PUT", "/account/instructions", route.Object{"content": "I am a nurse.", "version": 0})
	say(route.Object{"project_id": id})
	if last := model.last(); !strings.Contains(last.System, "\nUse pounds.\n") || !strings.HasSuffix(last.System, "\n\n<instructions>\nI am a nurse.\n</instructions>") {
		t.Errorf("with instructions of the account, a turn has %q", last.System)
	}
	say(route.Object{"temporary": true})
	if last := model.last(); strings.Contains(last.System, "pounds") || !strings.HasSuffix(last.System, "\n\n<instructions>\nI am a nurse.\n</instructions>") {
		t.Errorf("a turn outside of the project has %q", last.System)
	}
	u.do(200, "PUT", path+"/archive", route.Object{"archived": true, "version": 1})
	for _, body := range []route.Object{{"project_id": id}, {"conversation_id": conversation}} {
		body["input"] = []route.Object{{"type": "text", "text": "Hello"}}
		wantField(t, u.do(409, "POST", "/chat", body), "code", "conflict")
	}
	queue := fmt.Sprintf("/conversations/%v/follow-ups", conversation)
	wantField(t, u.do(409, "POST", queue, route.Object{"content": "Hello"}), "current.state", "archived")
	if items := u.do(200, "GET", queue, nil).at("data"); len(items.([]any)) != 0 {
		t.Errorf("a refused follow-up is queued: %v", items)
	}
	stored := fmt.Sprintf("/conversations/%v", conversation)
	before := u.do(200, "GET", stored, nil).at("version")
	for i, mode := range []string{"edit", "regenerate"} {
		message := u.do(200, "GET", stored+"/messages", nil).at(fmt.Sprintf("data.%d.message_id", i))
		wantField(t, u.do(409, "POST", stored+"/branches", route.Object{"message_id": message, "mode": mode}), "current.state", "archived")
	}
	if after := u.do(200, "GET", stored, nil).at("version"); after != before {
		t.Errorf("refused branches changed the conversation from version %v to %v", before, after)
	}
	wantField(t, u.do(409, "POST", "/files/uploads", route.Object{
		"filename": "a.txt", "media_type": "text/plain", "size": 5, "purpose": "attachment", "conversation_id": conversation,
	}), "current.state", "archived")
	another := u.do(201, "POST", "/projects", route.Object{"name": "Active"}).at("project_id")
	u.do(409, "POST", "/files/uploads", route.Object{
		"filename": "a.txt", "media_type": "text/plain", "size": 5, "purpose": "project", "project_id": another, "conversation_id": conversation,
	})
	u.do(404, "POST", "/chat", route.Object{"project_id": protocol.NewProjectID().String(), "input": []route.Object{{"type": "text", "text": "Hello"}}})
	u.do(422, "POST", "/chat", route.Object{"project_id": id, "temporary": true, "input": []route.Object{{"type": "text", "text": "Hello"}}})
}
