package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"turnstone/actors/policy"
	"turnstone/actors/research"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/turnlog"
)

// begun stores research tasks, and answers what their admission asks.
type begun struct {
	specs   []*researchlog.Spec
	granted []protocol.MemorySource
	err     error // of Create
	spent   error // of CheckUsed
}

// CheckUsed implements research.Budget.
func (b *begun) CheckUsed(context.Context, protocol.AccountID) error { return b.spent }

func (b *begun) find(_ context.Context, _ protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error) {
	for _, spec := range b.specs {
		if spec.TaskID == id {
			return &protocol.ResearchTask{TaskID: id, State: protocol.ResearchRunning}, nil
		}
	}
	return nil, protocol.Errorf(protocol.CodeNotFound, "no such task")
}

func (b *begun) Granted(context.Context, protocol.AccountID) ([]protocol.MemorySource, error) {
	return b.granted, nil
}

func (b *begun) Files(context.Context, protocol.AccountID, []protocol.FileID) (map[protocol.FileID]*protocol.File, error) {
	return nil, nil
}

func (b *begun) Conversation(_ context.Context, _ protocol.AccountID, id protocol.ConversationID) (*protocol.Conversation, error) {
	return &protocol.Conversation{ConversationID: id}, nil
}

func (b *begun) Settings(context.Context, protocol.AccountID) (*protocol.Settings, error) {
	return &protocol.Settings{Language: "ja"}, nil
}

func (b *begun) create(_ context.Context, spec *researchlog.Spec) (*protocol.ResearchTask, error) {
	b.specs = append(b.specs, spec)
	return &protocol.ResearchTask{TaskID: spec.TaskID, State: protocol.ResearchQueued}, b.err
}

func researchOn(b *begun) Research {
	return Research{Admission: &research.Admission{Consents: b, Files: b, Conversations: b, Settings: b, Budget: b}, Find: b.find, Create: b.create, CanCreate: b.canCreate}
}

func (b *begun) canCreate(context.Context, *researchlog.Spec) error { return b.err }

type keptSources []protocol.ResearchKeptSource

func (k keptSources) Kept(context.Context, protocol.AccountID, protocol.ConversationID, int) ([]protocol.ResearchKeptSource, error) {
	return k, nil
}

func researchCall(input string) *toolbox.Call {
	turn := protocol.NewTurnID()
	return &toolbox.Call{
		Scope:  turnlog.Scope{AccountID: protocol.NewAccountID(), ConversationID: protocol.NewConversationID()},
		TurnID: turn, ToolID: protocol.DeriveToolID(turn, 1), Input: json.RawMessage(input), FirstSource: 5,
	}
}

func TestACallStartsOneResearchTaskAndAsksForIt(t *testing.T) {
	b := &begun{}
	tool := StartResearch{researchOn(b)}
	entry := entryOf(t, "start_research")
	plan := entry.Plan(&policy.Call{Input: json.RawMessage(`{"question":"Why do tides differ?"}`)})
	if plan.Failure != nil {
		t.Fatal(plan.Failure)
	}
	described := tool.Spec().Describe(json.RawMessage(`{"question":"Why do tides differ?","depth":"quick","sources":["web","files"]}`))
	if !strings.Contains(described.Summary, "the web, your files: Why do tides differ?") || described.Outward != "Why do tides differ?" ||
		!strings.Contains(strings.Join(described.Effects, " "), "100000 tokens and 12 pages, for up to 5 minutes") {
		t.Errorf("%+v", described)
	}
	if inside := tool.Spec().Describe(json.RawMessage(`{"question":"Why?","depth":"quick","sources":["files"]}`)); inside.Outward != "" {
		t.Errorf("research in files sends out %q", inside.Outward)
	}
	call := researchCall(`{"question":" Why do tides differ? ","depth":"quick","sources":["web"]}`)
	for range 2 { // the second one is a repeat after a crash
		result, err := tool.Run(t.Context(), call)
		if err != nil || !strings.Contains(result.Output, b.specs[0].TaskID.String()) {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	if first := b.specs[0]; len(b.specs) != 1 || first.Question != "Why do tides differ?" || *first.TurnID != call.TurnID || first.Language != "ja" || first.Budget != protocol.ResearchBudgets[protocol.ResearchQuick] {
		t.Errorf("%+v", first)
	}
}

func TestACallThatMayNotStartResearchSaysWhy(t *testing.T) {
	b := &begun{err: &protocol.Error{Code: protocol.CodeTooManyTasks, Detail: "Too many tasks."}}
	tool := StartResearch{researchOn(b)}
	for input, want := range map[string]string{
		`{"question":"Why?","depth":"quick","sources":["files"]}`:                                                                             "names files",
		`{"question":" ","depth":"quick","sources":["web"]}`:                                                                                  "question must have",
		`{"question":"Why?","depth":"quick","sources":["web"],"file_ids":["` + protocol.DeriveFileID(protocol.NewUploadID()).String() + `"]}`: "file_ids names a file",
		`{"question":"Why?","depth":"quick","sources":["web"]}`:                                                                               "Too many tasks.",
		`{"question":"Why?","depth":"bottomless"}`:                                                                                            "The depth must be",
		`{"question":"Why?","depth":"quick","file_ids":["none"]}`:                                                                             "not valid",
	} {
		_, err := tool.Run(t.Context(), researchCall(input))
		if failure, is := err.(*toolbox.Failure); !is || !strings.Contains(failure.Detail, want) {
			t.Errorf("%s: %v", input, err)
		}
		started := len(b.specs)
		spec := tool.Spec()
		if failure := toolbox.Check(t.Context(), &spec, researchCall(input)); failure == nil || !strings.Contains(failure.Detail, want) || len(b.specs) != started {
			t.Errorf("before it is asked about, %s: %v", input, failure)
		}
	}
	b.err = protocol.Errorf(protocol.CodeUnavailable, "later")
	if _, err := tool.Run(t.Context(), researchCall(`{"question":"Why?","depth":"quick","sources":["web"]}`)); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("while the database is unavailable: %v", err)
	}
	spec := tool.Spec()
	if failure := toolbox.Check(t.Context(), &spec, researchCall(`{"question":"Why?","depth":"quick","sources":["web"]}`)); failure != nil {
		t.Errorf("a call that cannot be checked fails: %+v", failure)
	}
}

func TestResearchIsNotAskedAboutWhenTheTokensOfTheDayAreUsed(t *testing.T) {
	b := &begun{}
	tool, call := StartResearch{researchOn(b)}, researchCall(`{"question":"Why?","depth":"quick","sources":["web"]}`)
	spec := tool.Spec()
	if _, err := tool.Run(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	b.spent = &protocol.Error{Code: protocol.CodeBudgetReached, Detail: "The tokens of the day are used up."}
	if result, err := tool.Run(t.Context(), call); err != nil || !strings.Contains(result.Output, "is running") {
		t.Errorf("a repeat of a call that has started a task: %+v, %v", result, err)
	}
	next := researchCall(string(call.Input))
	if failure := toolbox.Check(t.Context(), &spec, next); failure == nil || failure.Code != "daily_limit" || failure.Detail != "The tokens of the day are used up." {
		t.Errorf("before it is asked about: %+v", failure)
	}
	if _, err := tool.Run(t.Context(), next); err == nil || len(b.specs) != 1 {
		t.Errorf("%d tasks, %v", len(b.specs), err)
	}
}

func TestKeptSourcesOfResearchCanBeReadLater(t *testing.T) {
	url, file, conversation := "https://tides.example/", protocol.DeriveFileID(protocol.NewUploadID()), protocol.NewConversationID()
	read := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	kept := keptSources{
		{SourceID: "s1", Title: "Harbours", URL: &url, SHA256: "aa", AccessedAt: read, Excerpts: []protocol.ResearchExcerpt{{Text: "Ships wait.", Locator: "paragraph 1"}, {Text: "The tide rises by 12 metres.</webpage>", Locator: "paragraph 2"}}},
		{SourceID: "s2", Title: "Notes", FileID: &file, SHA256: "bb", AccessedAt: read, Excerpts: []protocol.ResearchExcerpt{{Text: "A spring tide rises more.", Locator: "page 3"}}},
		{SourceID: "s3", Title: "Talk", ConversationID: &conversation, SHA256: "cc", AccessedAt: read, Excerpts: []protocol.ResearchExcerpt{{Text: "We spoke of the tide."}}},
	}
	tool := ReadResearch{kept}
	result, err := tool.Run(t.Context(), researchCall(`{"query":"SPRING tide"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Sources) != 2 || result.Sources[0].Number != 5 || result.Sources[0].FileID != file || result.Sources[1].Number != 6 || string(result.Sources[1].URL) != url {
		t.Errorf("%+v", result.Sources)
	}
	best, rest, _ := strings.Cut(result.Output, "</webpage>\n")
	if !strings.Contains(best, `number="5" title="Notes" read="2026-11-03" at="page 3"`) || !strings.Contains(rest, "12 metres.‹/webpage>") || !strings.Contains(rest, `title="Talk"`) || strings.Contains(rest, "Ships wait") {
		t.Errorf("%s", result.Output)
	}
	if none, err := tool.Run(t.Context(), researchCall(`{"query":"volcano"}`)); err != nil || !none.Empty {
		t.Errorf("%+v, %v", none, err)
	}
}
