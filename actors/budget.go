package actors

import (
	"context"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
)

const (
	// leastAnswer is how many tokens of output have to be left of a budget for a call to be made.
	leastAnswer   = 256
	settleTimeout = 2 * time.Second

	codeBudgetReached = "budget_reached" // of a ModelError: no call was made
)

// MeteredModel asks a model and counts the tokens of each call, within a budget if there is one.
type MeteredModel struct {
	Model  Model
	Budget Budget // nil: no limit
	Log    *zap.Logger
}

// Stream is Model.Stream for an account. It reserves what the call may use, lets the model write no more than that, and
// settles with what it used; an answer that the budget cut ends with stopBudget. Without a budget it only counts.
func (m *MeteredModel) Stream(ctx context.Context, account protocol.AccountID, request ModelRequest, emit func(ModelChunk) error) (used ModelUsage, err error) {
	input := requestTokens(&request)
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
	var count stepUsage
	count.asked(input)
	emitted := false
	err = m.Model.Stream(ctx, request, func(chunk ModelChunk) error {
		emitted = true
		count.add(&chunk)
		if chunk.Kind == ChunkStop && chunk.Stop == StopMaxTokens && lowered {
			chunk.Stop = stopBudget
		}
		return emit(chunk)
	})
	if emitted || ctx.Err() != nil { // else the model was not reached, or refused
		used = count.total()
	}
	return used, err
}

// reserve waits while the store is away, as the turn's log does. It repeats the same reservation, which may be stored
// although its reply was lost.
func (m *MeteredModel) reserve(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, input, output int) (granted int, err error) {
	for wait := storePause; ; wait = min(2*wait, maxStorePause) {
		granted, err = m.Budget.Reserve(ctx, account, reservation, input+min(output, leastAnswer), input+output)
		switch protocol.CodeOf(err) {
		case protocol.CodeBudgetReached:
			return 0, &ModelError{Code: codeBudgetReached, Err: err}
		case protocol.CodeUnavailable:
			m.Log.Warn("tokens not reserved yet", zap.Error(err))
			if stopped := sleep(ctx, wait); stopped != nil {
				return 0, stopped
			}
		default:
			return granted, err
		}
	}
}

// settle runs even when the call was cancelled. A reservation that it cannot settle expires.
func (m *MeteredModel) settle(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, used ModelUsage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := m.Budget.Settle(ctx, account, reservation, used.InputTokens+used.OutputTokens); err != nil {
		m.Log.Warn("reserved tokens not settled", zap.Error(err))
	}
}

// requestTokens estimates what a model reads for a request.
func requestTokens(request *ModelRequest) int {
	return max(1, requestBytes(request)/bytesPerEstimatedToken)
}
