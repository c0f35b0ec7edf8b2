package http

import (
	"context"

	"go.uber.org/zap"

	"turnstone/persistence"
)

// record writes an entry about a refusal. It never changes the answer: the request is refused whether or not the entry
// could be stored.
func (s *Server) record(ctx context.Context, ex *exchange, event persistence.SecurityEvent, detail map[string]any) {
	account := persistence.Nobody
	var err error
	if ex.caller != nil {
		account = ex.caller.AccountID
		err = s.DB.Record(ctx, account, event, &ex.caller.SessionID, detail, ex.requester())
	} else {
		err = s.DB.Record(ctx, account, event, nil, detail, ex.requester())
	}
	if err != nil {
		s.log.Error("an entry of the audit was not stored", zap.String("request_id", ex.requestID),
			zap.String("event", string(event)), zap.Error(err))
	}
}
