package turns

import (
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// checkLimits returns an error if the account is at its limit or the node accepts no turns.
func (f *startFacts) checkLimits(maxLive int) error {
	if f.liveTurns >= maxLive {
		return protocol.Errorf(protocol.CodeTooManyLiveTurns, "The account has %d answers in progress, which is the limit. Ten answers that wait for an approval count as one.", f.liveTurns)
	}
	if !f.ownerAlive {
		return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The server is not accepting new messages.", RetryAfter: pg.RetrySeconds}
	}
	return nil
}
