package machine

import (
	"encoding/json"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestTheRouteAndTheStateOfTheProviderSurviveATakeover(t *testing.T) {
	m := runningMachine(t)
	routing := m.spec.Routing
	routing.ModelID, routing.Route = "two", 2
	m.RouteChanged(1, routing)
	m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "p1", Name: "look", Input: json.RawMessage(`{}`)}})
	m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkOpaque, Opaque: json.RawMessage(`{"signed":true}`), Owner: "family"})
	m.ModelStopped(1, llm.StopToolCalls)
	d := m.take()
	frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, m.spec.CreatedAt, d.Events)
	if err != nil {
		t.Fatal(err)
	}
	adopted, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: d.Records}, machineTools, false)
	if err != nil {
		t.Fatal(err)
	}
	input := adopted.CallInput()
	if input.Route != 2 || !input.Answering || adopted.Routing().ModelID != "two" {
		t.Errorf("route %d, answering %t, model %s", input.Route, input.Answering, adopted.Routing().ModelID)
	}
	if own := input.OwnMessages(); len(own) != 2 || string(own[0].Opaque) != `{"signed":true}` || own[0].OpaqueOwner != "family" {
		t.Errorf("%+v", own)
	}
}
