package http

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"turnstone/actors/research/worktest"
	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// tideWorker finds the same page for every question, and writes one sentence about it.
type tideWorker struct{}

// neverAnswered is a question whose task does not end by itself.
const neverAnswered = "When is the last tide?"

const tide = "Spring tides occur when the sun and the moon are in line with the earth."

func (tideWorker) Run(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (*researchlog.Result, error) {
	if spec.Question == neverAnswered {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	used := protocol.Usage{InputTokens: 100, OutputTokens: 20}
	switch step.Kind {
	case researchlog.StepPlan:
		return &researchlog.Result{Questions: []string{"What are spring tides?"}, Usage: used}, nil
	case researchlog.StepSearch:
		return &researchlog.Result{Candidates: []researchlog.Candidate{{Title: "Tides", URL: "https://tides.example/" + string(step.Source)}}}, nil
	case researchlog.StepRead:
		return &researchlog.Result{Page: &researchlog.Page{
			Title: "Tides", URL: step.Found.URL, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(spec.TaskID.String()))), AccessedAt: spec.CreatedAt, Passages: []researchlog.Passage{{Text: tide, Locator: "paragraph 1"}},
		}, Pages: 1}, nil
	case researchlog.StepJudge:
		return &researchlog.Result{Quotes: []researchlog.Quote{{Number: 1, Text: tide}}, Usage: used}, nil
	case researchlog.StepWrite:
		return &researchlog.Result{Text: tide + " [1] They occur on Mars too [7].", Usage: used}, nil
	}
	return &researchlog.Result{}, nil
}

func TestTheStandInForTheWorkerKeepsItsContract(t *testing.T) {
	t.Parallel()
	worktest.RunWorker(t, tideWorker{})
}

// researcher is a client with a conversation on a node that runs research tasks.
type researcher struct {
	*user
	conversation string
	below        string // the path of the tasks of the conversation
}

func newResearcher(t *testing.T, change ...func(*testConfig)) *researcher {
	t.Helper()
	w := newWorld(t, append(change, func(c *testConfig) { liveOn(t, c) })...)
	return w.researcher()
}

func (w *world) researcher() *researcher {
	u := signUp(w.t, w)
	r := &researcher{user: u, conversation: u.conversation("Tides")}
	r.below = "/conversations/" + r.conversation + "/research-tasks"
	return r
}

// start starts a task and returns its path.
func (r *researcher) start(question string) string {
	r.t.Helper()
	return "/research-tasks/" + r.do(202, "POST", r.below, route.Object{"question": question}).at("task_id").(string)
}

// until reads the events of a task until its end.
func (r *researcher) until(path string) string {
	r.t.Helper()
	return string(r.expect(200, "GET", path+"/events", nil).body)
}

func TestAResearchTaskEndsWithAReportOfItsConversation(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	made := r.do(202, "POST", r.below, route.Object{"question": "  How do tides differ? ", "depth": "quick", "budget": route.Object{"pages": 3}})
	wantField(t, made, "question", "How do tides differ?")
	wantField(t, made, "budget.pages", 3.0)
	wantField(t, made, "budget.tokens", 100_000.0)
	wantField(t, made, "sources.0", "web")
	path := made.header.Get("Location")
	if path != "/research-tasks/"+made.at("task_id").(string) {
		t.Fatalf("Location is %s", path)
	}
	events := r.until(path)

	task := r.do(200, "GET", path, nil)
	if task.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control is %s", task.header.Get("Cache-Control"))
	}
	wantField(t, task, "state", "completed")
	wantField(t, task, "plan.0.state", "done")
	if task.at("finished_at") == nil {
		t.Errorf("finished_at is absent in %s", task.text)
	}
	wantField(t, task, "progress.sources_kept", 1.0)
	wantField(t, task, "spent.pages", 1.0)
	wantField(t, task, "spent.tokens", 360.0)
	wantField(t, task, "checks.supported", 1.0)
	wantField(t, task, "checks.unsupported", 1.0)
	wantField(t, task, "checks.removed", 1.0)
	wantField(t, r.do(200, "GET", r.below, nil), "data.0.task_id", task.at("task_id"))
	r.start("Why are tides high?")
	for _, report := range []string{"message_id", "artifact_id"} {
		ids, _ := r.allPages(r.below+"?report="+task.at(report).(string), "task_id")
		if !slices.Equal(ids, []string{task.at("task_id").(string)}) {
			t.Errorf("the tasks of the report with its %s are %v", report, ids)
		}
	}
	if other := r.do(200, "GET", r.below+"?report="+r.conversation, nil).at("data").([]any); len(other) != 0 {
		t.Errorf("another report has the tasks %v", other)
	}

	sources := r.do(200, "GET", path+"/sources", nil)
	wantField(t, sources, "data.0.number", 1.0)
	wantField(t, sources, "data.0.url", "https://tides.example/web")
	wantField(t, sources, "data.0.excerpts.0.text", tide)
	report := string(r.expect(200, "GET", "/artifacts/"+task.at("artifact_id").(string)+"/content", nil).body)
	if !strings.Contains(report, tide+" [1]") && !strings.Contains(report, strings.TrimSuffix(tide, ".")+" [1]") || strings.Contains(report, "[7]") || !strings.Contains(report, "not supported by a source") {
		t.Errorf("the report is %s", report)
	}
	messages := r.do(200, "GET", "/conversations/"+r.conversation+"/messages", nil)
	wantField(t, messages, "data.0.message_id", task.at("message_id"))
	wantField(t, messages, "data.0.parts.0.citations.0.url", "https://tides.example/web")
	wantField(t, messages, "data.0.parts.1.artifact_id", task.at("artifact_id"))
	wantField(t, r.do(200, "GET", "/conversations/"+r.conversation+"/usage", nil), "data.0.kind", "research")
	r.checkEvents(path, events, task)
}

// checkEvents checks that the events of a task that has ended have no gap, and the same bytes every time.
func (r *researcher) checkEvents(path, events string, task decodedReply) {
	r.t.Helper()
	n := 0
	for block := range strings.SplitSeq(strings.TrimSuffix(events, "\n\n"), "\n\n") {
		if !strings.Contains(block, "data: ") {
			continue
		}
		if n++; !strings.HasPrefix(block, fmt.Sprintf("id: %d\n", n)) {
			r.t.Errorf("event %d is %s", n, block)
		}
	}
	if last := task.at("last_sequence"); last != float64(n) || !strings.Contains(events, "event: task.finished\n") {
		r.t.Errorf("%d events, last_sequence %v: %s", n, last, events)
	}
	comments := regexp.MustCompile(`(?m)^:.*\n\n?`)
	_, rest, _ := strings.Cut(comments.ReplaceAllString(events, ""), "id: 3\n")
	_, again, _ := strings.Cut(comments.ReplaceAllString(string(r.expect(200, "GET", path+"/events?after=2", nil).body), ""), "id: 3\n")
	if rest != again || rest == "" {
		r.t.Errorf("the events after 2 differ:\n%s\n%s", rest, again)
	}
	r.do(204, "GET", path+"/events", nil, "Last-Event-ID", fmt.Sprint(n))
	r.do(422, "GET", path+"/events?after=x", nil)
}

func TestAConversationThatBeginsWithResearchHasATitle(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	r.conversation = r.do(201, "POST", "/conversations", route.Object{}).at("conversation_id").(string)
	r.below = "/conversations/" + r.conversation + "/research-tasks"
	r.start(neverAnswered)
	wantField(t, r.do(200, "GET", "/conversations/"+r.conversation, nil), "title", neverAnswered)
}

func TestARepeatedStartIsTheSameTask(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	first := r.do(202, "POST", r.below, route.Object{"question": neverAnswered}, keyField, "key-1")
	again := r.do(202, "POST", r.below, route.Object{"question": neverAnswered}, keyField, "key-1")
	if again.text != first.text || again.header.Get("Location") != first.header.Get("Location") || again.header.Get(replayedField) != "true" {
		t.Errorf("the repeat is %s with %v, not %s", again.text, again.header, first.text)
	}
	r.do(422, "POST", r.below, route.Object{"question": "another"}, keyField, "key-1")
	if tasks := r.do(200, "GET", r.below, nil); tasks.at("data.0") == nil || tasks.at("data.1") != nil {
		t.Errorf("the tasks are %s", tasks.text)
	}
}

func TestResearchNeedsTheConsentToWhatItSearches(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	refused := func(body route.Object, field, names string) {
		t.Helper()
		body["question"] = neverAnswered
		got := r.do(422, "POST", r.below, body)
		wantField(t, got, "errors.0.field", field)
		if !strings.Contains(got.text, names) {
			t.Errorf("%s does not name %s", got.text, names)
		}
	}
	refused(route.Object{"sources": []any{"web", "files"}}, "body.sources", "files")
	refused(route.Object{"sources": []any{"conversations"}}, "body.sources", "conversations")
	mine := r.do(202, "POST", r.below, route.Object{"question": neverAnswered, "file_ids": []any{r.storeFile("Mine.").FileID}})
	wantField(t, mine, "sources.1", "files")
	r.do(200, "PUT", "/memory-sources/files/consent", route.Object{"granted": true})
	wantField(t, r.do(202, "POST", r.below, route.Object{"question": neverAnswered, "sources": []any{"files", "web", "files"}}), "sources.0", "web")
	refused(route.Object{"sources": []any{"conversations", "files"}}, "body.sources", "conversations")

	temporary := r.do(201, "POST", "/conversations", route.Object{"temporary": true}).at("conversation_id").(string)
	r.below = "/conversations/" + temporary + "/research-tasks"
	refused(route.Object{"sources": []any{"files"}}, "body.sources", "files")
}

func TestResearchInAFileThatTheAccountDoesNotHaveIsNotFound(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	mine := r.storeFile("Mine.")
	refused := func(file protocol.FileID) any {
		t.Helper()
		got := r.do(404, "POST", r.below, route.Object{"question": neverAnswered, "file_ids": []any{mine.FileID, file}})
		wantField(t, got, "code", "not_found")
		delete(got.object.(map[string]any), "request_id")
		return got.object
	}
	missing := refused(protocol.DeriveFileID(protocol.NewUploadID()))
	if foreign := refused(r.researcher().storeFile("Foreign.").FileID); !reflect.DeepEqual(foreign, missing) {
		t.Errorf("a file of another account gets %v, one that does not exist %v", foreign, missing)
	}
	r.readTexts(readAsIs)
	r.ask(asking("Read it.", []*protocol.File{mine}))
	deleted := mine.FileID
	r.do(204, "DELETE", "/files/"+deleted.String(), nil)
	mine = r.storeFile("Mine too.")
	refused(deleted)
	r.do(422, "POST", r.below, route.Object{"question": neverAnswered, "file_ids": []any{"none"}})
}

func TestResearchWithoutASearchEngineSaysSo(t *testing.T) {
	t.Parallel()
	const reason = "No search engine is configured."
	r := newResearcher(t, func(c *testConfig) {
		c.unavailable = map[protocol.ResearchSource]string{protocol.ResearchWeb: reason}
	})
	got := r.do(503, "POST", r.below, route.Object{"question": neverAnswered})
	wantField(t, got, "code", "source_unavailable")
	wantField(t, got, "detail", reason)
	if got.header.Get("Retry-After") == "" {
		t.Error("the response has no Retry-After")
	}
	r.do(200, "PUT", "/memory-sources/files/consent", route.Object{"granted": true})
	r.do(202, "POST", r.below, route.Object{"question": neverAnswered, "sources": []any{"files"}})
}

func TestACancelEndsAResearchTask(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	path := r.start(neverAnswered)
	cancelled := r.do(202, "POST", path+"/cancel", nil)
	if state := cancelled.at("state"); state != "cancelling" && state != "cancelled" {
		t.Errorf("the state is %v", state)
	}
	if events := r.until(path); !strings.Contains(events, `"state":"cancelled"`) {
		t.Errorf("%s", events)
	}
	late := r.do(409, "POST", path+"/cancel", nil)
	wantField(t, late, "code", "conflict")
	wantField(t, late, "current.state", "cancelled")
	wantField(t, r.do(200, "GET", path, nil), "artifact_id", nil)
	wantField(t, r.do(200, "GET", "/conversations/"+r.conversation+"/messages", nil), "data.0", nil)

	finished := r.start("How do tides differ?")
	r.until(finished)
	wantField(t, r.do(409, "POST", finished+"/cancel", nil), "current.state", "completed")
}

func TestTheUserSteersAResearchTask(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	path := r.start(neverAnswered)
	r.changes.Await(t, "the task runs", func() bool { return r.do(200, "GET", path, nil).at("state") == "running" }) // its plan takes no later input into account
	wantField(t, r.do(409, "GET", path+"/events?after=9999", nil), "code", "sequence_ahead")
	input := route.Object{"type": "input", "client_steering_id": "one", "input": "Only spring tides."}
	first := r.do(202, "POST", path+"/steering", input)
	wantField(t, first, "replayed", false)
	again := r.do(202, "POST", path+"/steering", input)
	wantField(t, again, "replayed", true)
	wantField(t, again, "sequence", first.at("sequence"))
	wantField(t, r.do(202, "POST", path+"/steering", route.Object{"type": "input", "client_steering_id": "two", "input": []any{route.Object{"type": "text", "text": " In\u200b France."}}}), "state", "accepted")
	wantField(t, r.do(202, "POST", path+"/steering", route.Object{"type": "plan", "add": []any{"What are neap tides?"}}), "state", "accepted")
	wantField(t, r.do(202, "POST", path+"/steering", route.Object{"type": "write_now"}), "state", "accepted") // it waits: nothing was searched yet
	wantField(t, r.do(409, "POST", path+"/steering", route.Object{"type": "write_now"}), "code", "conflict")
	for _, wrong := range []route.Object{
		{"type": "input", "client_steering_id": "one", "input": "Something else."},
		{"type": "input", "input": "no name"},
		{"type": "input", "client_steering_id": "three"},
		{"type": "input", "client_steering_id": "three", "input": " "},
		{"type": "input", "client_steering_id": "three", "input": strings.Repeat("a", protocol.MaxSteeringRunes+1)},
		{"type": "input", "client_steering_id": "three", "input": []any{route.Object{"type": "image", "text": "x"}}},
		{"type": "plan"},
		{"type": "plan", "add": []any{" "}},
		{"type": "plan", "add": []any{strings.Repeat("a", 401)}},
		{"type": "faster"},
	} {
		r.do(422, "POST", path+"/steering", wrong)
	}
	r.do(202, "POST", path+"/cancel", nil)
	r.until(path)
	late := r.do(409, "POST", path+"/steering", route.Object{"type": "input", "client_steering_id": "late", "input": "More."})
	wantField(t, late, "code", "steering_closed")
	wantField(t, late, "current.state", "cancelled")
	wantField(t, late, "current.finished_at", r.do(200, "GET", path, nil).at("finished_at"))
	wantField(t, r.do(202, "POST", path+"/steering", input), "sequence", first.at("sequence"))
	events := r.until(path)
	if strings.Count(events, `"outcome":"returned"`) != 3 {
		t.Errorf("%s", events)
	}
	held := r.do(200, "GET", "/conversations/"+r.conversation+"/follow-ups", nil)
	for i, text := range []string{"Only spring tides.", " In\u200b France."} {
		item := fmt.Sprintf("data.%d.", i)
		wantField(t, held, item+"content", text)
		wantField(t, held, item+"state", "held")
		if id, _ := held.at(item + "follow_up_id").(string); !strings.Contains(events, `"follow_up_id":"`+id+`"`) {
			t.Errorf("no event names %s: %s", id, events)
		}
	}
}

func TestCommandsForAWaitingResearchTaskDoNotRefuseOneAnother(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	for range protocol.MaxResearchRunning {
		r.start(neverAnswered)
	}
	path := r.start(neverAnswered)
	statuses := make(chan int)
	for i := range 3 * protocol.MaxResearchInputs {
		go func() { // each of them is sent three times
			name := fmt.Sprintf("input-%d", i%protocol.MaxResearchInputs)
			statuses <- r.client.do("POST", path+"/steering", route.Object{"type": "input", "client_steering_id": name, "input": name}).status
		}()
	}
	for range 3 * protocol.MaxResearchInputs {
		if status := <-statuses; status != 202 {
			t.Errorf("a command gets %d", status)
		}
	}
	wantField(t, r.do(202, "POST", path+"/cancel", nil), "state", "cancelled")
	if events := r.until(path); strings.Count(events, `"outcome":"accepted"`) != protocol.MaxResearchInputs {
		t.Errorf("%s", events)
	}
}

func TestAnAccountHasAFewResearchTasksThatRunAndManyThatWait(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	paths := make([]string, protocol.MaxResearchWaiting)
	for i := range paths {
		paths[i] = r.start(neverAnswered)
	}
	refused := r.do(429, "POST", r.below, route.Object{"question": neverAnswered})
	wantField(t, refused, "code", "too_many_tasks")
	states := map[string]int{}
	tasks, _ := r.allPages(r.below+"?limit=30", "state")
	for _, state := range tasks {
		states[state]++
	}
	if states["running"] > protocol.MaxResearchRunning || states["running"]+states["queued"] != len(paths) {
		t.Errorf("%v", states)
	}
	last := paths[len(paths)-1]
	wantField(t, r.do(200, "GET", last, nil), "state", "queued")
	wantField(t, r.do(202, "POST", last+"/steering", route.Object{"type": "input", "client_steering_id": "one", "input": "Soon."}), "state", "accepted")
	wantField(t, r.do(202, "POST", last+"/cancel", nil), "state", "cancelled")
	other := r.researcher()
	other.until(other.start("How do tides differ?")) // it does not wait for those of another account
}

func TestAConversationIsDeletedWithItsResearchTasks(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	path, conversation := r.start(neverAnswered), "/conversations/"+r.conversation
	first := r.do(409, "DELETE", conversation, nil)
	wantField(t, first, "code", "confirmation_required")
	wantField(t, first, "current.confirmation.will_delete.live_tasks", 1.0)
	reader := r.follow(path + "/events")
	r.do(204, "DELETE", conversation, nil, "X-Confirm", first.at("current.confirmation.token").(string))
	if events, err := io.ReadAll(reader); err != nil || strings.Contains(string(events), "task.finished") { // its reader learns nothing more, and is not kept
		t.Errorf("%s, %v", events, err)
	}
	for _, gone := range []string{path, path + "/sources", path + "/events", r.below} {
		r.do(404, "GET", gone, nil)
	}
	r.do(404, "POST", path+"/cancel", nil)
	r.do(404, "POST", path+"/steering", route.Object{"type": "write_now"})
	r.do(404, "POST", r.below, route.Object{"question": neverAnswered})
}

func TestTheTasksOfAllConversationsAreListed(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	ended := r.start("How do tides differ?")
	r.until(ended)
	open := r.start(neverAnswered)
	r.below = "/conversations/" + r.do(201, "POST", "/conversations", route.Object{}).at("conversation_id").(string) + "/research-tasks"
	other := r.start(neverAnswered)
	tasks := func(query string) (paths []string) {
		ids, _ := r.allPages("/research-tasks"+query, "task_id")
		for _, id := range ids {
			paths = append(paths, "/research-tasks/"+id)
		}
		return paths
	}
	if all := tasks(""); !slices.Equal(all, []string{other, open, ended}) {
		t.Errorf("the tasks are %v", all)
	}
	if some := tasks("?state=open"); !slices.Equal(some, []string{other, open}) {
		t.Errorf("the open tasks are %v", some)
	}
	conversation := strings.TrimSuffix(r.below, "/research-tasks")
	r.do(204, "DELETE", conversation, nil, "X-Confirm", r.do(409, "DELETE", conversation, nil).at("current.confirmation.token").(string))
	if all := tasks(""); !slices.Equal(all, []string{open, ended}) {
		t.Errorf("after the deletion of a conversation, the tasks are %v", all)
	}
	cursor := r.do(200, "GET", "/research-tasks?limit=1", nil).at("next_cursor").(string)
	for _, wrong := range []string{"?state=ended", "?state=open&cursor=" + cursor, "?limit=0", "?cursor=none"} {
		r.do(422, "GET", "/research-tasks"+wrong, nil)
	}
	if stranger := r.researcher().do(200, "GET", "/research-tasks", nil).at("data").([]any); len(stranger) != 0 {
		t.Errorf("another account gets %v", stranger)
	}
}

func TestAnArchivedProjectStartsNoResearchTask(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	project := r.project("Sea")
	conversation := r.do(201, "POST", "/projects/"+project+"/conversations", route.Object{"title": "Tides"}).at("conversation_id").(string)
	below := "/conversations/" + conversation + "/research-tasks"
	path := "/research-tasks/" + r.do(202, "POST", below, route.Object{"question": "How do tides differ?"}).at("task_id").(string)
	r.until(path)
	kinds, _ := r.allPages("/projects/"+project+"/work-history", "kind")
	if !slices.Contains(kinds, "task_started") {
		t.Errorf("the work of the project is %v", kinds)
	}
	r.do(200, "PUT", "/projects/"+project+"/archive", route.Object{"archived": true}, "If-Match", "*")
	r.do(409, "POST", below, route.Object{"question": "How do tides differ?"})
}

func TestResearchTasksRefuseWrongRequests(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	for _, wrong := range []any{
		route.Object{},
		route.Object{"question": ""},
		route.Object{"question": " \u200b "},
		route.Object{"question": strings.Repeat("a", 4001)},
		route.Object{"question": "a", "depth": "bottomless"},
		route.Object{"question": "a", "sources": []any{}},
		route.Object{"question": "a", "sources": []any{"connectors"}},
		route.Object{"question": "a", "budget": route.Object{"tokens": 0}},
		route.Object{"question": "a", "budget": route.Object{"pages": 501}},
		route.Object{"question": "a", "file_ids": []any{"none"}},
		[]any{},
	} {
		r.do(422, "POST", r.below, wrong)
	}
	const name = "errors.0.field"
	wantField(t, r.do(422, "POST", r.below, route.Object{"question": "a", "sources": []any{"web", "connectors"}}), name, "body.sources")
	wantField(t, r.do(422, "POST", r.below, route.Object{"question": "a", "connectors": []any{"cb_01h2xcejqtf2nbrexx3vqjhp41"}}), name, "body.connectors[0]")
	large := r.do(422, "POST", r.below, route.Object{"question": "a", "budget": route.Object{"tokens": 20_000_000}})
	if message := large.at("errors.0.message"); message != "expected number <= 10000000" {
		t.Errorf("%v", message)
	}
	small := r.do(202, "POST", r.below, route.Object{"question": "How do tides differ?", "budget": route.Object{"tokens": 1}})
	path := "/research-tasks/" + small.at("task_id").(string)
	r.until(path)
	failed := r.do(200, "GET", path, nil)
	wantField(t, failed, "state", "failed")
	wantField(t, failed, "failure.code", "budget_exceeded")
	for _, wrong := range []string{"/research-tasks/none", "/research-tasks/" + protocol.NewTaskID().String(), "/conversations/" + protocol.NewConversationID().String() + "/research-tasks"} {
		r.do(404, "GET", wrong, nil)
	}
	stranger := r.researcher()
	cursor := r.do(200, "GET", r.below+"?limit=1", nil).at("next_cursor")
	if cursor == nil {
		r.start(neverAnswered)
		cursor = r.do(200, "GET", r.below+"?limit=1", nil).at("next_cursor")
	}
	stranger.do(422, "GET", fmt.Sprintf("%s?cursor=%v", stranger.below, cursor), nil)
	stranger.do(404, "GET", path, nil)
	var list protocol.List[json.RawMessage]
	r.expect(200, "GET", r.below+"?limit=1&cursor="+cursor.(string), nil).into(t, &list)
	if len(list.Data) != 1 || list.HasMore {
		t.Errorf("the second page is %+v", list)
	}
}

// Contract 1: a body has at most 1 MiB, and unknown fields are ignored.
func TestABodyOfOneMebibyteStartsAndSteersAResearchTask(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	padding := strings.Repeat("a", 1<<20-200)
	path := "/research-tasks/" + r.do(202, "POST", r.below, route.Object{"question": neverAnswered, "ignored": padding}).at("task_id").(string)
	r.do(202, "POST", path+"/steering", route.Object{"type": "input", "client_steering_id": "one", "input": "Only spring tides.", "ignored": padding})
	r.do(413, "POST", r.below, route.Object{"question": neverAnswered, "ignored": padding + padding[:300]})
	r.do(413, "POST", path+"/steering", route.Object{"type": "write_now", "ignored": padding + padding[:300]})
}

func TestAnExportHasTheResearchOfTheAccount(t *testing.T) {
	t.Parallel()
	r := newResearcher(t)
	path := r.start("How do tides differ?")
	r.until(path)
	task := r.do(200, "GET", path, nil)
	r.start(neverAnswered)
	archive := r.expect(200, "GET", "/account/export", nil).body
	var exported struct {
		Tasks []protocol.ExportedResearch `json:"research_tasks"`
	}
	if err := json.Unmarshal([]byte(unzip(t, archive)["research.json"]), &exported); err != nil {
		t.Fatal(err)
	}
	if len(exported.Tasks) != 2 || exported.Tasks[0].ArtifactID.String() != task.at("artifact_id") || exported.Tasks[0].Kept[0].Excerpts[0].Text != tide || len(exported.Tasks[1].Kept) != 0 {
		t.Errorf("%+v", exported.Tasks)
	}

	other := r.researcher()
	done := other.importArchive(archive)
	if done.State != protocol.ImportCompleted || done.Report.Reasons[protocol.ImportResearchSkipped] != 2 || done.Artifacts != 1 {
		t.Errorf("%+v", done)
	}
	for _, list := range other.do(200, "GET", "/conversations", nil).at("data").([]any) {
		conversation := list.(map[string]any)["conversation_id"].(string)
		if conversation == other.conversation {
			continue
		}
		message := other.do(200, "GET", "/conversations/"+conversation+"/messages", nil)
		artifact, _ := message.at("data.0.parts.1.artifact_id").(string)
		if report := string(other.expect(200, "GET", "/artifacts/"+artifact+"/content", nil).body); !strings.Contains(report, tide) {
			t.Errorf("the report is %s", report)
		}
	}
}
