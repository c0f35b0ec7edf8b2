package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func partID(n int) PartID { return DerivePartID(goldenTurn, n) }

func folded(payloads ...Payload) *Fold {
	f := new(Fold)
	for _, payload := range payloads {
		f.Apply(payload)
	}
	return f
}

func wantParts(t *testing.T, f *Fold, want ...Part) {
	t.Helper()
	if want == nil {
		want = []Part{}
	}
	if diff := cmp.Diff(want, f.Parts()); diff != "" {
		t.Errorf("the parts of the message (-want +got):\n%s", diff)
	}
}

func TestNothingFoldsToAnEmptyListOfParts(t *testing.T) {
	wantParts(t, new(Fold))
	wantParts(t, folded(nil, &TurnStarted{}, &TurnStateChanged{}, &ActivityProgress{PartID: partID(1)}, &AnswerDelta{PartID: partID(1), Delta: "x"}))
}

func TestDeltasGrowAnOpenPartAndItsEndIsAuthoritative(t *testing.T) {
	f := folded(&AnswerStarted{PartID: partID(1)}, &AnswerDelta{PartID: partID(1), Delta: "Hel"}, &AnswerDelta{PartID: partID(1), Delta: "lo"})
	wantParts(t, f, Part{Type: PartText, PartID: partID(1), Text: "Hello", Open: true})
	if f.Len(partID(1)) != 5 || f.Text(partID(1)) != "Hello" || !f.Has(partID(1)) || f.Count() != 1 {
		t.Errorf("the open part has %d bytes, %q", f.Len(partID(1)), f.Text(partID(1)))
	}
	f.Apply(&AnswerCompleted{PartID: partID(1), Text: "Hello!"})
	f.Apply(&AnswerDelta{PartID: partID(1), Delta: " late"})
	wantParts(t, f, Part{Type: PartText, PartID: partID(1), Text: "Hello!"})
	if f.Text(partID(1)) != "Hello!" {
		t.Errorf("the closed part contains %q", f.Text(partID(1)))
	}
}

func TestATruncatedPartIsMarked(t *testing.T) {
	wantParts(t, folded(
		&AnswerStarted{PartID: partID(1)}, &AnswerCompleted{PartID: partID(1), Text: "Hel", Truncated: true},
		&CodeStarted{PartID: partID(2), Language: "go", Filename: "a.go"}, &CodeDelta{PartID: partID(2), Delta: "func"},
		&CodeCompleted{PartID: partID(2), Code: "func", Truncated: true},
		&ReasoningStarted{PartID: partID(3)}, &ReasoningDelta{PartID: partID(3), Delta: "hm"},
		&ReasoningCompleted{PartID: partID(3), Text: "hm", Truncated: true},
	),
		Part{Type: PartText, PartID: partID(1), Text: "Hel", Truncated: true},
		Part{Type: PartCode, PartID: partID(2), Language: "go", Filename: "a.go", Code: "func", Truncated: true},
		Part{Type: PartReasoning, PartID: partID(3), Text: "hm", Truncated: true},
	)
}

func TestASupersededPartLeavesTheMessage(t *testing.T) {
	f := folded(
		&ReasoningStarted{PartID: partID(1)}, &ReasoningCompleted{PartID: partID(1), Text: "hm"},
		&AnswerStarted{PartID: partID(2)}, &AnswerDelta{PartID: partID(2), Delta: "cut"},
		&Notice{PartID: partID(3), Kind: "context_trimmed", Text: "older messages were left out"},
		&AnswerStarted{PartID: partID(4), Supersedes: []PartID{partID(1), partID(2), partID(9)}}, &AnswerDelta{PartID: partID(4), Delta: "anew"},
		&AnswerDelta{PartID: partID(2), Delta: "late"},
	)
	wantParts(t, f,
		Part{Type: PartNotice, PartID: partID(3), Kind: "context_trimmed", Text: "older messages were left out"},
		Part{Type: PartText, PartID: partID(4), Text: "anew", Open: true},
	)
	if f.Has(partID(2)) || f.Text(partID(2)) != "" || f.Len(partID(2)) != 0 || f.Count() != 2 {
		t.Error("a superseded part is still in the message")
	}
}

func TestAToolKeepsItsInputAndGetsItsOutput(t *testing.T) {
	id, failed := DeriveToolID(goldenTurn, 1), DeriveToolID(goldenTurn, 2)
	input, failure := json.RawMessage(`{"expression":"6*7"}`), &ToolError{Code: "tool_error", Detail: "The tool failed."}
	f := folded(
		&ToolStarted{PartID: partID(1), ToolID: id, ToolName: "calculate", Kind: "compute", Title: "Calculate", Input: input, State: ToolPending},
		&ToolStateChanged{PartID: partID(1), ToolID: id, State: ToolRunning},
	)
	part := Part{Type: PartTool, PartID: partID(1), ToolID: &id, ToolName: "calculate", Kind: "compute", Title: "Calculate", Input: input, State: ToolRunning, Open: true}
	wantParts(t, f, part)
	f.Apply(&ToolProgress{PartID: partID(1), ToolID: id, Label: "half way"})
	f.Apply(&ToolCompleted{PartID: partID(1), ToolID: id, State: ToolSucceeded, Output: "42", DurationMS: 3})
	f.Apply(&ToolCompleted{PartID: partID(8), ToolID: id, State: ToolFailed})
	f.Apply(&ToolStateChanged{PartID: partID(8), ToolID: id, State: ToolFailed})
	part.State, part.Output, part.DurationMS, part.Open = ToolSucceeded, "42", 3, false
	wantParts(t, f, part)
	f = folded(&ToolStarted{PartID: partID(2), ToolID: failed, State: ToolPending}, &ToolCompleted{PartID: partID(2), ToolID: failed, State: ToolFailed, Error: failure})
	wantParts(t, f, Part{Type: PartTool, PartID: partID(2), ToolID: &failed, State: ToolFailed, Error: failure})
}

func TestAToolShowsItsApproval(t *testing.T) {
	id, approval := DeriveToolID(goldenTurn, 1), ApprovalRequest{ApprovalID: DeriveApprovalID(goldenTurn, 1), Action: "Send"}
	f := folded(
		&ToolStarted{PartID: partID(1), ToolID: id, Input: json.RawMessage("{}"), State: ToolPending},
		&ToolStateChanged{PartID: partID(1), ToolID: id, State: ToolAwaitingApproval},
		&ApprovalRequested{PartID: partID(1), ToolID: id, Approval: approval}, &ApprovalRequested{PartID: partID(8), ToolID: id},
	)
	before := f.Parts()
	pending := Part{Type: PartTool, PartID: partID(1), ToolID: &id, Input: json.RawMessage("{}"), State: ToolAwaitingApproval, Approval: &PartApproval{ApprovalRequest: approval}, Open: true}
	wantParts(t, f, pending)
	f.Apply(&ApprovalResolved{PartID: partID(1), ToolID: id, Decision: ApproveWithEdits, By: DecidedByUser, Input: json.RawMessage(`{"a":1}`)})
	f.Apply(&ApprovalResolved{PartID: partID(8), ToolID: id})
	f.Apply(&ToolCompleted{PartID: partID(1), ToolID: id, State: ToolSucceeded, Outcome: ResultEmpty, Output: "x", Truncated: true})
	wantParts(t, f, Part{
		Type: PartTool, PartID: partID(1), ToolID: &id, Input: json.RawMessage(`{"a":1}`), State: ToolSucceeded, Output: "x", Outcome: ResultEmpty, Truncated: true,
		Approval: &PartApproval{ApprovalRequest: approval, Decision: ApproveWithEdits, By: DecidedByUser},
	})
	if before[0].Approval.Decision != "" {
		t.Error("a part that Parts had returned changed")
	}
}

func TestAnArtifactHasOnePartWithItsNewestVersion(t *testing.T) {
	first, second := NewArtifactID(), NewArtifactID()
	wantParts(t, folded(
		&ArtifactUpdated{PartID: partID(1), ArtifactID: first, Version: 1, Kind: ArtifactCode, Title: "Tides", Language: "go", CreatedBy: ByModel},
		&AnswerStarted{PartID: partID(2)}, &AnswerCompleted{PartID: partID(2), Text: "Here it is."},
		&ArtifactUpdated{PartID: partID(3), ArtifactID: second, Version: 4, Kind: ArtifactTable, Title: "Table", CreatedBy: ByModel},
		&ArtifactUpdated{PartID: partID(4), ArtifactID: first, Version: 3, Kind: ArtifactCode, Title: "High tides", Language: "go", CreatedBy: ByModel},
	),
		Part{Type: PartArtifact, PartID: partID(1), ArtifactID: &first, Version: 3, Kind: "code", Title: "High tides", Language: "go", CreatedBy: ByModel},
		Part{Type: PartText, PartID: partID(2), Text: "Here it is."},
		Part{Type: PartArtifact, PartID: partID(3), ArtifactID: &second, Version: 4, Kind: "table", Title: "Table", CreatedBy: ByModel},
	)
}

func TestAnAppliedInputBecomesANoticeAtItsPosition(t *testing.T) {
	steering := NewSteeringID()
	wantParts(t, folded(
		&AnswerStarted{PartID: partID(1)}, &SteeringAccepted{SteeringID: steering, Text: "use metres"},
		&AnswerCompleted{PartID: partID(1), Text: "3 feet", Truncated: true},
		&SteeringApplied{SteeringID: steering, PartID: partID(2), Text: "use metres", Step: 2},
		&AnswerStarted{PartID: partID(3)}, &AnswerCompleted{PartID: partID(3), Text: "1 metre"},
		&SteeringReturned{SteeringID: NewSteeringID(), Reason: "limit"},
	),
		Part{Type: PartText, PartID: partID(1), Text: "3 feet", Truncated: true},
		Part{Type: PartNotice, PartID: partID(2), Kind: "steering", Text: "use metres", SteeringID: &steering},
		Part{Type: PartText, PartID: partID(3), Text: "1 metre"},
	)
}

// drawEvents draws the events that a turn emits, and some that occur only in a damaged log.
func drawEvents(t *rapid.T) []Payload {
	var events []Payload
	var open []PartID
	for n := range rapid.IntRange(0, 40).Draw(t, "events") {
		id, some := partID(n+1), partID(rapid.IntRange(0, n+1).Draw(t, "part"))
		text := rapid.StringN(0, 8, -1).Draw(t, "text")
		var supersedes []PartID
		if len(open) > 0 && rapid.IntRange(0, 5).Draw(t, "cut") == 0 {
			supersedes, open = open, nil
		}
		cut := rapid.Bool().Draw(t, "truncated")
		switch rapid.IntRange(0, 11).Draw(t, "kind") {
		case 0:
			events, open = append(events, &AnswerStarted{PartID: id, Supersedes: supersedes}), append(open, id)
		case 1:
			events, open = append(events, &CodeStarted{PartID: id, Language: "go", Supersedes: supersedes}), append(open, id)
		case 2:
			events, open = append(events, &ReasoningStarted{PartID: id, Supersedes: supersedes}), append(open, id)
		case 3, 4, 5:
			events = append(events, &AnswerDelta{PartID: some, Delta: text})
		case 6:
			events = append(events, &CodeDelta{PartID: some, Delta: text})
		case 7:
			events = append(events, &AnswerCompleted{PartID: some, Text: text, Citations: []Citation{}, Truncated: cut})
		case 8:
			events = append(events, &CodeCompleted{PartID: some, Code: text, Truncated: cut})
		case 9:
			events = append(events, &ToolStarted{PartID: id, ToolID: DeriveToolID(goldenTurn, n), Input: json.RawMessage("{}"), State: ToolPending, Supersedes: supersedes})
		case 10:
			events = append(events, &ToolCompleted{PartID: some, ToolID: DeriveToolID(goldenTurn, n), State: ToolSucceeded, Output: text})
		case 11:
			events = append(events, &SteeringApplied{SteeringID: mustParse[steeringKind]("st_01h2xcejqtf2nbrexx3vqjhp46"), PartID: id, Text: text, Step: n + 1})
		}
	}
	return events
}

// drawTurn draws events that a turn can have, in an order that it can have.
func drawTurn(t *rapid.T) []Payload {
	var events []Payload
	open := map[PartID]PartType{}
	for n := range rapid.IntRange(1, 30).Draw(t, "events") {
		id, text, cut := partID(n+1), rapid.StringN(0, 8, -1).Draw(t, "text"), rapid.Bool().Draw(t, "cut")
		tool := DeriveToolID(goldenTurn, n)
		var ids []PartID
		for id := range open {
			ids = append(ids, id)
		}
		slices.SortFunc(ids, func(a, b PartID) int { return strings.Compare(a.String(), b.String()) })
		if len(ids) == 0 || rapid.Bool().Draw(t, "opens") {
			var supersedes []PartID
			if len(ids) > 0 && cut { // the parts of a step that failed
				supersedes = ids
				clear(open)
			}
			switch kind := rapid.SampledFrom([]PartType{PartText, PartCode, PartReasoning, PartTool, PartNotice, PartArtifact}).Draw(t, "type"); kind {
			case PartText:
				events, open[id] = append(events, &AnswerStarted{PartID: id, Supersedes: supersedes}), kind
			case PartCode:
				events, open[id] = append(events, &CodeStarted{PartID: id, Language: "go", Supersedes: supersedes}), kind
			case PartReasoning:
				events, open[id] = append(events, &ReasoningStarted{PartID: id, Supersedes: supersedes}), kind
			case PartTool:
				events, open[id] = append(events, &ToolStarted{
					PartID: id, ToolID: tool, ToolName: "demo", Kind: "compute", Title: "Demo", Input: json.RawMessage("{}"), State: ToolPending, Supersedes: supersedes,
				}), kind
			case PartNotice:
				events = append(events, &SteeringApplied{SteeringID: mustParse[steeringKind]("st_01h2xcejqtf2nbrexx3vqjhp46"), PartID: id, Text: text, Step: n + 1})
			case PartArtifact:
				events = append(events, &ArtifactUpdated{
					PartID: id, ArtifactID: mustParse[artifactKind]("art_01h2xcejqtf2nbrexx3vqjhp48"), Version: int64(n + 1), Kind: ArtifactDocument, Title: "Plan", CreatedBy: ByModel,
				})
			}
			continue
		}
		one := rapid.SampledFrom(ids).Draw(t, "part")
		ends := rapid.Bool().Draw(t, "ends")
		switch kind := open[one]; {
		case kind == PartText && ends:
			events = append(events, &AnswerCompleted{PartID: one, Text: text, Citations: []Citation{}, Truncated: cut})
		case kind == PartText:
			events = append(events, &AnswerDelta{PartID: one, Delta: text})
		case kind == PartCode && ends:
			events = append(events, &CodeCompleted{PartID: one, Code: text, Truncated: cut})
		case kind == PartCode:
			events = append(events, &CodeDelta{PartID: one, Delta: text})
		case kind == PartReasoning && ends:
			events = append(events, &ReasoningCompleted{PartID: one, Text: text, Truncated: cut})
		case kind == PartReasoning:
			events = append(events, &ReasoningDelta{PartID: one, Delta: text})
		case ends:
			events = append(events, &ToolCompleted{PartID: one, ToolID: tool, State: ToolSucceeded, Output: text, Truncated: cut, DurationMS: int64(n + 1)})
		default:
			events = append(events, &ToolStateChanged{PartID: one, ToolID: tool, State: ToolRunning})
		}
		if ends {
			delete(open, one)
		}
	}
	return events
}

// TestTheAppFoldsAsTheServiceDoes writes turns with the parts that their events fold to. fold.test.ts of the web app reads the
// file and folds them itself.
func TestTheAppFoldsAsTheServiceDoes(t *testing.T) {
	var all []byte
	turns := [][]Payload{slices.DeleteFunc(samples(), func(p Payload) bool { return p.EventType() == SnapshotSpec.Type })}
	for seed := range 20 {
		turns = append(turns, rapid.Custom(drawTurn).Example(seed))
	}
	for _, events := range turns {
		frames := []json.RawMessage{}
		for i, payload := range events {
			frames = append(frames, encode(t, nil, int64(i+1), payload))
		}
		line, err := json.Marshal(map[string]any{"events": frames, "parts": folded(events...).Parts()})
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, line...), '\n')
	}
	golden(t, "testdata/fold.golden", all)
}

func frameEvents(t *rapid.T, first int64, events []Payload) []byte {
	var frames []byte
	for i, payload := range events {
		frames = append(encode(t, frames, first+int64(i), payload), '\n')
	}
	return frames
}

// TestFoldingAPrefixAndThenTheRestIsFoldingTheWhole checks the property that lets a reader load a streaming message and
// continue after its covers_sequence, and that lets a takeover read the log in pages.
func TestFoldingAPrefixAndThenTheRestIsFoldingTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		whole := folded(events...).Parts()
		var f Fold
		last, err := f.FoldFrames(0, frameEvents(t, 1, events[:cut]))
		if err != nil || last != int64(cut) {
			t.Fatalf("the prefix ends at %d, %v; want %d", last, err, cut)
		}
		shown := f.Parts()
		before := clone(t, shown)
		if _, err := f.FoldFrames(last, frameEvents(t, 1, events)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, f.Parts()); diff != "" {
			t.Fatalf("cut at %d (-whole +in two):\n%s", cut, diff)
		}
		if diff := cmp.Diff(before, clone(t, shown)); diff != "" {
			t.Fatalf("parts that Parts had returned changed afterwards:\n%s", diff)
		}
	})
}

func clone(t *rapid.T, parts []Part) (copied []Part) {
	text, err := json.Marshal(parts)
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestTheSizeOfDeltasDoesNotMatter is needed because the deltas in the log grow with the load.
func TestTheSizeOfDeltasDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.String()).Draw(t, "pieces")
		one, many := folded(&AnswerStarted{PartID: partID(1)}), folded(&AnswerStarted{PartID: partID(1)})
		whole := ""
		for _, piece := range pieces {
			if many.Len(partID(1)) != len(whole) {
				t.Fatalf("the offset is %d after %d bytes", many.Len(partID(1)), len(whole))
			}
			whole += piece
			many.Apply(&AnswerDelta{PartID: partID(1), Delta: piece})
		}
		one.Apply(&AnswerDelta{PartID: partID(1), Delta: whole})
		if diff := cmp.Diff(one.Parts(), many.Parts()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestADamagedLogStopsTheFold(t *testing.T) {
	var f Fold
	frames := append(deltaLog(t, 2, false), "{broken\n"...)
	if last, err := f.FoldFrames(0, frames); err == nil || last != 2 {
		t.Errorf("folded up to %d, %v", last, err)
	}
	if last, err := f.FoldFrames(2, append(deltaLog(t, 2, false), deltaLog(t, 4, false)[len(deltaLog(t, 3, false)):]...)); err == nil || last != 2 {
		t.Errorf("folded over a gap up to %d, %v", last, err)
	}
}
