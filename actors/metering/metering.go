// Package metering counts the tokens of every model call, and limits those of an account in a day. Turns, titles and
// research tasks call models only through it.
package metering

import (
	"context"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/retry"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// minAnswerTokens is the number of output tokens that the budget must still allow for a call to be made.
const minAnswerTokens = 256

var settleTimeout = timelimit.Of(2 * time.Second)

// Budget limits the model tokens that an account may use in a day. Package persistence implements it.
type Budget interface {
	// Check returns protocol.CodeBudgetReached when nothing is left.
	Check(ctx context.Context, account protocol.AccountID) error
	// Reserve reserves tokens for a model call: most, or all that are left if these are at least least. Otherwise it
	// returns protocol.CodeBudgetReached.
	Reserve(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, least, most int) (granted int, err error)
	// Settle replaces a reservation with the number of tokens that the call used. A reservation that is never settled
	// expires.
	Settle(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, used int) error
}

// Model calls a model, counts the tokens of each call, and enforces the budget if there is one.
type Model struct {
	Model  llm.Model
	Budget Budget // nil: no limit
	Log    *zap.Logger
}

// Stream is Model.Stream for an account. It reserves the tokens that the call may use, limits the answer to them, and
// settles the reservation with the tokens that the call used. An answer that the budget cut short ends with
// llm.StopBudget. Without a budget it only counts.
func (m *Model) Stream(ctx context.Context, account protocol.AccountID, request llm.Request, emit func(llm.Chunk) error) (used llm.Usage, err error) {
	input := llm.EstimateInput(&request)
	lowered := false
	if m.Budget != nil {
		reservation := protocol.NewUsageID()
		granted, err := m.reserve(ctx, account, reservation, input, request.MaxOutputTokens)
		if err != nil {
			return used, err
		}
		lowered = granted < input+request.MaxOutputTokens
		request.MaxOutputTokens = granted - input
		defer func() { m.settle(ctx, account, reservation, used) }()
	}
	var count llm.UsageCounter
	count.RequestBuilt(input)
	emitted := false
	err = m.Model.Stream(ctx, request, func(chunk llm.Chunk) error {
		emitted = emitted || chunk.Kind != llm.ChunkWaiting
		count.Add(&chunk)
		if chunk.Kind == llm.ChunkStop && chunk.Stop == llm.StopMaxTokens && lowered {
			chunk.Stop = llm.StopBudget
		}
		return emit(chunk)
	})
	if emitted || ctx.Err() != nil { // otherwise the model was not reached, or refused the call
		used = count.Total()
	}
	return used, err
}

// reserve reserves tokens and retries while the store is unavailable, as the turn's log does. Every try has the same
// reservation identifier, because the reservation may be stored although its reply was lost.
func (m *Model) reserve(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, input, output int) (granted int, err error) {
	failed := func(err error) { m.Log.Warn("reserving tokens failed, will retry", zap.Error(err)) }
	err = retry.OnStore(ctx, retry.Unavailable, failed, func() (failed error) {
		granted, failed = m.Budget.Reserve(ctx, account, reservation, input+min(output, minAnswerTokens), input+output)
		return failed
	})
	if protocol.CodeOf(err) == protocol.CodeBudgetReached {
		return 0, &llm.Error{Code: llm.CodeBudgetReached, Err: err}
	}
	return granted, err
}

// settle settles a reservation, also after the call was cancelled. A reservation that it cannot settle expires.
func (m *Model) settle(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, used llm.Usage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := m.Budget.Settle(ctx, account, reservation, used.InputTokens+used.OutputTokens); err != nil {
		m.Log.Warn("settling reserved tokens failed", zap.Error(err))
	}
}
