package work

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/metering"
	"turnstone/actors/research/worktest"
	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
	"turnstone/providers/model/scripted"
)

// onePage is a place with one source.
type onePage struct{}

func (onePage) Search(context.Context, *researchlog.Spec, *researchlog.Step) ([]researchlog.Candidate, error) {
	return []researchlog.Candidate{{Title: "Tides", URL: "https://tides.example/web"}}, nil
}

func (onePage) Read(_ context.Context, _ *researchlog.Spec, found *researchlog.Candidate) (*Document, error) {
	return &Document{Title: "Tides", URL: found.URL, Text: worktest.Page}, nil
}

func TestAStepHasTheResultOfItsKind(t *testing.T) {
	worktest.RunWorker(t, &Worker{
		Places: map[protocol.ResearchSource]Place{protocol.ResearchWeb: onePage{}}, Model: &metering.Model{Model: scripted.New(scripted.Options{})},
		Route: routing.Route{Model: "scripted", MaxOutputTokens: 8000}, Log: zap.NewNop(),
	})
}
