package protocol

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var goldenTask = mustParse[taskKind]("task_01h2xcejqtf2nbrexx3vqjhp48")

// researchSamples returns one event of every type of research tasks, with every field set.
func researchSamples() []Payload {
	artifact, message := DeriveReportID(goldenTask), mustParse[messageKind]("msg_01h2xcejqtf2nbrexx3vqjhp42")
	url, step := "https://tides.example/table", "revise-1"
	amounts := ResearchAmounts{Tokens: 400_000, Pages: 40, Seconds: 1200}
	return []Payload{
		&ResearchStarted{
			ConversationID: mustParse[conversationKind]("conv_01h2xcejqtf2nbrexx3vqjhp41"), Question: "Why do tides differ?", Depth: ResearchStandard,
			Sources: []ResearchSource{ResearchWeb, ResearchFiles}, Budget: amounts,
		},
		&ResearchStateChanged{State: ResearchRunning},
		&ResearchPhaseChanged{Phase: ResearchPlanning},
		&ResearchPlanned{Plan: []ResearchStep{{StepID: "q1", Question: "What causes tides?", State: ResearchStepOpen}}},
		&ResearchStepChanged{StepID: "q1", State: ResearchStepDone},
		&ResearchSourceChanged{SourceID: "s1", State: SourceFailed, Kind: ResearchWeb, Title: "Tide tables", URL: &url, Reason: "The server refused the page."},
		&ResearchProgressed{Progress: ResearchProgress{Done: 3, Total: 9, SourcesFound: 12, SourcesKept: 4, Reused: 1}, Spent: amounts},
		&ResearchSteered{SteeringID: mustParse[steeringKind]("st_01h2xcejqtf2nbrexx3vqjhp49"), Outcome: ResearchApplied, Kind: ResearchInput, Text: "Only Europe.", StepID: &step},
		&ResearchFinished{
			State: ResearchCompleted, Failure: &ResearchFailure{Code: ResearchModelFailed, Detail: "The model did not answer."}, ArtifactID: &artifact, MessageID: &message, LastSequence: 9,
		},
	}
}

func TestTheEventsOfAResearchTaskKeepTheirForm(t *testing.T) {
	events := researchSamples()
	for _, spec := range ResearchEvents {
		if !slices.ContainsFunc(events, func(p Payload) bool { return p.EventType() == spec.Type }) {
			t.Errorf("no sample of %s", spec.Type)
		}
	}
	frames, err := AppendResearchEvents(nil, goldenTask, 1, goldenTime, events)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/research_events.golden", frames)
	n := int64(0)
	for line := range FrameLines(frames) {
		n++
		sequence, kind, ok := FrameHead(line)
		envelope, payload, err := DecodeEvent(line)
		if err != nil || !ok || sequence != n || kind != string(envelope.Type) {
			t.Fatalf("%s: %v", line, err)
		}
		if want := events[n-1]; !reflect.DeepEqual(payload, want) {
			t.Error(cmp.Diff(want, payload))
		}
	}
	if !EndsResearch(frames) || EndsResearch(frames[:bytes.LastIndexByte(frames[:len(frames)-1], '\n')+1]) || EndsUpload(frames) {
		t.Error("the end of a task is not recognised")
	}
}
