package metering

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/protocol"
)

// allowance is a Budget in memory.
type allowance struct {
	left     int
	outages  int // the number of calls of Reserve that fail before one succeeds
	reserved protocol.UsageID
	settled  []int
}

func (a *allowance) Check(context.Context, protocol.AccountID) error { return nil }

func (a *allowance) Reserve(_ context.Context, _ protocol.AccountID, reservation protocol.UsageID, least, most int) (int, error) {
	if a.outages > 0 {
		a.outages--
		return 0, protocol.Errorf(protocol.CodeUnavailable, "the store is unavailable")
	}
	a.reserved = reservation
	if a.left < least {
		return 0, protocol.Errorf(protocol.CodeBudgetReached, "the budget is used up")
	}
	return min(a.left, most), nil
}

func (a *allowance) Settle(_ context.Context, _ protocol.AccountID, reservation protocol.UsageID, used int) error {
	if reservation != a.reserved {
		return protocol.Errorf(protocol.CodeNotFound, "there is no such reservation")
	}
	a.settled = append(a.settled, used)
	return nil
}

func TestACallStaysWithinItsReservation(t *testing.T) {
	request := llm.Request{MaxOutputTokens: 1000, Messages: []llm.Message{{Role: "user", Text: strings.Repeat("x", 400)}}}
	ask := func(a *allowance, model llm.Model) (stop llm.Stop, err error) {
		metered := &Model{Model: model, Budget: a, Log: zap.NewNop()}
		_, err = metered.Stream(t.Context(), protocol.NewAccountID(), request, func(chunk llm.Chunk) error {
			stop = chunk.Stop
			return nil
		})
		return stop, err
	}
	long := play(func(r llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: strings.Repeat("y", 4*r.MaxOutputTokens)}); err != nil {
			return err
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopMaxTokens})
	})
	plenty := &allowance{left: 5000}
	if stop, err := ask(plenty, long); err != nil || stop != llm.StopMaxTokens || plenty.settled[0] != 1100 {
		t.Errorf("with enough budget: %v, %v, settled %v", stop, err, plenty.settled)
	}
	interrupted := &allowance{left: 5000, outages: 1}
	if _, err := ask(interrupted, long); err != nil || !slices.Equal(interrupted.settled, []int{1100}) {
		t.Errorf("after an outage: %v, settled %v", err, interrupted.settled)
	}
	little := &allowance{left: 500}
	if stop, err := ask(little, long); err != nil || stop != llm.StopBudget || little.settled[0] != 500 {
		t.Errorf("with budget for part of the answer: %v, %v, settled %v", stop, err, little.settled)
	}
	var failed *llm.Error
	none := &allowance{left: 300}
	if _, err := ask(none, long); !errors.As(err, &failed) || failed.Code != llm.CodeBudgetReached || len(none.settled) != 0 {
		t.Errorf("with too little budget for a call: %v, settled %v", err, none.settled)
	}
	refusing := play(func(llm.Request, func(llm.Chunk) error) error {
		return &llm.Error{Code: "model_unavailable"}
	})
	unused := &allowance{left: 5000}
	if _, err := ask(unused, refusing); err == nil || unused.settled[0] != 0 {
		t.Errorf("a call that reached no model: %v, settled %v", err, unused.settled)
	}
}

func play(call func(llm.Request, func(llm.Chunk) error) error) *llmtest.Script {
	return &llmtest.Script{Play: func(_ context.Context, _ int, request llm.Request, emit func(llm.Chunk) error) error {
		return call(request, emit)
	}}
}
