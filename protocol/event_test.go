package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func parseID[K kind](text string) (id ID[K], err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

func mustParse[K kind](text string) ID[K] {
	id, err := parseID[K](text)
	if err != nil {
		panic(text + ": " + err.Error())
	}
	return id
}

func pointerTo[T any](value T) *T { return &value }

var (
	goldenTurn = mustParse[turnKind]("turn_01h2xcejqtf2nbrexx3vqjhp41")
	goldenTime = time.Date(2026, 3, 1, 12, 30, 15, 250*int(time.Millisecond), time.UTC)
)

// samples returns one event of every type, with every field set, so that the golden file shows every field. Some
// samples combine fields that exclude each other on the wire, for example the output and the error of a tool.
func samples() []Payload {
	var (
		conversation = mustParse[conversationKind]("conv_01h2xcejqtf2nbrexx3vqjhp42")
		branch       = mustParse[branchKind]("br_01h2xcejqtf2nbrexx3vqjhp43")
		question     = mustParse[messageKind]("msg_01h2xcejqtf2nbrexx3vqjhp44")
		answer       = mustParse[messageKind]("msg_01h2xcejqtf2nbrexx3vqjhp45")
		before       = mustParse[messageKind]("msg_01h2xcejqtf2nbrexx3vqjhp40")
		steering     = mustParse[steeringKind]("st_01h2xcejqtf2nbrexx3vqjhp46")
		followUp     = DeriveFollowUpID(goldenTurn, 1)
		part, cut    = DerivePartID(goldenTurn, 2), []PartID{DerivePartID(goldenTurn, 1)}
		tool         = DeriveToolID(goldenTurn, 1)
		artifact     = DeriveArtifactID(tool)
		usage        = Usage{InputTokens: 120, OutputTokens: 40, ReasoningTokens: 7, CachedInputTokens: 64, Estimated: true}
		failure      = &TurnError{Code: "model_unavailable", Detail: "The model could not be reached.", Retryable: true}
		progress     = &Progress{Done: 1, Total: 3}
		source       = FileID(part)
		citations    = []Citation{{
			Index: 1, Title: "A source", URL: "https://example.org/", Marker: "[1:2]", FileID: &source, Kind: BlockPage, Page: 2, Offset: 40, Length: 20,
		}}
		sources = []Source{{Number: 200, FileID: source, URL: "https://example.org/", Title: "pilot.pdf", Size: 60, Blocks: []TextBlock{{Kind: BlockPage, Page: 2, Title: "Two", Offset: 40, Length: 20}}}}
		asked   = ApprovalRequest{
			ApprovalID: DeriveApprovalID(goldenTurn, 1), Action: "Send a message", Summary: "Sends a message to 3 people.", Risk: RiskHigh, Reversibility: Irreversible,
			Effects: []string{"3 people get a message."}, Scope: ApprovalScope{Resource: "example.org"}, Reasons: []string{"It sends data out of the service."}, Marked: []string{"pilot"},
			Input: json.RawMessage(`{"text":"pilot"}`), InputDigest: "sha256:00", Options: []Decision{ApproveOnce, RejectCall}, ExpiresAt: goldenTime,
		}
	)
	return []Payload{
		&TurnStarted{ConversationID: conversation, BranchID: branch, UserMessageID: question, AssistantMessageID: answer, ParentMessageID: &before, AcceptingSteering: true},
		&TurnStateChanged{State: TurnRunning, AcceptingSteering: true},
		&TurnRouting{
			Profile: ProfileBalanced, ModelID: "demo", ModelRole: "answer",
			Intelligence: Intelligence{Requested: ProfileAuto, Resolved: ProfileBalanced}, LatencyProfile: "interactive", ReasoningProfile: "standard",
			Completion: Completion{MaxOutputTokens: 8192, MaxToolRounds: 10, DeadlineSeconds: 900}, Reason: "Nothing in the message asks for a specialised profile.",
		},
		&ActivityProgress{PartID: part, Activity: "running_tools", Label: "Calculating", Progress: progress},
		&AnswerStarted{PartID: part, Index: 1, Format: "markdown", Supersedes: cut},
		&AnswerDelta{PartID: part, Offset: 6, Delta: "wörld \"\\<&>\u2028\n", Obfuscation: "xx"},
		&AnswerCompleted{PartID: part, Text: "Hello wörld", Citations: citations, Truncated: true},
		&CodeStarted{PartID: part, Index: 1, Language: "go", Filename: "main.go", ArtifactID: "art_1", Supersedes: cut},
		&CodeDelta{PartID: part, Offset: 13, Delta: "func main() {}\n"},
		&CodeCompleted{PartID: part, Code: "package main\nfunc main() {}\n", Truncated: true},
		&ReasoningStarted{PartID: part, Index: 1, Supersedes: cut},
		&ReasoningDelta{PartID: part, Offset: 5, Delta: "about it"},
		&ReasoningCompleted{PartID: part, Text: "Think about it", Truncated: true},
		&ToolStarted{PartID: part, ToolID: tool, Index: 1, ToolName: "calculate", Kind: "compute", Title: "Calculate", Input: json.RawMessage(`{"expression":"6*7"}`), State: ToolPending, Supersedes: cut},
		&ToolProgress{PartID: part, ToolID: tool, Label: "Half way", Progress: progress},
		&ToolStateChanged{PartID: part, ToolID: tool, From: ToolPending, State: ToolRunning},
		&ToolCompleted{PartID: part, ToolID: tool, State: ToolSucceeded, Outcome: ResultOK, Output: "42", Bytes: 70_000, Truncated: true, Repeated: true, ResultID: "r1", Sources: sources, Error: &ToolError{Code: "tool_error", Detail: "The tool failed."}, DurationMS: 12},
		&ApprovalRequested{PartID: part, ToolID: tool, Approval: asked},
		&ApprovalResolved{PartID: part, ToolID: tool, ApprovalID: asked.ApprovalID, Decision: ApproveWithEdits, By: DecidedByUser, Input: json.RawMessage(`{"text":"none"}`), Reason: "Not today."},
		&SteeringAccepted{SteeringID: steering, ClientSteeringID: "tab-1:7", Text: "use metres", Delivery: DeliverNextStep},
		&SteeringApplied{SteeringID: steering, PartID: part, Index: 2, Text: "use metres", Step: 2},
		&SteeringReturned{SteeringID: steering, Reason: "cancelled", FollowUpID: &followUp},
		&ArtifactUpdated{PartID: part, ArtifactID: artifact, Version: 2, Kind: ArtifactCode, Title: "Tides", Language: "go", CreatedBy: ByModel},
		&Notice{PartID: part, Index: 1, Kind: "context_trimmed", Text: "Its oldest messages were left out of this answer."},
		&TurnCancelRequested{By: CancelledByUser, Scope: CancelTurn, SeenSequence: pointerTo[int64](41)},
		&TurnRecoveringEvent{Attempt: 1, Cause: "restart"},
		&TurnFinished{Status: TurnIncomplete, StopReason: StopError, MessageID: answer, LastSequence: 25, Usage: usage, Error: failure},
		&TurnSnapshot{CoversSequence: 24, Message: Message{
			MessageID: answer, ConversationID: conversation, BranchID: branch, ParentMessageID: &question, SiblingIndex: 1, SiblingCount: 2, PreviousSibling: &Sibling{before, branch}, NextSibling: &Sibling{question, branch},
			Role: RoleAssistant, Status: MessageStreaming, Attachments: []FileID{mustParse[fileKind]("file_01h2xcejqtf2nbrexx3vqjhp47")},
			TurnID: &goldenTurn, Profile: pointerTo(ProfileBalanced), ModelID: pointerTo("demo"), Usage: &usage,
			Routing:  &MessageRouting{Requested: ProfileAuto, Resolved: ProfileBalanced, Reason: "Nothing in the message asks for a specialised profile."},
			Feedback: &Feedback{Rating: "up", Reasons: []FeedbackReason{ReasonAccurate}, Comment: "Thanks"}, CoversSequence: 24, CreatedAt: goldenTime,
			Parts: []Part{{
				Type: PartTool, PartID: part, Text: "text", Citations: citations,
				Language: "go", Filename: "main.go", Code: "package main\n", Truncated: true, ToolID: &tool, ToolName: "calculate", Kind: "compute",
				Title: "Calculate", Input: json.RawMessage(`{"expression":"6*7"}`), State: ToolRunning, Output: "42", Sources: sources,
				Error: &ToolError{Code: "tool_error", Detail: "The tool failed."}, DurationMS: 12, SteeringID: &steering, ArtifactID: &artifact, Version: 2, CreatedBy: ByModel, Open: true,
				Outcome: ResultOK, Repeated: true, Approval: &PartApproval{ApprovalRequest: asked, Decision: RejectCall, By: DecidedByUser, Reason: "Not today."},
			}},
		}},
	}
}

// registered returns every event type that a reader can receive, in the order of the registry.
func registered() []EventSpec { return append(append([]EventSpec{}, Events...), SnapshotSpec) }

func TestTheSamplesAreOneOfEveryTypeWithEveryFieldSet(t *testing.T) {
	all := samples()
	if len(all) != len(registered()) {
		t.Fatalf("there are %d samples of %d types", len(all), len(registered()))
	}
	for i, spec := range registered() {
		if got := all[i].EventType(); got != spec.Type {
			t.Errorf("sample %d is %s, the registry has %s", i, got, spec.Type)
		}
		requireFields(t, string(spec.Type), reflect.ValueOf(all[i]).Elem())
	}
}

// requireFields fails the test for every field that is not set.
func requireFields(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		requireFields(t, path, v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				requireFields(t, path+"[]", v.Index(i))
			}
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			zero := v.Field(i).IsZero()
			if zero && v.Field(i).Kind() != reflect.Int { // a count or an index of 0 is encoded
				t.Errorf("%s is not set", name)
			}
			if !zero {
				requireFields(t, name, v.Field(i))
			}
		}
	}
}

func TestTheRegistryNamesEveryTypeOnceAndItsPayloadAgrees(t *testing.T) {
	seen := map[EventType]bool{}
	for _, spec := range registered() {
		if seen[spec.Type] {
			t.Errorf("%s is registered twice", spec.Type)
		}
		seen[spec.Type] = true
		if got := spec.New().EventType(); got != spec.Type {
			t.Errorf("the payload of %s has the type %s", spec.Type, got)
		}
		if spec.Doc == "" {
			t.Errorf("%s has no description", spec.Type)
		}
	}
}

// TestTheWireFormatIsUnchanged makes every change of the wire format visible as a change of one golden file.
func TestTheWireFormatIsUnchanged(t *testing.T) {
	var frames []byte
	for i, payload := range samples() {
		frames = append(encode(t, frames, int64(i+1), payload), '\n')
	}
	golden(t, "testdata/events.golden", frames)
}

func encode(t interface{ Fatal(...any) }, b []byte, sequence int64, payload Payload) []byte {
	b, err := AppendEvent(b, goldenTurn, sequence, goldenTime, payload)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryEventRoundTripsUnchanged(t *testing.T) {
	for _, payload := range samples() {
		for _, p := range []Payload{payload, NewPayload(payload.EventType())} {
			fillIdentifiers(reflect.ValueOf(p).Elem())
			frame := encode(t, nil, 7, p)
			envelope, got, err := DecodeEvent(frame)
			if err != nil {
				t.Errorf("%v: %s", err, frame)
				continue
			}
			want := Envelope{ProtocolVersion: 1, TurnID: goldenTurn, Sequence: 7, Type: p.EventType(), At: goldenTime}
			if envelope != want {
				t.Errorf("the envelope of %s is %+v", p.EventType(), envelope)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("%s (-sent +read):\n%s", p.EventType(), diff)
			}
			if again := encode(t, nil, 7, got); !bytes.Equal(again, frame) {
				t.Errorf("%s is encoded again as\n%s\nwant\n%s", p.EventType(), again, frame)
			}
			if !json.Valid(frame) || bytes.ContainsRune(frame, '\n') {
				t.Errorf("%s is not a JSON object on one line: %s", p.EventType(), frame)
			}
		}
	}
}

// fillIdentifiers sets the required fields of an empty payload: a zero identifier is never sent, and a tool's input is
// never null.
func fillIdentifiers(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Field(i)
		switch {
		case field.Kind() == reflect.Array && field.IsZero():
			field.Set(reflect.ValueOf([16]byte(goldenTurn)).Convert(field.Type()))
		case field.Type() == reflect.TypeFor[json.RawMessage]() && field.IsZero() && (v.Type() == reflect.TypeFor[ToolStarted]() || v.Type() == reflect.TypeFor[ApprovalRequest]()):
			field.SetBytes([]byte("{}"))
		case field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[time.Time]():
			fillIdentifiers(field)
		}
	}
}

func TestDecodingAnUnknownTypeIsNotAnError(t *testing.T) {
	frame := []byte(`{"protocol_version":1,"turn_id":"turn_01h2xcejqtf2nbrexx3vqjhp41","sequence":3,"type":"answer.sung","at":"2026-03-01T12:30:15.250Z","key":"C"}`)
	envelope, payload, err := DecodeEvent(frame)
	if err != nil || payload != nil || envelope.Sequence != 3 || envelope.Type != "answer.sung" {
		t.Errorf("decoded as %+v, %v, %v", envelope, payload, err)
	}
}

func TestAFieldThatIsNotKnownIsIgnored(t *testing.T) {
	frame := bytes.Replace(encode(t, nil, 1, &TurnStateChanged{State: TurnRunning}), []byte(`"state"`), []byte(`"mood":{"a":[1]},"state"`), 1)
	if _, payload, err := DecodeEvent(frame); err != nil || payload.(*TurnStateChanged).State != TurnRunning {
		t.Errorf("decoded as %+v, %v", payload, err)
	}
}

func TestInvalidFramesAreRejected(t *testing.T) {
	for _, frame := range []string{
		``, `null x`, `[]`, `"turn.started"`, `{"type":7}`, `{"turn_id":"conv_01h2xcejqtf2nbrexx3vqjhp41","type":"notice"}`,
		`{"turn_id":"turn_01h2xcejqtf2nbrexx3vqjhp41","type":"answer.delta","part_id":"part_x"}`,
		`{"turn_id":"turn_01h2xcejqtf2nbrexx3vqjhp41","type":"answer.delta","offset":"1"}`, `{"at":"yesterday"}`,
	} {
		if _, _, err := DecodeEvent([]byte(frame)); err == nil {
			t.Errorf("%s was decoded as an event", frame)
		}
	}
}

// TestDeltaTextIsEncodedLikeEncodingJSON checks that the encoder of deltas writes the same bytes as encoding/json.
func TestDeltaTextIsEncodedLikeEncodingJSON(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		want, err := marshal(text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if got := appendJSONString(nil, text); !bytes.Equal(got, want) {
			t.Fatalf("%q is written as %s, encoding/json writes %s", text, got, want)
		}
	}
	for r := range rune(0x3000) {
		check(t, string(r))
	}
	for b := range 256 { // alone and inside text
		check(t, string([]byte{byte(b)}))
		check(t, string([]byte{'a', byte(b), 'b'}))
	}
	for _, text := range []string{"\u2028\u2029", "\ufffd", "\xed\xa0\x80", "\xf4\x90\x80\x80", "👩‍👩‍👧", "<a href='x'>&"} {
		check(t, text)
	}
	anyBytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.String(), anyBytes).Draw(t, "text"))
	})
}

// TestADeltaCutInsideACharacterIsValidUTF8 checks deltas that end inside a character: the bytes of the log are still
// valid UTF-8.
func TestADeltaCutInsideACharacterIsValidUTF8(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		for _, piece := range []string{text[:cut], text[cut:]} {
			frame := encode(t, nil, 1, &AnswerDelta{PartID: DerivePartID(goldenTurn, 1), Delta: piece})
			_, payload, err := DecodeEvent(frame)
			if err != nil || !utf8.Valid(frame) {
				t.Fatalf("%v: %q", err, frame)
			}
			if got := payload.(*AnswerDelta).Delta; got != strings.ToValidUTF8(piece, "\ufffd") && utf8.ValidString(piece) {
				t.Fatalf("%q came back as %q", piece, got)
			}
		}
	})
}

func TestTimesAreUTCInMilliseconds(t *testing.T) {
	at := time.Date(2026, 3, 1, 1, 2, 3, 4_999_999, time.FixedZone("", 2*60*60))
	frame, err := AppendEvent(nil, goldenTurn, 1, at, &Notice{})
	if err != nil || !bytes.Contains(frame, []byte(`"at":"2026-02-28T23:02:03.004Z"`)) {
		t.Errorf("the time of the event is not UTC in milliseconds: %s, %v", frame, err)
	}
	snapshot := &TurnSnapshot{Message: Message{CreatedAt: time.Date(2026, 3, 1, 1, 2, 3, 0, time.FixedZone("", 2*60*60))}}
	if frame = encode(t, nil, 1, snapshot); !bytes.Contains(frame, []byte(`"created_at":"2026-02-28T23:02:03.000Z"`)) {
		t.Errorf("the time of the message in a snapshot is not UTC in milliseconds: %s", frame)
	}
}

// FuzzDecodeEvent checks that no input makes DecodeEvent panic, and that an event that AppendEvent encoded keeps its
// bytes when it is decoded and encoded again.
func FuzzDecodeEvent(f *testing.F) {
	for i, payload := range samples() {
		f.Add(encode(f, nil, int64(i+1), payload))
	}
	f.Add([]byte(`{"type":"tool.started","input": {"a" : [1, 2e400, "\ud800"]} }`))
	f.Add([]byte(`{"TYPE":"notice","at":"0000-01-01T00:00:00+23:59"}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		_, payload, err := DecodeEvent(frame)
		if err != nil || payload == nil {
			return
		}
		first := encode(t, nil, 1, payload)
		if bytes.ContainsRune(first, '\n') {
			t.Fatalf("more than one line: %s", first)
		}
		if sequence, kind, ok := FrameHead(first); !ok || sequence != 1 || EventType(kind) != payload.EventType() {
			t.Fatalf("the head is read as %d, %s, %v: %s", sequence, kind, ok, first)
		}
		if bytes.Contains(first, []byte(`_00000000000000000000000000`)) {
			return // an identifier is missing: AppendEvent never gets such an event, and DecodeEvent rejects it
		}
		_, again, err := DecodeEvent(first)
		if err != nil {
			t.Fatalf("%v: %s", err, first)
		}
		if second := encode(t, nil, 1, again); !bytes.Equal(first, second) {
			t.Fatalf("\n%s\nbecame\n%s", first, second)
		}
	})
}
