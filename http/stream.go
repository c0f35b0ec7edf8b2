package http

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"strconv"

	"turnstone/actors"
	"turnstone/http/router"
	"turnstone/http/sse"
	"turnstone/protocol"
)

// ResumeInput is embedded by inputs of streams that can be resumed.
type ResumeInput struct {
	LastEventID string `header:"Last-Event-ID" doc:"The sequence of the last event that was received. Takes precedence over after."`
	After       string `query:"after" doc:"The sequence of the last event that was received. 0 or absent: start with the first event."`
}

// cursor returns the sequence after which the stream continues.
func (in *ResumeInput) cursor() (int64, error) {
	text, field := in.After, "query.after"
	if in.LastEventID != "" {
		text, field = in.LastEventID, "header.Last-Event-ID"
	}
	if text == "" {
		return 0, nil
	}
	cursor, err := strconv.ParseInt(text, 10, 64)
	if err != nil || cursor < 0 || strconv.FormatInt(cursor, 10) != text {
		return 0, protocol.Invalid(field, "must be a sequence: a whole number from 0")
	}
	return cursor, nil
}

const (
	defaultStreams = 50 // default of Config.MaxStreams
	retryStreams   = 5  // seconds; the Retry-After of an account with too many streams
)

// streams counts the open streams of each account.
type streams struct{ router.SlotCounter }

// acquire takes one of the stream slots of an account, before any work for the stream. The caller calls Release when
// the stream has ended.
func (s *streams) acquire(account protocol.AccountID, limit int) error {
	if !s.Take(account, limit) {
		return &protocol.Error{Code: protocol.CodeTooManyStreams, Detail: fmt.Sprintf("At most %d streams may be open.", limit), RetryAfter: retryStreams}
	}
	return nil
}

// sendEvents responds with a stream of server-sent events: the events in first, then those of reader.
func (h *chatHandlers) sendEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, first []byte, reader *actors.Reader) error {
	ex := router.ExchangeOf(r.Context())
	account, ended := ex.Caller.AccountID, h.router.BeginStream(ex)
	takenOver, err := h.sse.Serve(w, r, &sse.Stream{
		Reader: reader, First: first, Account: account, Session: ex.Caller.SessionID, RequestID: ex.ID,
		Ended: func() {
			h.streams.Release(account)
			ended()
		},
	})
	ex.TakenOver = takenOver
	return err
}

// releaseStreamSlot releases the stream slot of an account, unless the stream has taken over the connection.
func (h *chatHandlers) releaseStreamSlot(ctx context.Context, account protocol.AccountID) {
	if !router.ExchangeOf(ctx).TakenOver {
		h.streams.Release(account)
	}
}

// CloseStreams ends the streams whose connections were taken over; see sse.Server.Close.
func (s *Server) CloseStreams(ctx context.Context) { s.sse.Close(ctx) }

// OpenStreams returns the number of connections that were taken over from the server.
func (s *Server) OpenStreams() int {
	return s.sse.TakenOver()
}
