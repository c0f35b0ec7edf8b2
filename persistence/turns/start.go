package turns

import (
	"context"

	"turnstone/protocol/turnlog"
)

// A start, from top to bottom:
//
//	StartTurn        a start that can share a transaction runs in start_shared.go, any other in start_alone.go
//	startAlone       one transaction of two round trips; a running request may have claimed the key
//	read             round trip 1: claims the key, locks the conversation and the account, reads the facts
//	run              repeats the response of an earlier request with the key, or does what decide.go returns:
//	                 starts a turn, queues a follow-up (follow_up.go), steers the live turn, or refuses
//	store            round trip 2: the rows of row.go, the response of the key, the commit

// StartTurn starts a turn, in one transaction of two round trips. If a turn is live, it does what start.IfBusy
// specifies. Concurrent starts in one conversation lock its row in turn; the lock on the account's row protects the
// limit of live turns. Concurrent starts of new conversations share a transaction.
func (t *Store) StartTurn(ctx context.Context, start *turnlog.Start, on turnlog.Runner) (*turnlog.StartResult, error) {
	if shareable(start) {
		return t.startShared(ctx, request{start, on})
	}
	return t.startAlone(ctx, request{start, on})
}

// request is a start and the node that is to run the turn.
type request struct {
	*turnlog.Start
	on turnlog.Runner
}
