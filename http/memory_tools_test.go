package http

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"turnstone/actors/llm"
	"turnstone/actors/upload"
	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

// callingModel makes one call in each step, then answers. It keeps the names of the tools that each step was offered, and the
// results.
type callingModel struct {
	llm.Model
	calls []llm.ToolCall
	// before is called in a step before it makes its call.
	before map[int]func()

	// Guarded by mu.
	mu      sync.Mutex
	offered [][]string
	results []llm.Message
}

func (m *callingModel) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	var names []string
	for _, tool := range request.Tools {
		names = append(names, tool.Name)
	}
	m.mu.Lock()
	m.offered = append(m.offered, names)
	if last := request.Messages[len(request.Messages)-1]; last.Role == "tool" {
		m.results = append(m.results, last)
	}
	m.mu.Unlock()
	if request.Step > len(m.calls) || request.WithoutCalls {
		return m.Model.Stream(ctx, request, emit)
	}
	if hook := m.before[request.Step]; hook != nil {
		hook()
	}
	call := llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: m.calls[request.Step-1]}
	return modeltest.Emit(ctx, emit, append([]llm.Chunk{call}, modeltest.Ended(llm.StopToolCalls)...)...)
}

// turn returns what a turn with calls was offered in each step, and the results of the calls.
func (m *callingModel) turn(u *user, body route.Object, calls ...llm.ToolCall) (offered [][]string, results []llm.Message) {
	u.t.Helper()
	m.calls, m.offered, m.results = calls, nil, nil
	body["input"] = []route.Object{{"type": "text", "text": "Hello"}}
	if got := u.expect(200, "POST", "/chat", body); !strings.Contains(string(got.body), `"state":"completed"`) {
		u.t.Errorf("the turn ends with %s", got.body)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offered, m.results
}

// recallWorld returns a user of a service with a model that makes calls.
func recallWorld(t *testing.T) (*user, *callingModel) {
	t.Helper()
	model := &callingModel{Model: scripted.New(scripted.Options{})}
	return signUp(t, newWorld(t, func(c *testConfig) {
		c.Turns = nodeOn(t, c, model, nil, func() { t.Error("the node was fenced") })
		c.Tools = catalogueOf(t, c.DB)
	})), model
}

func callOf(id, name string, input route.Object) llm.ToolCall {
	text, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return llm.ToolCall{ID: id, Name: name, Input: text}
}

// reasonOf returns why a tool is not available, in the list of tools with a query; empty: it is.
func (u *user) reasonOf(query, name string) string {
	u.t.Helper()
	var list protocol.List[protocol.ToolInfo]
	u.expect(200, "GET", "/tools"+query, nil).into(u.t, &list)
	for _, tool := range list.Data {
		if tool.Name == name && tool.Available == (tool.Reason == nil) {
			if tool.Reason == nil {
				return ""
			}
			return *tool.Reason
		}
	}
	u.t.Fatalf("%s is not in %+v", name, list.Data)
	return ""
}

func TestARevocationAppliesToTheNextCallAndTheNextRequest(t *testing.T) {
	t.Parallel()
	u, model := recallWorld(t)
	u.storeMessages(u.conversation("Old"), "The zebras graze in the salt marsh.")
	const tool = "search_conversations"
	if reason := u.reasonOf("", tool); !strings.Contains(reason, "not allowed") {
		t.Errorf("without a consent: %q", reason)
	}
	if offered, results := model.turn(u, route.Object{}, callOf("a", tool, route.Object{"query": "zebras"})); slices.Contains(offered[0], tool) || !results[0].ToolFailed || strings.Contains(results[0].Text, "marsh") {
		t.Errorf("without a consent: %v, %+v", offered, results)
	}
	u.do(200, "PUT", "/memory-sources/conversations/consent", route.Object{"granted": true})
	if reason := u.reasonOf("", tool); reason != "" {
		t.Errorf("with a consent: %q", reason)
	}
	model.before = map[int]func(){2: func() { u.do(200, "PUT", "/memory-sources/conversations/consent", route.Object{"granted": false}) }}
	offered, results := model.turn(u, route.Object{}, callOf("a", tool, route.Object{"query": "zebras"}), callOf("b", tool, route.Object{"query": "salt"}))
	if len(offered) != 3 || len(results) != 2 || !slices.Contains(offered[0], tool) || !slices.Contains(offered[1], tool) || slices.Contains(offered[2], tool) {
		t.Errorf("offered %v", offered)
	}
	if !strings.Contains(results[0].Text, "salt marsh") || results[0].ToolFailed {
		t.Errorf("the first call: %+v", results[0])
	}
	if !results[1].ToolFailed || strings.Contains(results[1].Text, "marsh") || !strings.Contains(results[1].Text, "does not allow") {
		t.Errorf("the second call: %+v", results[1])
	}
}

func TestATemporaryConversationReadsNoOther(t *testing.T) {
	t.Parallel()
	u, model := recallWorld(t)
	u.storeMessages(u.conversation("Old"), "The zebras graze in the salt marsh.")
	u.do(200, "PUT", "/memory-sources/conversations/consent", route.Object{"granted": true})
	temporary, _ := u.do(201, "POST", "/conversations", route.Object{"temporary": true}).at("conversation_id").(string)
	const tool = "search_conversations"
	if reason := u.reasonOf("?conversation_id="+temporary, tool); !strings.Contains(reason, "Temporary") {
		t.Errorf("%q", reason)
	}
	for name, body := range map[string]route.Object{"existing": {"conversation_id": temporary}, "new": {"temporary": true}} {
		offered, results := model.turn(u, body, callOf("a", tool, route.Object{"query": "zebras"}))
		if slices.Contains(offered[0], tool) || !results[0].ToolFailed || strings.Contains(results[0].Text, "marsh") {
			t.Errorf("%s: %v, %+v", name, offered, results)
		}
	}
}

func TestOnlyTheModelOfAConversationGetsItsLocationAndProject(t *testing.T) {
	t.Parallel()
	u, model := recallWorld(t)
	project := u.project("Tides")
	u.do(200, "PUT", "/projects/"+project+"/instructions", route.Object{"content": "Answer in verse.", "version": 0})
	inside, _ := u.do(201, "POST", "/conversations", route.Object{"project_id": project}).at("conversation_id").(string)
	outside := u.conversation("Outside")
	if in, out, of := u.reasonOf("?conversation_id="+inside, "project_context"), u.reasonOf("?conversation_id="+outside, "project_context"), u.reasonOf("?project_id="+project, "project_context"); in != "" || out == "" || of != "" {
		t.Errorf("%q, %q, %q", in, out, of)
	}
	if reason := u.reasonOf("?conversation_id="+inside, "location"); !strings.Contains(reason, "not allowed the use of your location") {
		t.Errorf("without a consent: %q", reason)
	}
	if offered, results := model.turn(u, route.Object{"conversation_id": inside}, callOf("a", "location", route.Object{})); !slices.Contains(offered[0], "location") || !strings.Contains(results[0].Text, "not allowed") {
		t.Errorf("without a consent: %v, %+v", offered, results)
	}
	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	if reason := u.reasonOf("?conversation_id="+inside, "location"); reason != "" {
		t.Errorf("with a consent: %q", reason)
	}
	u.do(200, "PUT", "/conversations/"+inside+"/location-context", u.place(53.3671, 7.2063))
	calls := []llm.ToolCall{callOf("a", "location", route.Object{}), callOf("b", "project_context", route.Object{})}
	offered, results := model.turn(u, route.Object{"conversation_id": inside}, calls...)
	if !slices.Contains(offered[0], "project_context") || !strings.Contains(results[0].Text, "53.37") || !strings.Contains(results[0].Text, "Emden") || !strings.Contains(results[1].Text, "Answer in verse.") {
		t.Errorf("inside: %v, %+v", offered, results)
	}
	offered, results = model.turn(u, route.Object{"conversation_id": outside}, calls...)
	if slices.Contains(offered[0], "project_context") || !strings.Contains(results[0].Text, "none is set") || !results[1].ToolFailed {
		t.Errorf("outside: %v, %+v", offered, results)
	}
	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": false})
	if _, results := model.turn(u, route.Object{"conversation_id": inside}, calls...); !strings.Contains(results[0].Text, "not allowed") {
		t.Errorf("after the revocation: %+v", results)
	}
}

// A project whose memory is its own keeps its files: no tool finds or reads them in a conversation elsewhere, and no file of
// elsewhere in a conversation of the project.
func TestAProjectWithItsOwnMemoryKeepsItsFiles(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	u := signUp(t, w)
	w.readTexts(func(_ context.Context, content io.Reader, _, _ string) (*protocol.Extraction, error) {
		text, err := io.ReadAll(content)
		return &protocol.Extraction{State: protocol.TextDone, Text: string(text)}, err
	})
	closed, open := u.project("Closed"), u.project("Open")
	files := map[string]protocol.FileID{}
	const newest = 8 // so many files of the closed project are found before the others
	names := []string{"library", "open"}
	for n := range newest {
		names = append(names, fmt.Sprint("closed", n))
	}
	for _, name := range names {
		file := u.storeFile("The zebras of the " + name)
		u.awaitText(file)
		files[name] = file.FileID
	}
	u.addFile(open, files["open"].String())
	for _, name := range names[2:] {
		u.addFile(closed, files[name].String())
	}
	reach := func(project string) (found, read []string) {
		t.Helper()
		scope := turnlog.Scope{AccountID: u.account.AccountID, ConversationID: protocol.NewConversationID()}
		if project != "" {
			scope.ProjectID = &protocol.ProjectID{}
			if err := scope.ProjectID.UnmarshalText([]byte(project)); err != nil {
				t.Fatal(err)
			}
		}
		results, err := w.DB.FileTexts.SearchFiles(t.Context(), scope, "zebras", newest)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if slices.ContainsFunc(results, func(r protocol.SearchResult) bool { return *r.FileID == files[name] }) {
				found = append(found, name)
			}
			if _, err := w.DB.FileTexts.ScopedFileHead(t.Context(), scope, files[name]); err == nil {
				read = append(read, name)
			} else if protocol.CodeOf(err) != protocol.CodeNotFound {
				t.Fatal(err)
			}
		}
		return found, read
	}
	check := func(memory, project string, want []string, limit int) {
		t.Helper()
		found, read := reach(project)
		if !slices.Equal(read, want) || !slices.Equal(found, want) && len(found) != limit {
			t.Errorf("memory of the %s, in %q: found %v, read %v, want %v", memory, project, found, read, want)
		}
	}
	check("account", "", names, newest)
	u.do(200, "PUT", "/projects/"+closed+"/settings", route.Object{"memory_scope": "project", "version": 0})
	check("project", "", names[:2], 2)
	check("project", open, names[1:2], 1)
	check("project", closed, names[2:], newest)
}
