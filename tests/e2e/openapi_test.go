package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/verify"
	"turnstone/providers/mail/mailtest"
	"turnstone/providers/model/modeltest"
)

// Phrases in the last message that select the answer of the model, and constants of its answers.
const (
	askForSum      = "calculate"
	askForNotes    = "take notes"
	askForLength   = "at length"
	askWithoutEnd  = "without end"
	modelInterval  = 8 * time.Millisecond
	lengthy        = 240
	endless        = 100_000
	modelKey       = "key-of-the-walk"
	sumIsSaid      = "The tool says: 42"
	walkedTitle    = "Walking " + sitetest.Canary
	thoughtOfModel = "Thinking of it."
)

// beyondTheWalk lists the operations that need a browser and an OpenID provider. The tests of package http cover them.
var beyondTheWalk = []string{"finishOIDC", "startOIDC", "unlinkIdentity"}

// model is the model of the walk.
func model(request modeltest.Request) modeltest.Step {
	usage := &llm.Usage{InputTokens: 20, OutputTokens: 5}
	last := request.Messages[len(request.Messages)-1]
	switch {
	case strings.HasPrefix(request.System, researchlog.StepMarker) && !strings.Contains(last.Text, askWithoutEnd):
		return modeltest.Step{Text: []string{"NONE"}, Usage: usage}
	case strings.HasPrefix(request.System, "Write a title"):
		return modeltest.Step{Text: []string{"A title ", "of the model"}, Usage: usage}
	case last.Role == "tool" || strings.Contains(last.Text, askForSum):
		step := modeltest.ToolThenAnswer("calculate", `{"expression":"6*7"}`)(request)
		if last.Role != "tool" {
			step.Reasoning = []string{thoughtOfModel}
		}
		return step
	case strings.Contains(last.Text, askForNotes):
		return modeltest.Step{Usage: usage, ToolCalls: []llm.ToolCall{{ID: "notes", Name: "write_artifact", Input: json.RawMessage(`{"kind":"document","title":"Notes","content":"one\n"}`)}}}
	case strings.Contains(last.Text, askForLength):
		return modeltest.Step{Text: slices.Repeat([]string{"and on "}, lengthy), Usage: usage}
	case strings.Contains(last.Text, askWithoutEnd):
		return modeltest.Step{Text: slices.Repeat([]string{"and on "}, endless), Usage: usage}
	}
	return modeltest.Step{Text: []string{"You said: ", last.Text}, Usage: usage}
}

// TestAClientThatKnowsOnlyTheDocumentWalksThroughAllOfIt runs a client that is written from the published document
// alone through all of its operations, against model servers with the wire format of each vendor. The client sends
// nothing, and accepts nothing, that the document does not describe.
func TestAClientThatKnowsOnlyTheDocumentWalksThroughAllOfIt(t *testing.T) {
	for _, vendor := range []struct {
		name, wire  string
		environment []string
	}{
		{"OpenAI Chat Completions", modeltest.Chat, []string{"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_API=chat"}},
		{"OpenAI Responses", modeltest.Responses, []string{"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_API=responses"}},
		{"Anthropic Messages", modeltest.Anthropic, []string{"TURNSTONE_MODEL_PROVIDER=anthropic"}},
	} {
		t.Run(vendor.name, func(t *testing.T) {
			t.Parallel()
			server := modeltest.NewServer(vendor.wire, modeltest.Script{Respond: model, Interval: modelInterval, Key: modelKey})
			t.Cleanup(server.Close)
			mailServer := mailtest.New(t, mailtest.Options{})
			s := sitetest.NewSite(t, append(append(vendor.environment, mailSettings(t, "smtp", mailServer, nil)...),
				"TURNSTONE_TRANSCRIPTION_URL="+speechServer(t), "TURNSTONE_TRANSCRIPTION_MODEL=whisper-1",
				"TURNSTONE_MODEL_BASE_URL="+server.URL, "TURNSTONE_MODEL_API_KEY="+modelKey, "TURNSTONE_MODEL_BALANCED=model-of-the-walk")...)
			s.Start()
			w := &walk{t: t, site: s, model: server, mailServer: mailServer, spec: readSpec(t)}
			w.guest = w.newGuest()
			for _, step := range []struct {
				name string
				take func()
			}{
				{"requests without a session", w.withoutSession},
				{"sign up", w.signUp},
				{"settings", w.settings},
				{"a turn with a tool", w.toolTurn},
				{"resume", w.resume},
				{"lists and messages", w.lists},
				{"title, draft and read mark", w.titleAndDraft},
				{"archive and pin", w.organise},
				{"steer", w.steer},
				{"queue", w.queue},
				{"cancel", w.cancel},
				{"hold and release", w.hold},
				{"reorder and promote", w.promote},
				{"branches", w.branches},
				{"feedback", w.feedback},
				{"projects", w.projects},
				{"shares", w.shares},
				{"usage", w.usage},
				{"export and import", w.accountData},
				{"files", w.files},
				{"speech", w.speech},
				{"search", w.search},
				{"the feed", w.feed},
				{"tools", w.tools},
				{"sources of memory", w.memory},
				{"research", w.research},
				{"write a conversation", w.write},
				{"delete with confirmation", w.delete},
				{"passkeys", w.passkeys},
				{"devices and passwords", w.devices},
				{"a forgotten password", w.forgotPassword},
				{"erase an account", w.erase},
				{"sign out", w.signOut},
			} {
				before := t.Failed()
				step.take()
				if !before && t.Failed() {
					t.Fatalf("in step %q", step.name)
				}
			}
			if uncalled := w.spec.uncalled(); !slices.Equal(uncalled, beyondTheWalk) {
				t.Errorf("operations without a call: %v, want %v", uncalled, beyondTheWalk)
			}
		})
	}
}

// walk is one run through all operations of the document.
type walk struct {
	t          *testing.T
	site       *sitetest.Site
	model      *modeltest.Server
	mailServer *mailtest.Server
	spec       *spec
	guest      *specClient

	email, password string
	conversation    string
	question, reply string           // messages of the first turn
	turn            string           // the first one
	events          []sitetest.Event // of the first turn
	forked          []string         // further conversations, which the step delete deletes
}

func (w *walk) newGuest() *specClient {
	return &specClient{User: sitetest.NewGuest(w.t, w.site.Base), spec: w.spec}
}

func (w *walk) call(id string, parameters args, body any) *sitetest.Response {
	w.t.Helper()
	return w.guest.call(w.t, id, parameters, body)
}

func (w *walk) here() args { return args{"conversation_id": w.conversation} }

// say starts a turn in the conversation of the walk. It adds the members of more to the body.
func (w *walk) say(text string, more map[string]any) *sitetest.Stream {
	w.t.Helper()
	body := map[string]any{"conversation_id": nil, "input": []any{map[string]any{"type": "text", "text": sitetest.Canary + " " + text}}}
	if w.conversation != "" {
		body["conversation_id"] = w.conversation
	}
	for name, value := range more {
		body[name] = value
	}
	return w.guest.stream(w.t, "startTurn", args{"Idempotency-Key": uuid.NewString()}, body)
}

// finish reads a turn to its end, which must have the wanted status.
func (w *walk) finish(s *sitetest.Stream, want protocol.TurnState) []sitetest.Event {
	w.t.Helper()
	events, err := s.Rest()
	if err != nil {
		w.t.Fatal(err)
	}
	last := events[len(events)-1]
	if status := last.Value(w.t, "status"); status != string(want) {
		w.t.Fatalf("the turn ended %v: %s", status, last.Data)
	}
	return events
}

// saidIn returns the text of the answers in the events.
func (w *walk) saidIn(events []sitetest.Event) string {
	var said strings.Builder
	for _, e := range events {
		if e.Type == "answer.completed" {
			said.WriteString(fmt.Sprint(e.Value(w.t, "text")))
		}
	}
	return said.String()
}

func (w *walk) withoutSession() {
	if status := w.call("getHealth", nil, nil).Text(w.t, http.StatusOK, "status"); status != "ok" {
		w.t.Errorf("health %s", status)
	}
	for _, id := range []string{"getSession", "getReady", "getVersion", "listConversations"} {
		w.call(id, nil, nil).Text(w.t, http.StatusUnauthorized, "code")
	}
	w.call("login", nil, map[string]any{"email": "nobody@example.org", "password": "wrong password"}).Text(w.t, http.StatusUnauthorized, "code")
}

func (w *walk) signUp() {
	w.email, w.password = uuid.NewString()+"@example.org", sitetest.GoodPassword
	w.call("register", nil, map[string]any{"email": w.email, "password": w.password, "display_name": "Walker"}).
		Text(w.t, http.StatusCreated, "account", "account_id")
	w.guest.token = w.call("getSession", nil, nil).Text(w.t, http.StatusOK, "csrf_token")
	w.call("register", nil, map[string]any{"email": w.email, "password": w.password, "display_name": "Walker"}).
		Text(w.t, http.StatusConflict, "code")
	if service := w.call("getVersion", nil, nil).Text(w.t, http.StatusOK, "service"); service != "turnstone" {
		w.t.Errorf("service %s", service)
	}
	checks := w.call("getReady", nil, nil).Value(w.t, http.StatusOK, "checks")
	if got := sitetest.At(w.t, checks, "model_access"); got != "ok" {
		w.t.Errorf("the model is %v", got)
	}
}

func (w *walk) settings() {
	if email := w.call("getAccount", nil, nil).Text(w.t, http.StatusOK, "email"); email != w.email {
		w.t.Errorf("the account has the address %s", email)
	}
	w.call("listProfiles", nil, nil).Value(w.t, http.StatusOK, "data")
	got := w.call("getSettings", nil, nil)
	settings := object(got.Value(w.t, http.StatusOK))
	settings["theme"], settings["language"] = "dark", "ja"
	delete(settings, "version")
	changed := w.call("putSettings", args{"If-Match": got.Header.Get("ETag")}, settings)
	if theme := changed.Text(w.t, http.StatusOK, "theme"); theme != "dark" {
		w.t.Errorf("theme %s", theme)
	}
	w.call("getAccountInstructions", nil, nil).Value(w.t, http.StatusOK, "content")
	w.call("putAccountInstructions", nil, map[string]any{"content": "Be brief.", "version": 0}).Value(w.t, http.StatusOK, "updated_at")
	w.call("putAccountInstructions", nil, map[string]any{"content": "", "version": 1}).Value(w.t, http.StatusOK, "version")
	settings["theme"] = "light"
	w.call("putSettings", args{"If-Match": got.Header.Get("ETag")}, settings).Value(w.t, http.StatusConflict, "current")
}

// toolTurn runs a turn in which the model calls a tool: the answer contains the tool's result.
func (w *walk) toolTurn() {
	s := w.say("Please "+askForSum+" six times seven.", map[string]any{"profile": "balanced"})
	w.turn = s.Header.Get("X-Turn-Id")
	w.events = w.finish(s, protocol.TurnCompleted)
	first := w.events[0]
	w.conversation, _ = first.Value(w.t, "conversation_id").(string)
	w.question, _ = first.Value(w.t, "user_message_id").(string)
	w.reply, _ = first.Value(w.t, "assistant_message_id").(string)
	if said := w.saidIn(w.events); said != sumIsSaid {
		w.t.Errorf("the answer is %q", said)
	}
	for _, e := range w.events {
		switch e.Type {
		case "tool.started":
			if e.Value(w.t, "tool_name") != "calculate" || e.Value(w.t, "input", "expression") != "6*7" {
				w.t.Errorf("the call is %s", e.Data)
			}
		case "tool.completed":
			if e.Value(w.t, "state") != "succeeded" || e.Value(w.t, "output") != "42" {
				w.t.Errorf("the result is %s", e.Data)
			}
		case "turn.finished":
			if e.Value(w.t, "usage", "input_tokens") != 40.0 || e.Value(w.t, "usage", "estimated") != false {
				w.t.Errorf("usage of two calls: %s", e.Data)
			}
		}
	}
	if n := sitetest.CountKind(w.events, "tool.completed"); n != 1 {
		w.t.Errorf("%d tool results", n)
	}
	if state := w.call("getTurn", args{"turn_id": w.turn}, nil).Text(w.t, http.StatusOK, "state"); state != "completed" {
		w.t.Errorf("state %s", state)
	}
	sitetest.Eventually(w.t, "the model gives the conversation a title", func() bool {
		return w.call("getConversation", w.here(), nil).Text(w.t, http.StatusOK, "title") == "A title of the model"
	})
}

// tools lists the tools, approves a call in a project that asks before each, and changes an artifact that the model has written.
func (w *walk) tools() {
	w.call("listTools", nil, nil).Text(w.t, http.StatusOK, "data", 0, "name")
	project := w.call("createProject", args{"Idempotency-Key": uuid.NewString()}, map[string]any{"name": "It asks"}).Text(w.t, http.StatusCreated, "project_id")
	w.call("putProjectSettings", args{"project_id": project}, map[string]any{"approval_policy": "all", "version": 0}).Value(w.t, http.StatusOK, "version")
	s := w.say("Please "+askForSum+" it.", map[string]any{"conversation_id": nil, "project_id": project})
	s.Await(w.t, "the turn waits", func(e sitetest.Event) bool { return strings.Contains(e.Data, `"state":"requires_action"`) })
	id := w.call("listApprovals", nil, nil).Text(w.t, http.StatusOK, "data", 0, "approval_id")
	asked := w.call("getApproval", args{"approval_id": id}, nil)
	w.call("steerTurn", nil, map[string]any{
		"type": "approval", "turn_id": asked.Text(w.t, http.StatusOK, "turn_id"), "approval_id": id, "decision": "approve_once", "input_digest": asked.Text(w.t, http.StatusOK, "input_digest"),
	}).Text(w.t, http.StatusAccepted, "steering_id")
	w.finish(s, protocol.TurnCompleted)
	w.forked = append(w.forked, asked.Text(w.t, http.StatusOK, "conversation_id"))

	events := w.finish(w.say("Please "+askForNotes+".", map[string]any{"conversation_id": nil}), protocol.TurnCompleted)
	conversation, _ := events[0].Value(w.t, "conversation_id").(string)
	w.forked = append(w.forked, conversation)
	artifact := args{"artifact_id": w.call("listArtifacts", args{"conversation_id": conversation}, nil).Text(w.t, http.StatusOK, "data", 0, "artifact_id")}
	w.call("getArtifact", artifact, nil).Text(w.t, http.StatusOK, "title")
	w.call("putArtifact", artifact, map[string]any{"content": "two\n", "version": 1}).Value(w.t, http.StatusOK, "version")
	w.call("getArtifactContent", artifact, nil).Want(w.t, http.StatusOK, nil)
	w.call("listArtifactVersions", artifact, nil).Value(w.t, http.StatusOK, "data", 1)
	w.call("diffArtifact", args{"artifact_id": artifact["artifact_id"], "from": "1", "to": "2"}, nil).Value(w.t, http.StatusOK, "to")
	w.call("restoreArtifact", artifact, map[string]any{"version": 1, "base_version": 2}).Value(w.t, http.StatusOK, "version")
	share := w.call("createShare", args{"conversation_id": conversation}, map[string]any{"artifact_ids": []any{artifact["artifact_id"]}})
	content := w.newGuest().call(w.t, "getSharedArtifact", args{"token": share.Text(w.t, http.StatusCreated, "token"), "n": "1"}, nil)
	if string(content.Body) != "one\n" {
		w.t.Errorf("the shared artifact is %q", content.Body)
	}
	w.call("revokeShare", args{"share_id": share.Text(w.t, http.StatusCreated, "share_id")}, nil).Want(w.t, http.StatusNoContent, nil)
}

// research starts a task, follows it to its report, and steers and cancels another one. The model has no idea, and there is nothing
// to find.
func (w *walk) research() {
	w.call("putMemoryConsent", args{"source": "files"}, map[string]any{"granted": true}).Value(w.t, http.StatusOK, "granted")
	started := w.call("createResearchTask", args{"conversation_id": w.conversation, "Idempotency-Key": uuid.NewString()}, map[string]any{"question": "Why do tides differ?", "depth": "quick", "sources": []string{"files"}})
	task := args{"task_id": started.Text(w.t, http.StatusAccepted, "task_id")}
	events, err := w.guest.stream(w.t, "followResearchTask", task, nil).Rest()
	if !errors.Is(err, io.EOF) || events[len(events)-1].Type != "task.finished" {
		w.t.Fatalf("the events of the task end with %+v (%v)", events[len(events)-1], err)
	}
	w.call("getResearchTask", task, nil).Text(w.t, http.StatusOK, "artifact_id")
	w.call("listResearchTasks", w.here(), nil).Text(w.t, http.StatusOK, "data", 0, "task_id")
	w.call("listAccountResearchTasks", nil, nil).Text(w.t, http.StatusOK, "data", 0, "task_id")
	w.call("listResearchSources", task, nil).Value(w.t, http.StatusOK, "has_more")
	w.call("followResearchTask", args{"task_id": task["task_id"], "after": fmt.Sprint(len(events))}, nil).Want(w.t, http.StatusNoContent, nil)
	w.call("cancelResearchTask", task, nil).Text(w.t, http.StatusConflict, "current", "state")

	started = w.call("createResearchTask", w.here(), map[string]any{"question": "Please " + askWithoutEnd, "sources": []string{"files"}})
	task = args{"task_id": started.Text(w.t, http.StatusAccepted, "task_id")}
	w.call("steerResearchTask", task, map[string]any{"type": "input", "client_steering_id": uuid.NewString(), "input": "Only spring tides."}).Value(w.t, http.StatusAccepted, "sequence")
	w.call("cancelResearchTask", task, nil).Text(w.t, http.StatusAccepted, "state")
}

// memory grants the consent to the location, and sets and removes that of the conversation.
func (w *walk) memory() {
	w.call("listMemorySources", nil, nil).Value(w.t, http.StatusOK, "data", 4)
	w.call("getLocationContext", w.here(), nil).Text(w.t, http.StatusConflict, "current", "source")
	w.call("putMemoryConsent", args{"source": "location"}, map[string]any{"granted": true, "precise": true}).Text(w.t, http.StatusOK, "changed_at")
	w.call("putLocationContext", w.here(), map[string]any{
		"latitude": 53.3671, "longitude": 7.2063, "accuracy_m": 40, "place": "Emden", "expires_at": time.Now().Add(time.Hour),
	}).Value(w.t, http.StatusOK, "latitude")
	w.call("getLocationContext", w.here(), nil).Text(w.t, http.StatusOK, "place")
	w.call("deleteLocationContext", w.here(), nil).Want(w.t, http.StatusNoContent, nil)
	w.call("getLocationContext", w.here(), nil).Text(w.t, http.StatusNotFound, "code")
}

// resume follows the finished turn. From the middle, by header and by query, it gets the same bytes; after the end it
// gets nothing; in snapshot mode it gets a snapshot and the end.
func (w *walk) resume() {
	middle := len(w.events) / 2
	for _, parameters := range []args{{"Last-Event-ID": fmt.Sprint(middle)}, {"after": fmt.Sprint(middle)}} {
		parameters["turn_id"] = w.turn
		s := w.guest.stream(w.t, "followTurn", parameters, nil)
		if tail := w.finish(s, protocol.TurnCompleted); !slices.Equal(tail, w.events[middle:]) {
			w.t.Errorf("after event %d there are %d events, which differ from those of the first stream", middle, len(tail))
		}
	}
	w.call("followTurn", args{"turn_id": w.turn, "after": fmt.Sprint(len(w.events))}, nil).Want(w.t, http.StatusNoContent, nil)
	s := w.guest.stream(w.t, "followTurn", args{"turn_id": w.turn, "mode": "snapshot"}, nil)
	shown := w.finish(s, protocol.TurnCompleted)
	if shown[0].Type != "turn.snapshot" || len(shown) != 2 {
		w.t.Errorf("snapshot mode returned %d events, the first is %s", len(shown), shown[0].Type)
	}
	w.call("followTurn", args{"turn_id": protocol.NewTurnID().String()}, nil).Text(w.t, http.StatusNotFound, "code")
	w.call("getTurn", args{"turn_id": "no identifier"}, nil).Text(w.t, http.StatusNotFound, "code")
}

func (w *walk) lists() {
	list := w.call("listConversations", args{"limit": "1"}, nil)
	if id := list.Text(w.t, http.StatusOK, "data", 0, "conversation_id"); id != w.conversation {
		w.t.Errorf("the first conversation of the list is %s", id)
	}
	w.call("listConversations", args{"cursor": "garbage"}, nil).Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
	page := args{"conversation_id": w.conversation, "limit": "1"}
	newest := w.call("listMessages", page, nil)
	if id := newest.Text(w.t, http.StatusOK, "data", 0, "message_id"); id != w.reply {
		w.t.Errorf("the newest message is %s", id)
	}
	page["cursor"] = newest.Text(w.t, http.StatusOK, "next_cursor")
	oldest := w.call("listMessages", page, nil)
	if id := oldest.Text(w.t, http.StatusOK, "data", 0, "message_id"); id != w.question {
		w.t.Errorf("the message before it is %s", id)
	}
	if id := w.call("getMessage", args{"conversation_id": w.conversation, "message_id": w.reply}, nil).Text(w.t, http.StatusOK, "message_id"); id != w.reply {
		w.t.Errorf("the message is %s", id)
	}
	if turn := w.call("listTurns", w.here(), nil).Text(w.t, http.StatusOK, "data", 0, "turn_id"); turn != w.turn {
		w.t.Errorf("the first turn of the list is %s", turn)
	}
	found := w.call("findInConversation", args{"conversation_id": w.conversation, "q": "six times seven"}, nil)
	if id := found.Text(w.t, http.StatusOK, "data", 0, "message_id"); id != w.question {
		w.t.Errorf("the text of the question is found in %s", id)
	}
	around := w.call("listMessages", args{"conversation_id": w.conversation, "around": w.question}, nil)
	if id := around.Text(w.t, http.StatusOK, "data", 0, "message_id"); id != w.question {
		w.t.Errorf("the message around the question is %s", id)
	}
}

func (w *walk) titleAndDraft() {
	titled := w.call("setTitle", w.here(), map[string]any{"title": walkedTitle})
	if source := titled.Text(w.t, http.StatusOK, "title_source"); source != "user" {
		w.t.Errorf("the source of the title is %s", source)
	}
	w.call("setTitle", args{"conversation_id": w.conversation, "If-Match": `"v1"`}, map[string]any{"title": "Stale"}).
		Value(w.t, http.StatusConflict, "current")
	w.call("setTitle", w.here(), map[string]any{"title": " "}).Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
	draft := w.call("putDraft", w.here(), map[string]any{"content": "A draft with " + sitetest.Canary})
	version := draft.Value(w.t, http.StatusOK, "version")
	if stored := w.call("getDraft", w.here(), nil).Value(w.t, http.StatusOK, "version"); stored != version {
		w.t.Errorf("the draft has the version %v", stored)
	}
	w.call("putDraft", w.here(), map[string]any{"content": "", "version": version}).Value(w.t, http.StatusOK)
	w.call("putDraft", w.here(), map[string]any{"content": "Stale", "version": version}).Value(w.t, http.StatusConflict, "current", "version")
	if unread := w.call("markRead", w.here(), map[string]any{"message_id": w.reply}).Value(w.t, http.StatusOK, "unread"); unread != false {
		w.t.Errorf("unread %v", unread)
	}
}

// organise archives and pins the conversation and undoes both.
func (w *walk) organise() {
	for id, field := range map[string]string{"setArchived": "archived", "setPinned": "pinned"} {
		w.call(id, w.here(), map[string]any{field: true}).Text(w.t, http.StatusConflict, "code")
		for _, value := range []bool{true, false} {
			version := w.call("getConversation", w.here(), nil).Value(w.t, http.StatusOK, "version")
			changed := w.call(id, w.here(), map[string]any{field: value, "version": version})
			if at := changed.Value(w.t, http.StatusOK, field+"_at"); (at != nil) != value {
				w.t.Errorf("%s is %v", field, at)
			}
		}
	}
}

// projects creates, changes, deletes and restores a project, and checks that its instructions reach the model.
func (w *walk) projects() {
	const instructions = "Answer every question with a number " + sitetest.Canary
	id := w.call("createProject", args{"Idempotency-Key": uuid.NewString()}, map[string]any{"name": "A project"}).Text(w.t, http.StatusCreated, "project_id")
	here := args{"project_id": id}
	w.call("putInstructions", here, map[string]any{"content": instructions, "version": 0}).Value(w.t, http.StatusOK, "updated_at")
	w.call("getInstructions", here, nil).Value(w.t, http.StatusOK, "content")
	w.call("putProjectSettings", here, map[string]any{"default_profile": "coding", "tools": map[string]any{"off": []string{"calculate"}}, "version": 0}).Value(w.t, http.StatusOK, "tools")
	w.call("getProjectSettings", here, nil).Text(w.t, http.StatusOK, "default_profile")
	w.call("listMoveTargets", w.here(), nil).Value(w.t, http.StatusOK, "data", 0, "name")
	version := w.call("getConversation", w.here(), nil).Value(w.t, http.StatusOK, "version")
	w.call("moveConversation", w.here(), map[string]any{"project_id": id, "version": version}).Value(w.t, http.StatusOK, "project_id")
	w.call("moveConversation", w.here(), map[string]any{"project_id": nil, "version": version}).Value(w.t, http.StatusConflict, "current")
	w.finish(w.say("Hello from a project.", nil), protocol.TurnCompleted)
	requests := w.model.Requests()
	if last := requests[len(requests)-1]; !strings.HasSuffix(last.System, "<instructions>\n"+instructions+"\n</instructions>") || slices.Contains(last.Tools, "calculate") {
		w.t.Errorf("the model got the instructions %q and the tools %v", last.System, last.Tools)
	}
	made := w.call("createProjectConversation", here, map[string]any{"title": "In the project"}).Text(w.t, http.StatusCreated, "conversation_id")
	w.forked = append(w.forked, made)
	w.call("listProjectConversations", here, nil).Value(w.t, http.StatusOK, "data", 1)
	found := w.call("searchProject", args{"project_id": id, "q": "hello project", "kind": "message", "limit": "1"}, nil)
	if text := found.Text(w.t, http.StatusOK, "data", 0, "snippet", "text"); !strings.Contains(text, "Hello from a project.") {
		w.t.Errorf("the search of the project found %s", found.Body)
	}
	w.prompts(id)
	w.call("listWorkHistory", here, nil).Value(w.t, http.StatusOK, "data", 0, "kind")
	w.call("renameProject", here, map[string]any{"name": "Renamed", "version": 1}).Value(w.t, http.StatusOK, "version")
	w.call("archiveProject", here, map[string]any{"archived": true, "version": 2}).Text(w.t, http.StatusOK, "state")
	w.call("archiveProject", here, map[string]any{"archived": false, "version": 3}).Text(w.t, http.StatusOK, "state")
	token := w.call("deleteProject", args{"project_id": id, "If-Match": `"v4"`}, nil).Text(w.t, http.StatusConflict, "current", "confirmation", "token")
	w.call("deleteProject", args{"project_id": id, "If-Match": `"v4"`, "X-Confirm": token}, nil).Value(w.t, http.StatusOK, "purge_at")
	w.call("getConversation", w.here(), nil).Value(w.t, http.StatusNotFound, "code")
	w.call("getProject", here, nil).Text(w.t, http.StatusOK, "state")
	w.call("restoreProject", here, map[string]any{"version": 5}).Text(w.t, http.StatusOK, "state")
	w.call("listProjects", nil, nil).Value(w.t, http.StatusOK, "data", 0)
	version = w.call("getConversation", w.here(), nil).Value(w.t, http.StatusOK, "version")
	w.call("moveConversation", w.here(), map[string]any{"project_id": nil, "version": version}).Value(w.t, http.StatusOK, "version")
}

// prompts creates, finds, changes and deletes a prompt of a project.
func (w *walk) prompts(project string) {
	made := w.call("createPrompt", args{"Idempotency-Key": uuid.NewString()}, map[string]any{"project_id": project, "name": "greet", "text": "Hello {{name}}"})
	here := args{"prompt_id": made.Text(w.t, http.StatusCreated, "prompt_id")}
	w.call("createPrompt", nil, map[string]any{"project_id": project, "name": "Greet", "text": "Hi"}).Text(w.t, http.StatusConflict, "current", "prompt_id")
	if name := w.call("listPrompts", args{"project_id": project, "q": "gr"}, nil).Text(w.t, http.StatusOK, "data", 0, "name"); name != "greet" {
		w.t.Errorf("the first prompt of the list is %s", name)
	}
	w.call("changePrompt", here, map[string]any{"text": "Hi", "version": 2}).Value(w.t, http.StatusConflict, "current", "version")
	w.call("changePrompt", here, map[string]any{"description": "Politely", "version": 1}).Value(w.t, http.StatusOK, "version")
	w.call("getPrompt", here, nil).Text(w.t, http.StatusOK, "text")
	w.call("deletePrompt", here, nil).Want(w.t, http.StatusNoContent, nil)
	w.call("getPrompt", here, nil).Value(w.t, http.StatusNotFound, "code")
}

// steer checks that the next request to the model contains the input, after the answer so far.
func (w *walk) steer() {
	for _, delivery := range []string{"next_step", "interrupt"} {
		s := w.say("Tell me "+askForLength+".", nil)
		s.AwaitKind(w.t, "answer.delta")
		input := "Now name the colour " + delivery
		w.call("steerTurn", nil, map[string]any{
			"type": "input", "turn_id": s.Turn, "client_steering_id": uuid.NewString(), "delivery": delivery,
			"input": []any{map[string]any{"type": "text", "text": input}},
		}).Text(w.t, http.StatusAccepted, "steering_id")
		events := w.finish(s, protocol.TurnCompleted)
		if said := w.saidIn(events); !strings.HasSuffix(said, "You said: "+input) {
			w.t.Errorf("steered by %s, the answer is %q", delivery, said)
		}
		if sitetest.CountKind(events, "steering.applied") != 1 {
			w.t.Errorf("%s: %d inputs applied", delivery, sitetest.CountKind(events, "steering.applied"))
		}
		requests := w.model.Requests()
		messages := requests[len(requests)-1].Messages
		if n := len(messages); messages[n-1].Text != input || messages[n-2].Role != protocol.RoleAssistant {
			w.t.Errorf("%s: the last messages to the model are %+v", delivery, messages[n-2:])
		}
	}
}

func (w *walk) queue() {
	s := w.say("Tell me "+askForLength+".", nil)
	s.AwaitKind(w.t, "answer.delta")
	body := map[string]any{"conversation_id": w.conversation, "input": []any{map[string]any{"type": "text", "text": "And then?"}}}
	w.call("startTurn", nil, body).Value(w.t, http.StatusConflict, "current", "turn_id")
	body["if_busy"] = "queue"
	item := w.call("startTurn", nil, body).Text(w.t, http.StatusAccepted, "follow_up_id")
	if id := w.call("listFollowUps", w.here(), nil).Text(w.t, http.StatusOK, "data", 0, "follow_up_id"); id != item {
		w.t.Errorf("the first item of the queue is %s", id)
	}
	if state := w.call("getFollowUp", args{"conversation_id": w.conversation, "follow_up_id": item}, nil).Text(w.t, http.StatusOK, "state"); state != "queued" {
		w.t.Errorf("the item is %s", state)
	}
	w.finish(s, protocol.TurnCompleted)
	next := ""
	sitetest.Eventually(w.t, "the queue starts its turn", func() bool {
		next, _ = w.call("listFollowUps", w.here(), nil).Value(w.t, http.StatusOK, "data", 0, "turn_id").(string)
		return next != ""
	})
	events := w.finish(w.guest.stream(w.t, "followTurn", args{"turn_id": next}, nil), protocol.TurnCompleted)
	if said := w.saidIn(events); said != "You said: And then?" {
		w.t.Errorf("the next turn has the text %q", said)
	}
}

// cancel checks that a cancel aborts the request to the vendor.
func (w *walk) cancel() {
	for len(w.model.Aborted()) > 0 { // aborted by the interrupt of the step steer
		<-w.model.Aborted()
	}
	s := w.say("Tell me "+askWithoutEnd+".", nil)
	s.AwaitKind(w.t, "answer.delta")
	cancel := map[string]any{"type": "cancel", "turn_id": s.Turn}
	receipt := w.call("steerTurn", nil, cancel).Text(w.t, http.StatusAccepted, "steering_id")
	w.finish(s, protocol.TurnCancelled)
	select {
	case <-w.model.Aborted():
	case <-time.After(sitetest.HangGuard):
		w.t.Error("the request to the vendor was not aborted")
	}
	if again := w.call("steerTurn", nil, cancel).Text(w.t, http.StatusAccepted, "steering_id"); again != receipt {
		w.t.Errorf("the repeat after the end got receipt %s, the first one got %s", again, receipt)
	}
	late := map[string]any{
		"type": "input", "turn_id": s.Turn, "client_steering_id": "late", "input": []any{map[string]any{"type": "text", "text": "Too late."}},
	}
	w.call("steerTurn", nil, late).Value(w.t, http.StatusConflict, "current", "state")
}

// hold checks that a message queued behind a turn that is cancelled is held, and starts when it is released.
func (w *walk) hold() {
	s := w.say("Tell me "+askWithoutEnd+".", nil)
	s.AwaitKind(w.t, "answer.delta")
	item := w.call("startTurn", nil, map[string]any{
		"conversation_id": w.conversation, "input": []any{map[string]any{"type": "text", "text": "And later?"}}, "if_busy": "queue",
	}).Text(w.t, http.StatusAccepted, "follow_up_id")
	w.call("steerTurn", nil, map[string]any{"type": "cancel", "turn_id": s.Turn}).Text(w.t, http.StatusAccepted, "steering_id")
	w.finish(s, protocol.TurnCancelled)
	here := args{"conversation_id": w.conversation, "follow_up_id": item}
	current := w.call("changeFollowUp", here, map[string]any{"state": "queued"})
	if state := current.Text(w.t, http.StatusConflict, "current", "state"); state != string(protocol.FollowUpHeld) {
		w.t.Errorf("the follow-up is %s", state)
	}
	version := current.Value(w.t, http.StatusConflict, "current", "version")
	turn := w.call("changeFollowUp", here, map[string]any{"state": "queued", "version": version}).Text(w.t, http.StatusOK, "turn_id")
	events := w.finish(w.guest.stream(w.t, "followTurn", args{"turn_id": turn}, nil), protocol.TurnCompleted)
	if said := w.saidIn(events); said != "You said: And later?" {
		w.t.Errorf("the released turn has the text %q", said)
	}
}

// promote checks that a follow-up which interrupts the live turn starts at its end, before the others.
func (w *walk) promote() {
	s := w.say("Tell me "+askWithoutEnd+".", nil)
	s.AwaitKind(w.t, "answer.delta")
	create := func(content string) string {
		return w.call("createFollowUp", w.here(), map[string]any{"content": content}).Text(w.t, http.StatusCreated, "follow_up_id")
	}
	first, second, third := create("The first."), create("The second."), create("The third.")
	open := args{"conversation_id": w.conversation, "state": "open"}
	version := w.call("listFollowUps", open, nil).Value(w.t, http.StatusOK, "queue_version")
	order := map[string]any{"order": []string{second, first, third}, "queue_version": version}
	if front := w.call("orderFollowUps", w.here(), order).Text(w.t, http.StatusOK, "order", 0); front != second {
		w.t.Errorf("the first item is %s, want %s", front, second)
	}
	if front := w.call("orderFollowUps", w.here(), order).Text(w.t, http.StatusConflict, "current", "order", 0); front != second {
		w.t.Errorf("the conflict shows %s as the first item, want %s", front, second)
	}
	here := args{"conversation_id": w.conversation, "follow_up_id": third}
	w.call("promoteFollowUp", here, map[string]any{"mode": "interrupt"}).Text(w.t, http.StatusOK, "state")
	w.finish(s, protocol.TurnCancelled)
	turn := ""
	sitetest.Eventually(w.t, "the promoted follow-up starts", func() bool {
		turn, _ = w.call("promoteFollowUp", here, map[string]any{"mode": "interrupt"}).Value(w.t, http.StatusOK, "turn_id").(string)
		return turn != ""
	})
	events := w.finish(w.guest.stream(w.t, "followTurn", args{"turn_id": turn}, nil), protocol.TurnCompleted)
	if said := w.saidIn(events); said != "You said: The third." {
		w.t.Errorf("the promoted turn has the text %q", said)
	}
	waiting := w.call("listFollowUps", open, nil)
	for n, want := range []string{second, first} {
		id, state := waiting.Text(w.t, http.StatusOK, "data", n, "follow_up_id"), waiting.Text(w.t, http.StatusOK, "data", n, "state")
		if id != want || state != string(protocol.FollowUpHeld) {
			w.t.Errorf("item %d is %s, %s; want %s, held", n, id, state, want)
		}
		w.call("changeFollowUp", args{"conversation_id": w.conversation, "follow_up_id": id}, map[string]any{
			"state": "cancelled", "version": waiting.Value(w.t, http.StatusOK, "data", n, "version"),
		}).Value(w.t, http.StatusOK)
	}
}

func (w *walk) branches() {
	regenerated := w.finish(w.say("", map[string]any{
		"input": []any{}, "branch": map[string]any{"message_id": w.reply, "mode": "regenerate"},
	}), protocol.TurnCompleted)
	if said := w.saidIn(regenerated); said != sumIsSaid {
		w.t.Errorf("regenerated: %q", said)
	}
	siblings := w.call("listMessages", w.here(), nil).Value(w.t, http.StatusOK, "data", 1, "sibling_count")
	if siblings != 2.0 {
		w.t.Errorf("the answer has %v versions", siblings)
	}
	edited := w.finish(w.say("Something else.", map[string]any{
		"branch": map[string]any{"message_id": w.question, "mode": "edit"},
	}), protocol.TurnCompleted)
	if said := w.saidIn(edited); said != "You said: "+sitetest.Canary+" Something else." {
		w.t.Errorf("edited: %q", said)
	}
	made := w.call("createBranch", w.here(), map[string]any{"message_id": w.question, "mode": "edit", "name": "A third way"}).
		Text(w.t, http.StatusCreated, "branch_id")
	branch := w.call("listBranches", w.here(), nil).Text(w.t, http.StatusOK, "data", 0, "branch_id")
	here := args{"conversation_id": w.conversation, "branch_id": branch}
	if name := w.call("renameBranch", here, map[string]any{"name": "First try"}).Text(w.t, http.StatusOK, "name"); name != "First try" {
		w.t.Errorf("the branch is named %q", name)
	}
	if name := w.call("getBranch", here, nil).Text(w.t, http.StatusOK, "name"); name != "First try" {
		w.t.Errorf("the branch is read as %q", name)
	}
	fork := w.call("createBranch", w.here(), map[string]any{"message_id": w.reply, "mode": "fork"}).Text(w.t, http.StatusCreated, "conversation_id")
	w.forked = append(w.forked, fork)
	list := w.call("listBranches", w.here(), nil)
	all, _ := list.Value(w.t, http.StatusOK, "data").([]any)
	if len(all) != 4 || sitetest.At(w.t, all, -1, "branch_id") != made {
		w.t.Errorf("%d branches: %s", len(all), list.Body)
	}
	first := list.Text(w.t, http.StatusOK, "data", 0, "branch_id")
	w.call("setActiveBranch", w.here(), map[string]any{"branch_id": first}).Value(w.t, http.StatusConflict)
	version := w.call("getConversation", w.here(), nil).Header.Get("ETag")
	back := w.call("setActiveBranch", args{"conversation_id": w.conversation, "If-Match": version}, map[string]any{"branch_id": first})
	if active := back.Text(w.t, http.StatusOK, "active_branch_id"); active != first {
		w.t.Errorf("the active branch is %s", active)
	}
	if id := w.call("listMessages", w.here(), nil).Text(w.t, http.StatusOK, "data", 1, "message_id"); id != w.reply {
		w.t.Errorf("the answer of the first branch is %s", id)
	}
}

func (w *walk) feedback() {
	rated := w.call("putFeedback", w.here(), map[string]any{"rating": "up", "reasons": []any{"clear"}, "comment": "Good"})
	latest := rated.Text(w.t, http.StatusOK, "message_id")
	page := w.call("listMessages", w.here(), nil)
	if comment := page.Value(w.t, http.StatusOK, "data", -1, "feedback", "comment"); comment != "Good" {
		w.t.Errorf("the comment on the last answer is %v", comment)
	}
	w.call("putFeedback", w.here(), map[string]any{"rating": "down", "message_id": w.question}).Text(w.t, http.StatusConflict, "current", "message_id")
	w.call("deleteFeedback", args{"conversation_id": w.conversation, "message_id": latest}, nil).Want(w.t, http.StatusNoContent, nil)
}

// shares shares the conversation, and reads the share without a session.
func (w *walk) shares() {
	preview := w.call("previewShare", w.here(), nil)
	last := preview.Text(w.t, http.StatusOK, "message_id")
	once := args{"conversation_id": w.conversation, "Idempotency-Key": uuid.NewString()}
	body := map[string]any{"title": "For everybody", "message_id": last, "expires_in_days": 7}
	created, again := w.call("createShare", once, body), w.call("createShare", once, body)
	token, share := created.Text(w.t, http.StatusCreated, "token"), created.Text(w.t, http.StatusCreated, "share_id")
	if token != again.Text(w.t, http.StatusCreated, "token") || again.Header.Get("Idempotent-Replayed") != "true" {
		w.t.Errorf("the same key: %s and %s", created.Body, again.Body)
	}
	stranger := w.newGuest()
	if title := stranger.call(w.t, "openShare", args{"token": token}, nil).Text(w.t, http.StatusOK, "title"); title != "For everybody" {
		w.t.Errorf("the share has the title %s", title)
	}
	page := stranger.Do(w.t, http.MethodGet, "/s/"+token, nil)
	if page.Status != http.StatusOK || !strings.Contains(string(page.Body), "For everybody") {
		w.t.Errorf("the page of the share: %d %s", page.Status, page.Body)
	}
	for id, parameters := range map[string]args{"listShares": nil, "listConversationShares": w.here()} {
		if listed := w.call(id, parameters, nil).Text(w.t, http.StatusOK, "data", 0, "share_id"); listed != share {
			w.t.Errorf("%s: %s", id, listed)
		}
	}
	if title := w.call("getShare", args{"share_id": share}, nil).Text(w.t, http.StatusOK, "title"); title != "For everybody" {
		w.t.Errorf("the owner's share has the title %s", title)
	}
	w.call("revokeShare", args{"share_id": share}, nil).Want(w.t, http.StatusNoContent, nil)
	stranger.call(w.t, "openShare", args{"token": token}, nil).Text(w.t, http.StatusNotFound, "code")
}

func (w *walk) usage() {
	record := w.call("listUsage", w.here(), nil)
	if tokens := record.Value(w.t, http.StatusOK, "data", 0, "usage", "input_tokens"); tokens != 20.0 {
		w.t.Errorf("the last turn has %v input tokens", tokens)
	}
	speech := map[string]any{"kind": "speech", "quantity": 2.5, "unit": "seconds"}
	once := args{"conversation_id": w.conversation, "Idempotency-Key": uuid.NewString()}
	first := w.call("recordUsage", once, speech)
	again := w.call("recordUsage", once, speech)
	if first.Text(w.t, http.StatusCreated, "usage_id") != again.Text(w.t, http.StatusCreated, "usage_id") || again.Header.Get("Idempotent-Replayed") != "true" {
		w.t.Errorf("the same key: %s and %s", first.Body, again.Body)
	}
	usage := args{"conversation_id": w.conversation, "usage_id": first.Text(w.t, http.StatusCreated, "usage_id")}
	if quantity := w.call("getUsage", usage, nil).Value(w.t, http.StatusOK, "quantity"); quantity != 2.5 {
		w.t.Errorf("the quantity is %v", quantity)
	}
	w.call("recordUsage", w.here(), map[string]any{"kind": "speech", "quantity": 1, "unit": "seconds", "occurred_at": "2100-01-01T00:00:00Z"}).
		Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
	if turns := w.call("sumUsage", args{"group_by": "profile"}, nil).Value(w.t, http.StatusOK, "data", 0, "turns"); turns != 12.0 {
		w.t.Errorf("%v turns, want 12", turns)
	}
}

func (w *walk) accountData() {
	archive := w.call("exportAccount", nil, nil)
	if archive.Status != http.StatusOK || !strings.HasPrefix(string(archive.Body), "PK") {
		w.t.Errorf("an export: %d, %d bytes", archive.Status, len(archive.Body))
	}
	if title := w.call("exportConversation", w.here(), nil).Text(w.t, http.StatusOK, "conversation", "title"); title != walkedTitle {
		w.t.Errorf("an exported title is %q", title)
	}
	w.importAgain()
	text := w.call("exportConversation", args{"conversation_id": w.conversation, "format": "markdown"}, nil)
	if !strings.HasPrefix(string(text.Body), "# "+walkedTitle) {
		w.t.Errorf("an export as Markdown starts with %.80s", text.Body)
	}
}

// picture uploads a picture, and reads its thumbnail.
func (w *walk) picture() {
	content := pictureOf(w.t, 600, 400)
	body := map[string]any{"filename": "tide.png", "media_type": "image/png", "size": len(content), "purpose": "library"}
	upload := args{"upload_id": w.call("createUpload", nil, body).Text(w.t, http.StatusCreated, "upload_id")}
	file := args{"file_id": w.call("putUploadContent", upload, client.Content(content)).Text(w.t, http.StatusOK, "file_id")}
	sitetest.Eventually(w.t, "the picture is read", func() bool {
		return w.call("getFile", file, nil).Value(w.t, http.StatusOK, "has_thumbnail") == true
	})
	small := w.call("getFileThumbnail", file, nil)
	if small.Status != http.StatusOK || !strings.HasPrefix(string(small.Body), "\xFF\xD8") {
		w.t.Errorf("the thumbnail is %d, %d bytes", small.Status, len(small.Body))
	}
}

// files uploads a text, reads it in every form, and deletes it.
func (w *walk) files() {
	const text = "The tide comes in."
	project := w.call("createProject", nil, map[string]any{"name": "With files"}).Text(w.t, http.StatusCreated, "project_id")
	start := func() args {
		body := map[string]any{"filename": "tide.txt", "media_type": "text/plain", "size": len(text), "purpose": "library"}
		return args{"upload_id": w.call("createUpload", nil, body).Text(w.t, http.StatusCreated, "upload_id")}
	}
	w.call("cancelUpload", start(), nil).Text(w.t, http.StatusOK, "upload_id")
	upload := start()
	if state := w.call("getUpload", upload, nil).Text(w.t, http.StatusOK, "state"); state != "pending" {
		w.t.Errorf("a new upload is %s", state)
	}
	ready := w.call("putUploadContent", upload, client.Content(text))
	id := ready.Text(w.t, http.StatusOK, "file_id")
	w.call("followUpload", args{"upload_id": upload["upload_id"], "after": fmt.Sprint(ready.Value(w.t, http.StatusOK, "last_sequence"))}, nil).Want(w.t, http.StatusNoContent, nil)
	file := args{"file_id": id}
	if content := w.call("getFileContent", file, nil); string(content.Body) != text {
		w.t.Errorf("the content is %q", content.Body)
	}
	sitetest.Eventually(w.t, "the text is read", func() bool {
		return w.call("getFileText", file, nil).Text(w.t, http.StatusOK, "state") == "done"
	})
	if shown := w.call("prepareAttachments", w.here(), map[string]any{"file_ids": []any{id}}).Text(w.t, http.StatusOK, "data", 0, "shown"); shown != "whole" {
		w.t.Errorf("of the file, the model would get: %s", shown)
	}
	w.call("getFileThumbnail", file, nil).Want(w.t, http.StatusNotFound, nil)
	w.call("renameFile", file, map[string]any{"filename": "ebb.txt"}).Value(w.t, http.StatusOK)
	if name := w.call("getFile", file, nil).Text(w.t, http.StatusOK, "filename"); name != "ebb.txt" {
		w.t.Errorf("the file is called %s", name)
	}
	in := args{"project_id": project}
	w.call("addProjectFile", in, map[string]any{"file_id": id}).Value(w.t, http.StatusOK)
	states := w.call("getAttachmentStates", nil, map[string]any{"file_ids": []any{id}})
	for name, found := range map[string]string{
		"list": w.call("listFiles", nil, nil).Text(w.t, http.StatusOK, "data", 0, "file_id"), "picker": w.call("pickFiles", args{"q": "EBB"}, nil).Text(w.t, http.StatusOK, "data", 0, "file_id"),
		"project": w.call("listProjectFiles", in, nil).Text(w.t, http.StatusOK, "data", 0, "file_id"), "states": states.Text(w.t, http.StatusOK, "data", 0, "file_id"),
	} {
		if found != id {
			w.t.Errorf("the %s has %s, want %s", name, found, id)
		}
	}
	w.call("removeProjectFile", args{"project_id": project, "file_id": id}, nil).Want(w.t, http.StatusNoContent, nil)
	w.call("deleteFile", file, nil).Want(w.t, http.StatusNoContent, nil)
	w.call("getFile", file, nil).Text(w.t, http.StatusNotFound, "code")
	w.picture()
	w.sharedFile(w.call("putUploadContent", start(), client.Content(text)).Text(w.t, http.StatusOK, "file_id"), text)
}

// sharedFile sends a file in a message, and shares both.
func (w *walk) sharedFile(id, content string) {
	w.finish(w.say("", map[string]any{"input": []any{map[string]any{"type": "text", "text": "Read it."}, map[string]any{"type": "file", "file_id": id}}}), protocol.TurnCompleted)
	last := w.call("listMessages", w.here(), nil).Text(w.t, http.StatusOK, "data", -1, "message_id")
	share := w.call("createShare", w.here(), map[string]any{"message_id": last, "file_ids": []any{id}})
	file := args{"token": share.Text(w.t, http.StatusCreated, "token"), "n": "1"}
	if got := w.newGuest().call(w.t, "getSharedFile", file, nil); string(got.Body) != content {
		w.t.Errorf("the shared file is %q", got.Body)
	}
	w.call("revokeShare", args{"share_id": share.Text(w.t, http.StatusCreated, "share_id")}, nil).Want(w.t, http.StatusNoContent, nil)
}

func (w *walk) search() {
	found := w.call("search", args{"q": "said you", "conversation_id": w.conversation, "limit": "1"}, nil)
	if text := found.Text(w.t, http.StatusOK, "data", 0, "snippet", "text"); !strings.HasPrefix(text, "You said: ") {
		w.t.Errorf("the search found %s", found.Body)
	}
	message := found.Text(w.t, http.StatusOK, "data", 0, "message_id")
	around := args{"conversation_id": w.conversation, "branch_id": found.Text(w.t, http.StatusOK, "data", 0, "branch_id"), "around": message, "limit": "1"}
	if id := w.call("listMessages", around, nil).Text(w.t, http.StatusOK, "data", 0, "message_id"); id != message {
		w.t.Errorf("the page around %s has %s", message, id)
	}
}

// feed reads the feed of the account without a cursor, and again after the cursor that it got. The feed may begin with
// changes from shortly before the cursor.
func (w *walk) feed() {
	cursor, started := w.feedItem(nil, func(*protocol.FeedItem) bool { return true })
	w.call("setTitle", w.here(), map[string]any{"title": "Named for the feed"}).Value(w.t, http.StatusOK)
	_, changed := w.feedItem(args{"Last-Event-ID": cursor}, func(item *protocol.FeedItem) bool { return item.ID == w.conversation })
	if started.Type != protocol.FeedStarted || changed.Type != "conversation.changed" {
		w.t.Errorf("the feed has %+v and %+v", started, changed)
	}
	w.call("followAccount", args{"after": "garbage"}, nil).Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
}

// feedItem opens the feed, reads it up to the first item that is wanted, and validates each item.
func (w *walk) feedItem(parameters args, wanted func(*protocol.FeedItem) bool) (cursor string, item protocol.FeedItem) {
	w.t.Helper()
	operation := w.spec.operations["followAccount"]
	path, headers, err := operation.address(parameters, "")
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.guest.Open(w.t.Context(), operation.method, path, nil, headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var feed verify.Feed
	for frames := client.NewFrameReader(response.Body); ; {
		frame, err := frames.Next()
		if err != nil {
			w.t.Fatalf("%s: %d, %v", path, response.StatusCode, err)
		}
		schema, err := operation.contentPointer(response.StatusCode, "text/event-stream")
		if err == nil {
			err = w.spec.check(schema, frame.Data)
		}
		if err == nil {
			item, err = feed.Next(string(frame.ID), string(frame.Event), string(frame.Data))
		}
		if err != nil {
			w.t.Fatalf("%s: %v", frame.Data, err)
		}
		if wanted(&item) {
			return feed.Cursor, item
		}
	}
}

// importAgain imports a conversation of this account, which the account already has.
func (w *walk) importAgain() {
	var file map[string]any
	if err := json.Unmarshal(w.call("exportConversation", w.here(), nil).Body, &file); err != nil {
		w.t.Fatal(err)
	}
	at := args{"import_id": w.call("createImport", nil, file).Text(w.t, http.StatusAccepted, "import_id")}
	sitetest.Eventually(w.t, "the end of an import", func() bool {
		return w.call("getImport", at, nil).Text(w.t, http.StatusOK, "state") == "completed"
	})
	if skipped := w.call("getImport", at, nil).Value(w.t, http.StatusOK, "report", "reasons", "already_imported"); skipped != 1.0 {
		w.t.Errorf("%v conversations were skipped", skipped)
	}
	if first := w.call("listImports", nil, nil).Text(w.t, http.StatusOK, "data", 0, "import_id"); first != at["import_id"] {
		w.t.Errorf("the newest import is %s", first)
	}
	w.call("cancelImport", at, nil).Text(w.t, http.StatusConflict, "current", "import_id")
}

// speechServer starts a server whose text of a recording is its content, and returns its address.
func speechServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, _, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		content, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
			return
		}
		if err := json.NewEncoder(w).Encode(map[string]string{"text": string(content)}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// speech turns a recording into text.
func (w *walk) speech() {
	const said = "Why are there two tides?"
	if text := w.call("createTranscription", args{"language": "en"}, client.Content(said)).Text(w.t, http.StatusOK, "text"); text != said {
		w.t.Errorf("the text is %q", text)
	}
}

// erase erases another account.
func (w *walk) erase() {
	guest := w.newGuest()
	guest.call(w.t, "register", nil, map[string]any{"email": uuid.NewString() + "@example.org", "password": w.password, "display_name": sitetest.Canary})
	guest.token = guest.call(w.t, "getSession", nil, nil).Text(w.t, http.StatusOK, "csrf_token")
	token := guest.call(w.t, "eraseAccount", nil, nil).Text(w.t, http.StatusConflict, "current", "confirmation", "token")
	guest.call(w.t, "eraseAccount", args{"X-Confirm": token}, nil).Text(w.t, http.StatusAccepted, "erasure_id")
	guest.call(w.t, "getSession", nil, nil).Text(w.t, http.StatusUnauthorized, "code")
}

func (w *walk) write() {
	mine := args{"conversation_id": protocol.NewConversationID().String()}
	body := map[string]any{"title": "Made here", "metadata": map[string]any{"colour": "blue"}}
	made := w.call("putConversation", mine, body)
	made.Value(w.t, http.StatusCreated, "version")
	w.call("putConversation", mine, body).Value(w.t, http.StatusOK)
	body["title"] = "Changed"
	w.call("putConversation", mine, body).Value(w.t, http.StatusConflict, "current")
	mine["If-Match"] = made.Header.Get("ETag")
	w.call("putConversation", mine, body).Value(w.t, http.StatusOK)
	once := args{"Idempotency-Key": uuid.NewString()}
	created := w.call("createConversation", once, map[string]any{"title": "Made there", "profile": "coding"})
	again := w.call("createConversation", once, map[string]any{"title": "Made there", "profile": "coding"})
	if id := created.Text(w.t, http.StatusCreated, "conversation_id"); id != again.Text(w.t, http.StatusCreated, "conversation_id") {
		w.t.Errorf("the same key created two conversations: %s", again.Body)
	}
	w.call("createConversation", once, map[string]any{"title": "Another"}).Text(w.t, http.StatusUnprocessableEntity, "code")
	w.forked = append(w.forked, mine["conversation_id"], created.Text(w.t, http.StatusCreated, "conversation_id"))
}

// delete checks that deleting a conversation with a live turn needs a confirmation, and that everything in the
// conversation is deleted with it.
func (w *walk) delete() {
	for _, conversation := range w.forked {
		w.call("deleteConversation", args{"conversation_id": conversation}, nil).Want(w.t, http.StatusNoContent, nil)
	}
	s := w.say("Tell me "+askWithoutEnd+".", nil)
	s.AwaitKind(w.t, "answer.delta")
	token := w.call("deleteConversation", w.here(), nil).Text(w.t, http.StatusConflict, "current", "confirmation", "token")
	w.call("deleteConversation", args{"conversation_id": w.conversation, "X-Confirm": token}, nil).Want(w.t, http.StatusNoContent, nil)
	select {
	case <-w.model.Aborted():
	case <-time.After(sitetest.HangGuard):
		w.t.Error("the request to the vendor was not aborted")
	}
	for _, id := range []string{"getConversation", "listMessages", "listBranches", "listFollowUps", "listUsage"} {
		w.call(id, w.here(), nil).Text(w.t, http.StatusNotFound, "code")
	}
	w.call("getTurn", args{"turn_id": s.Turn}, nil).Text(w.t, http.StatusNotFound, "code")
	if data := w.call("listConversations", nil, nil).Value(w.t, http.StatusOK, "data").([]any); len(data) != 0 {
		w.t.Errorf("%d conversations are left", len(data))
	}
}

func (w *walk) devices() {
	other := w.newGuest()
	other.token = other.call(w.t, "login", nil, map[string]any{"email": w.email, "password": w.password}).Text(w.t, http.StatusOK, "csrf_token")
	list := w.call("listSessions", nil, nil).Value(w.t, http.StatusOK, "data").([]any)
	if len(list) != 2 {
		w.t.Errorf("%d sessions", len(list))
	}
	for _, device := range list {
		if sitetest.At(w.t, device, "current") == false {
			w.call("endSession", args{"session_id": fmt.Sprint(sitetest.At(w.t, device, "session_id"))}, nil).Want(w.t, http.StatusNoContent, nil)
		}
	}
	other.call(w.t, "getSession", nil, nil).Text(w.t, http.StatusUnauthorized, "code")
	w.guest.token = w.call("reauthenticate", nil, map[string]any{"password": w.password}).Text(w.t, http.StatusOK, "csrf_token")
	w.call("endOtherSessions", nil, nil).Want(w.t, http.StatusNoContent, nil)
	w.renameAccount()
	changed := map[string]any{"current_password": w.password, "new_password": "another long pass phrase"}
	w.guest.token = w.call("changePassword", nil, changed).Text(w.t, http.StatusOK, "csrf_token")
	w.call("changePassword", nil, changed).Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
	other.token = ""
	other.call(w.t, "login", nil, map[string]any{"email": w.email, "password": w.password}).Text(w.t, http.StatusUnauthorized, "code")
}

// renameAccount changes the address and the name of the account. The walk uses the new address from then on.
func (w *walk) renameAccount() {
	w.changeEmail()
	w.call("changeName", nil, map[string]any{"display_name": " "}).Value(w.t, http.StatusUnprocessableEntity, "errors", 0)
	w.call("changeName", nil, map[string]any{"display_name": "Walker the Second"}).Text(w.t, http.StatusOK, "account_id")
	if name := w.call("getSession", nil, nil).Text(w.t, http.StatusOK, "account", "display_name"); name != "Walker the Second" {
		w.t.Errorf("the name is %s", name)
	}
}

func (w *walk) signOut() {
	token := w.guest.token
	w.guest.token = "wrong"
	w.call("logout", nil, nil).Text(w.t, http.StatusForbidden, "code")
	w.guest.token = token
	w.call("logout", nil, nil).Want(w.t, http.StatusNoContent, nil)
	w.call("getSession", nil, nil).Text(w.t, http.StatusUnauthorized, "code")
}
