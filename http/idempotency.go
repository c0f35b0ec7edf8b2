package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	stdhttp "net/http"

	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
)

// keptHeaders are what a repeated answer has of the first one's; the others are made anew.
var keptHeaders = []string{"Content-Type", "Location", "ETag"}

// idempotencyKey reads the key of a request that may bring one, and its body, which the key belongs to. nil: none. That it
// is well-formed was checked for all routes.
func (s *Server) idempotencyKey(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *exchange, policy Policy) (*protocol.IdempotencyKey, error) {
	text := r.Header.Get(keyHeader)
	if !policy.Idempotent || text == "" {
		return nil, nil //nolint:nilnil // most requests have none
	}
	if _, err := takeBody(w, r, ex); err != nil {
		return nil, err
	}
	return &protocol.IdempotencyKey{Method: r.Method, Path: r.URL.Path, Key: text, BodyHash: sha256.Sum256(ex.body)}, nil
}

// replay answers with the kept answer of an earlier request, before the limit is asked: a repeat costs nothing.
func (s *Server) replay(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *exchange, key *protocol.IdempotencyKey) (answered bool, err error) {
	if key == nil {
		return false, nil
	}
	answer, err := s.DB.FindAnswer(r.Context(), ex.caller.AccountID, *key)
	if err != nil || answer == nil {
		return false, err
	}
	s.repeat(w, answer)
	return true, nil
}

func (s *Server) repeat(w stdhttp.ResponseWriter, answer *persistence.Answer) {
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	w.Header().Set(replayedHeader, "true")
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // the client may be gone again
}

// once runs the handler of a request with a key for one of all that bring the same. Its success is kept with its effect,
// by the store, or at the latest before it is told. After a failure the key is free again.
func (s *Server) once(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *exchange, key *protocol.IdempotencyKey, handler stdhttp.HandlerFunc) error {
	if key == nil {
		handler(w, r)
		return nil
	}
	claim, answer, err := s.DB.ClaimKey(r.Context(), ex.caller.AccountID, *key)
	if err != nil {
		return err
	}
	if answer != nil {
		s.repeat(w, answer)
		return nil
	}
	held := &heldWriter{ResponseWriter: w}
	defer s.settle(r.Context(), ex, claim, held)
	if err := failpoint.Before(failpoint.IdemAfterClaim); err != nil {
		return err
	}
	handler(held, r.WithContext(persistence.WithKeeper(r.Context(), &persistence.Keeper{Claim: claim, Answer: createdAt(r.URL.Path)})))
	if err := failpoint.After(failpoint.IdemAfterClaim, nil); err != nil {
		held.status = 0
		return err
	}
	return nil
}

// createdAt makes the 201 of what was made: what is not a conversation is found below the path that made it.
func createdAt(path string) func(made any) (*persistence.Answer, error) {
	return func(made any) (*persistence.Answer, error) {
		answer := &persistence.Answer{
			Status: stdhttp.StatusCreated, Headers: map[string]string{"Content-Type": "application/json", "Location": path},
		}
		if c, ok := made.(*protocol.Conversation); ok {
			answer.Headers["Location"], answer.Headers["ETag"] = conversationPath(c.ConversationID), ETagOf(c.Version)
		}
		var body bytes.Buffer
		err := writeJSON(&body, made)
		answer.Body = body.Bytes()
		return answer, err
	}
}

// settle ends the claim of a request and lets its answer go. It runs also when the handler panicked.
func (s *Server) settle(ctx context.Context, ex *exchange, claim *persistence.KeyClaim, held *heldWriter) {
	ctx = context.WithoutCancel(ctx) // what was committed is kept, whether or not the client still waits
	var err error
	if held.status >= stdhttp.StatusOK && held.status < stdhttp.StatusMultipleChoices {
		err = claim.Complete(ctx, held.answer())
	} else {
		err = claim.Release(ctx)
	}
	if err != nil {
		s.log.Warn("an idempotency key was not settled", zap.String("request_id", ex.requestID), zap.Error(err))
	}
	held.send()
}

// heldWriter holds an answer back until its key is settled.
type heldWriter struct {
	stdhttp.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *heldWriter) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *heldWriter) Write(b []byte) (int, error) {
	h.WriteHeader(stdhttp.StatusOK)
	return h.body.Write(b)
}

func (h *heldWriter) Unwrap() stdhttp.ResponseWriter { return h.ResponseWriter }

func (h *heldWriter) answer() *persistence.Answer {
	answer := &persistence.Answer{Status: h.status, Headers: map[string]string{}, Body: h.body.Bytes()}
	for _, name := range keptHeaders {
		if value := h.Header().Get(name); value != "" {
			answer.Headers[name] = value
		}
	}
	return answer
}

func (h *heldWriter) send() {
	if h.status == 0 { // the handler panicked: recover answers
		return
	}
	h.ResponseWriter.WriteHeader(h.status)
	_, _ = h.ResponseWriter.Write(h.body.Bytes()) // the client may be gone
}
