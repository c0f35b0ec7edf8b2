package machine

import (
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol"
)

func TestTheUsageOfACallThatDidNotEndIsEstimated(t *testing.T) {
	answer := strings.Repeat("word ", 80) // 400 bytes
	begin := func() *driver {
		m := newDriver(machineSpec(), machineTools, false)
		m.Begin()
		m.Proceed()
		m.RequestBuilt(50, nil, nil)
		m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 40, OutputTokens: 1}}) // as in the first chunk of Anthropic
		m.ModelText(1, answer)
		return m
	}
	estimated := protocol.Usage{InputTokens: 40, OutputTokens: 100, Estimated: true}
	cut := &llm.Error{Code: "model_unavailable", Cut: true}
	for name, c := range map[string]struct {
		end  func(m *driver)
		want protocol.Usage
	}{
		"ended": {func(m *driver) {
			m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 40, OutputTokens: 90}})
			m.ModelStopped(1, llm.StopEndTurn)
		}, protocol.Usage{InputTokens: 40, OutputTokens: 90}},
		"timed out": {func(m *driver) { m.Deadline() }, estimated},
		"failed":    {func(m *driver) { m.ModelFailed(1, &llm.Error{Code: "model_protocol", Cut: true}) }, estimated},
		"cut and called again": {func(m *driver) {
			m.ModelFailed(1, cut)
			m.RequestBuilt(60, nil, nil)
			m.ModelText(2, "short")
			m.ModelChunk(2, &llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 60, OutputTokens: 7}})
			m.ModelStopped(2, llm.StopEndTurn)
		}, protocol.Usage{InputTokens: 100, OutputTokens: 107, Estimated: true}},
		"cut twice": {func(m *driver) {
			m.ModelFailed(1, cut)
			m.RequestBuilt(60, nil, nil)
			m.ModelFailed(2, cut)
		}, protocol.Usage{InputTokens: 100, OutputTokens: 100, Estimated: true}},
		"taken over": {func(m *driver) {
			m.take()
			m.usage, m.calling = llm.UsageCounter{}, false
			m.Adopt("restart")
			m.RequestBuilt(60, nil, nil)
			m.ModelChunk(2, &llm.Chunk{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 60, OutputTokens: 7}})
			m.ModelStopped(2, llm.StopEndTurn)
		}, protocol.Usage{InputTokens: 120, OutputTokens: 107, Estimated: true}},
	} {
		m := begin()
		c.end(m)
		end := m.take().End
		if end == nil || end.Usage != c.want {
			t.Errorf("%s: %+v, want usage %+v", name, end, c.want)
		}
	}
}

func TestATurnEndsAsBudgetReached(t *testing.T) {
	for name, end := range map[string]func(m *driver){
		"before the call": func(m *driver) { m.ModelFailed(1, &llm.Error{Code: llm.CodeBudgetReached}) },
		"during the call": func(m *driver) {
			m.ModelText(1, "half an ans")
			m.ModelStopped(1, llm.StopBudget)
		},
	} {
		m := newDriver(machineSpec(), machineTools, false)
		m.Begin()
		m.Proceed()
		end(m)
		if end := m.take().End; end == nil || end.State != protocol.TurnIncomplete || end.Reason != protocol.StopBudgetReached || end.Err != nil {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
