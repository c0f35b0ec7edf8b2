package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"turnstone/protocol"
)

func TestTheUsageOfACallThatDidNotEndIsEstimated(t *testing.T) {
	answer := strings.Repeat("word ", 80) // 400 bytes
	begin := func() *turnMachine {
		m := newTurnMachine(machineSpec(), machineTools, false)
		m.begin()
		m.proceed()
		m.asked(50)
		m.modelNotes(1, &ModelChunk{Kind: ChunkUsage, Usage: ModelUsage{InputTokens: 40, OutputTokens: 1}}) // as Anthropic begins
		m.modelText(1, answer)
		return m
	}
	estimated := protocol.Usage{InputTokens: 40, OutputTokens: 100, Estimated: true}
	cut := &ModelError{Code: "model_unavailable", Cut: true}
	for name, c := range map[string]struct {
		end  func(m *turnMachine)
		want protocol.Usage
	}{
		"ended": {func(m *turnMachine) {
			m.modelNotes(1, &ModelChunk{Kind: ChunkUsage, Usage: ModelUsage{InputTokens: 40, OutputTokens: 90}})
			m.modelStopped(1, StopEndTurn)
		}, protocol.Usage{InputTokens: 40, OutputTokens: 90}},
		"timed out": {func(m *turnMachine) { m.deadline() }, estimated},
		"failed":    {func(m *turnMachine) { m.modelFailed(1, &ModelError{Code: "model_protocol", Cut: true}) }, estimated},
		"cut and asked again": {func(m *turnMachine) {
			m.modelFailed(1, cut)
			m.asked(60)
			m.modelText(2, "short")
			m.modelNotes(2, &ModelChunk{Kind: ChunkUsage, Usage: ModelUsage{InputTokens: 60, OutputTokens: 7}})
			m.modelStopped(2, StopEndTurn)
		}, protocol.Usage{InputTokens: 100, OutputTokens: 107, Estimated: true}},
		"cut twice": {func(m *turnMachine) {
			m.modelFailed(1, cut)
			m.asked(60)
			m.modelFailed(2, cut)
		}, protocol.Usage{InputTokens: 100, OutputTokens: 100, Estimated: true}},
		"taken over": {func(m *turnMachine) {
			m.d = &decision{}
			m.stepUsage = stepUsage{}
			m.adopt("restart")
			m.asked(60)
			m.modelNotes(2, &ModelChunk{Kind: ChunkUsage, Usage: ModelUsage{InputTokens: 60, OutputTokens: 7}})
			m.modelStopped(2, StopEndTurn)
		}, protocol.Usage{InputTokens: 120, OutputTokens: 107, Estimated: true}},
	} {
		m := begin()
		c.end(m)
		end := m.take().ending
		if end == nil || end.usage != c.want {
			t.Errorf("%s: %+v, want usage %+v", name, end, c.want)
		}
	}
}

// allowance is a budget in memory.
type allowance struct {
	left     int
	outages  int // calls of Reserve that find the store away
	reserved protocol.UsageID
	settled  []int
}

func (a *allowance) Check(context.Context, protocol.AccountID) error { return nil }

func (a *allowance) Reserve(_ context.Context, _ protocol.AccountID, reservation protocol.UsageID, least, most int) (int, error) {
	if a.outages > 0 {
		a.outages--
		return 0, protocol.Errorf(protocol.CodeUnavailable, "the store is away")
	}
	a.reserved = reservation
	if a.left < least {
		return 0, protocol.Errorf(protocol.CodeBudgetReached, "nothing left")
	}
	return min(a.left, most), nil
}

func (a *allowance) Settle(_ context.Context, _ protocol.AccountID, reservation protocol.UsageID, used int) error {
	if reservation != a.reserved {
		return protocol.Errorf(protocol.CodeNotFound, "this was never reserved")
	}
	a.settled = append(a.settled, used)
	return nil
}

func TestACallStaysWithinWhatWasReserved(t *testing.T) {
	request := ModelRequest{MaxOutputTokens: 1000, Messages: []ModelMessage{{Role: "user", Text: strings.Repeat("x", 400)}}}
	ask := func(a *allowance, model Model) (stop ModelStop, err error) {
		metered := &MeteredModel{Model: model, Budget: a, Log: zap.NewNop()}
		_, err = metered.Stream(t.Context(), protocol.NewAccountID(), request, func(chunk ModelChunk) error {
			stop = chunk.Stop
			return nil
		})
		return stop, err
	}
	long := &script{play: func(_ context.Context, _ int, r ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: strings.Repeat("y", 4*r.MaxOutputTokens)}); err != nil {
			return err
		}
		return emit(ModelChunk{Kind: ChunkStop, Stop: StopMaxTokens})
	}}
	plenty := &allowance{left: 5000}
	if stop, err := ask(plenty, long); err != nil || stop != StopMaxTokens || plenty.settled[0] != 1100 {
		t.Errorf("with plenty: %v, %v, settled %v", stop, err, plenty.settled)
	}
	interrupted := &allowance{left: 5000, outages: 1}
	if _, err := ask(interrupted, long); err != nil || !slices.Equal(interrupted.settled, []int{1100}) {
		t.Errorf("after an outage: %v, settled %v", err, interrupted.settled)
	}
	little := &allowance{left: 500}
	if stop, err := ask(little, long); err != nil || stop != stopBudget || little.settled[0] != 500 {
		t.Errorf("with little: %v, %v, settled %v", stop, err, little.settled)
	}
	var failed *ModelError
	none := &allowance{left: 300}
	if _, err := ask(none, long); !errors.As(err, &failed) || failed.Code != codeBudgetReached || len(none.settled) != 0 {
		t.Errorf("with next to nothing: %v, settled %v", err, none.settled)
	}
	refusing := &script{play: func(context.Context, int, ModelRequest, func(ModelChunk) error) error {
		return &ModelError{Code: "model_unavailable"}
	}}
	unused := &allowance{left: 5000}
	if _, err := ask(unused, refusing); err == nil || unused.settled[0] != 0 {
		t.Errorf("a call that reached no model: %v, settled %v", err, unused.settled)
	}
}

func TestATurnEndsAsBudgetReached(t *testing.T) {
	for name, end := range map[string]func(m *turnMachine){
		"before the call": func(m *turnMachine) { m.modelFailed(1, &ModelError{Code: codeBudgetReached}) },
		"within it": func(m *turnMachine) {
			m.modelText(1, "half an ans")
			m.modelStopped(1, stopBudget)
		},
	} {
		m := newTurnMachine(machineSpec(), machineTools, false)
		m.begin()
		m.proceed()
		end(m)
		if end := m.take().ending; end == nil || end.state != protocol.TurnIncomplete || end.reason != protocol.StopBudgetReached || end.err != nil {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
