package http

import (
	"strings"
	"testing"

	"turnstone/http/route"
	"turnstone/protocol"
)

func TestAPromptIsCreatedOnceChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	body := route.Object{"name": " Translate ", "description": " Into any language ", "text": "Translate into {{language:French}}:\n\n{{text}}\n"}
	made := u.do(201, "POST", "/prompts", body, "Idempotency-Key", "one")
	path := "/prompts/" + made.at("prompt_id").(string)
	for field, want := range map[string]any{"project_id": nil, "name": "Translate", "description": "Into any language", "text": body["text"], "version": 1.0} {
		wantField(t, made, field, want)
	}
	if made.header.Get("Location") != path || made.header.Get("ETag") != `"v1"` {
		t.Errorf("the response has %v", made.header)
	}
	again := u.do(201, "POST", "/prompts", body, "Idempotency-Key", "one")
	if again.text != made.text || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != path || again.header.Get("ETag") != `"v1"` {
		t.Errorf("the repeat gets %s, %v", again.text, again.header)
	}
	taken := u.do(409, "POST", "/prompts", route.Object{"name": "TRANSLATE", "text": "x"})
	wantField(t, taken, "code", "name_taken")
	wantField(t, taken, "current.prompt_id", made.at("prompt_id"))

	wantField(t, u.do(409, "PATCH", path, route.Object{"text": "x"}), "code", "version_required")
	stale := u.do(409, "PATCH", path, route.Object{"text": "x"}, "If-Match", `"v3"`)
	wantField(t, stale, "code", "stale_version")
	wantField(t, stale, "current.text", body["text"])
	changed := u.do(200, "PATCH", path, route.Object{"description": ""}, "If-Match", `"v1"`)
	wantField(t, changed, "description", "")
	wantField(t, changed, "name", "Translate")
	if changed.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag %s", changed.header.Get("ETag"))
	}
	wantField(t, u.do(200, "GET", path, nil), "version", 2.0)
	wantField(t, u.do(409, "DELETE", path, nil, "If-Match", `"v1"`), "current.version", 2.0)
	u.do(204, "DELETE", path, nil)
	u.do(404, "GET", path, nil)
	u.do(404, "DELETE", path, nil)
}

func TestValuesOfAPromptAreChecked(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	path := "/prompts/" + u.do(201, "POST", "/prompts", route.Object{"name": "p", "text": strings.Repeat("ü", protocol.MaxPromptText)}).at("prompt_id").(string)
	for field, values := range map[string][]string{
		"name":        {"", "two words", "a/b", strings.Repeat("a", protocol.MaxPromptName+1)},
		"description": {strings.Repeat("a", protocol.MaxPromptDescription+1)},
		"text":        {"", " \n", strings.Repeat("a", protocol.MaxPromptText+1)},
	} {
		for _, value := range values {
			body := route.Object{"name": "fine", "text": "fine", "version": 1}
			body[field] = value
			wantField(t, u.do(422, "POST", "/prompts", body), "errors.0.field", "body."+field)
			wantField(t, u.do(422, "PATCH", path, body), "errors.0.field", "body."+field)
		}
	}
	wantField(t, u.do(422, "GET", "/prompts?q="+strings.Repeat("a", 161), nil), "errors.0.field", "query.q")
	wantField(t, u.do(422, "POST", "/prompts", route.Object{"name": "p", "text": "x", "project_id": "conv_x"}), "errors.0.field", "body.project_id")
}

func TestPromptsAreListedByScopeInPages(t *testing.T) {
	t.Parallel()
	w, _ := conversationWorld(t)
	u := signUp(t, w)
	project := u.project("Kitchen")
	for _, name := range []string{"c", "a", "b"} {
		u.do(201, "POST", "/prompts", route.Object{"name": name, "text": "x"})
	}
	u.do(201, "POST", "/prompts", route.Object{"name": "scale", "text": "x", "project_id": project})
	for query, want := range map[string]string{"": "a b c scale", "&scope=account": "a b c", "&project_id=" + project: "scale", "&q=SC": "scale", "&q=%20b%20": "b", "&project_id=" + protocol.NewProjectID().String(): ""} {
		first := u.do(200, "GET", "/prompts?limit=2"+query, nil)
		names := promptNames(first)
		if next, more := first.at("next_cursor").(string); more {
			names = append(names, promptNames(u.do(200, "GET", "/prompts?limit=2"+query+"&cursor="+next, nil))...)
			u.do(422, "GET", "/prompts?limit=2&q=other&cursor="+next, nil)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
}

// promptNames returns the names of the items of a list.
func promptNames(list decodedReply) (names []string) {
	data, _ := list.at("data").([]any)
	for _, item := range data {
		names = append(names, item.(map[string]any)["name"].(string))
	}
	return names
}
