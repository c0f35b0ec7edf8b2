package http

import (
	"context"
	"crypto/sha256"
	"errors"
	stdhttp "net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/actors"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// Turns is what lives: the node that owns or finds every turn.
type Turns interface {
	StartTurn(ctx context.Context, start *protocol.TurnStart) (*protocol.TurnStartResult, error)
	ChangeFollowUp(ctx context.Context, change *protocol.FollowUpChange) (*protocol.FollowUp, error)
	Command(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, c *actors.Command) (protocol.SteeringReceipt, error)
	CancelTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, by protocol.CancelledBy) error
	Follow(account protocol.AccountID, turn protocol.TurnID, after int64) *actors.Reader
}

// TurnStore reads turns.
type TurnStore interface {
	GetTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*protocol.Turn, error)
	// KeptStart finds what an earlier POST /chat with this key did; nil when it did nothing. The same key with another body
	// is protocol.CodeIdempotencyMismatch.
	KeptStart(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*protocol.KeptStart, error)
	// GetMessage reads one message; a streaming one with the parts so far and covers_sequence.
	GetMessage(ctx context.Context, account protocol.AccountID, message protocol.MessageID) (*protocol.Message, error)
}

// chatRequest is the body of POST /chat.
type chatRequest struct {
	ConversationID *protocol.ConversationID `json:"conversation_id,omitempty" nullable:"true" doc:"Absent or null: a new conversation."`
	Input          []protocol.InputItem     `json:"input,omitempty" maxItems:"32" doc:"What the user says; empty only with regenerate."`
	ExpectedHead   optionalMessageID        `json:"expected_head_message_id,omitempty" doc:"The head that the client saw, null for an empty branch; absent: not checked. Another head is 409 conversation_head_moved."`
	Branch         *protocol.BranchRequest  `json:"branch,omitempty" doc:"Begin a sibling: edit of a user message, or regenerate of an answer."`
	Profile        protocol.Profile         `json:"profile,omitempty" enum:"auto,balanced,deep_reasoning,coding" doc:"Absent: the conversation's, else the account's default, else auto."`
	IfBusy         string                   `json:"if_busy,omitempty" enum:"reject,queue,steer" default:"reject" doc:"What to do while a turn is live."`
	ProjectID      *protocol.ProjectID      `json:"project_id,omitempty"`
	Temporary      bool                     `json:"temporary,omitempty" doc:"Only with a new conversation."`
}

type chatInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"128"`
	Body           chatRequest
}

// optionalMessageID tells absent, null and an identifier apart.
type optionalMessageID struct {
	set bool
	id  *protocol.MessageID
}

// Schema implements huma.SchemaProvider.
func (optionalMessageID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true, Pattern: identifierPattern(protocol.MessageID{}.Prefix()), PatternDescription: "an identifier"}
}

// UnmarshalJSON is not called for an absent field.
func (o *optionalMessageID) UnmarshalJSON(text []byte) error {
	o.set = true
	if string(text) == "null" {
		return nil
	}
	o.id = new(protocol.MessageID)
	return o.id.UnmarshalText([]byte(strings.Trim(string(text), `"`)))
}

// expected is what the store checks; nil: nothing.
func (o optionalMessageID) expected() *protocol.ExpectedHead {
	if !o.set {
		return nil
	}
	return &protocol.ExpectedHead{ID: o.id}
}

// postChat begins a turn and streams it. The user's message, the turn and its first transition are committed before the
// first byte; from then on the client may leave, the turn goes on.
func (s *Server) postChat(w stdhttp.ResponseWriter, r *stdhttp.Request, in *chatInput) error {
	ctx, account := r.Context(), callerOf(r.Context()).AccountID
	text, err := inputText(in.Body.Input, protocol.MaxInputRunes)
	if err != nil {
		return err
	}
	if in.Body.ProjectID != nil { // an account has no projects yet, so this is one that it does not have
		return &protocol.Error{Code: protocol.CodeNotFound}
	}
	key := in.key(r)
	bounded, cancel := untilAnswered(ctx)
	defer cancel()
	kept, err := s.keptStart(bounded, account, key)
	if err != nil {
		return err
	}
	if kept != nil && kept.TurnID == nil { // no stream, so it needs no slot for one
		return s.repeatAccepted(w, kept.FollowUp, kept.Receipt)
	}
	if err := s.streams.enter(account, s.MaxStreams); err != nil {
		return err
	}
	defer s.leaveStream(ctx, account)
	if kept != nil {
		w.Header().Set(replayedHeader, "true")
		return s.streamTurn(w, r, *kept.TurnID, 0)
	}
	if err := s.draw(w, r, bucketChat, account.String()); err != nil {
		return err
	}
	start := in.Body.start(account, text, key, s.now())
	start.RequestID = requestIDOf(ctx)
	return s.startOrSteer(bounded, w, r, start)
}

// startAttempts bounds how often a start whose live turn ended before it took the input is made again.
const startAttempts = 3

// startOrSteer starts a turn, or does what the request asks for while a turn is live. A turn that ends while it is being
// steered is not live any more: the start is made again.
func (s *Server) startOrSteer(ctx context.Context, w stdhttp.ResponseWriter, r *stdhttp.Request, start *protocol.TurnStart) error {
	for attempt := 1; ; attempt++ {
		result, err := s.Turns.StartTurn(ctx, start)
		err = failpoint.Answer(failpoint.ChatAfterTurnRowBefore200, err)
		switch {
		case err != nil:
			return err
		case result.Busy != nil:
			err := s.steerInstead(w, r, *result.Busy, start)
			if hasEnded(err) && attempt < startAttempts {
				continue
			}
			return err
		case result.Spec == nil && result.Replayed:
			return s.repeatAccepted(w, result.FollowUp, result.Receipt)
		case result.Spec == nil:
			return s.answerJSON(w, stdhttp.StatusAccepted, result.FollowUp)
		case result.Replayed:
			w.Header().Set(replayedHeader, "true")
		}
		return s.streamTurn(w, r, result.Spec.TurnID, 0)
	}
}

// hasEnded reports whether a command was refused because its turn has ended.
func hasEnded(err error) bool {
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeSteeringClosed {
		return false
	}
	closed, is := refusal.Current.(actors.SteeringClosed)
	return is && closed.State.Terminal()
}

// repeatAccepted answers a repeat with the 202 of the first request.
func (s *Server) repeatAccepted(w stdhttp.ResponseWriter, item *protocol.FollowUp, receipt *protocol.SteeringReceipt) error {
	w.Header().Set(replayedHeader, "true")
	if receipt != nil {
		return s.answerJSON(w, stdhttp.StatusAccepted, receipt)
	}
	return s.answerJSON(w, stdhttp.StatusAccepted, item)
}

// key is the idempotency key of the request, nil when it has none.
func (in *chatInput) key(r *stdhttp.Request) *protocol.IdempotencyKey {
	if in.IdempotencyKey == "" {
		return nil
	}
	return &protocol.IdempotencyKey{
		Method: r.Method, Path: r.URL.Path, Key: in.IdempotencyKey, BodyHash: sha256.Sum256(exchangeOf(r.Context()).body),
	}
}

func (s *Server) keptStart(ctx context.Context, account protocol.AccountID, key *protocol.IdempotencyKey) (*protocol.KeptStart, error) {
	if key == nil {
		return nil, nil //nolint:nilnil // no key, no earlier request
	}
	return s.TurnStore.KeptStart(ctx, account, *key)
}

func (c *chatRequest) start(account protocol.AccountID, text string, key *protocol.IdempotencyKey, at time.Time) *protocol.TurnStart {
	return &protocol.TurnStart{
		AccountID: account, ConversationID: c.ConversationID, Input: text, Expected: c.ExpectedHead.expected(),
		Branch: c.Branch, Profile: c.Profile, IfBusy: c.IfBusy, Temporary: c.Temporary, Idempotency: key, At: at,
	}
}

// inputText joins what the user typed. Files are checked by their owner: there are none yet, so every one is missing.
func inputText(items []protocol.InputItem, limit int) (string, error) {
	var texts []string
	for _, item := range items {
		if item.Type == "file" {
			if item.FileID == nil {
				return "", protocol.Invalid("body.input", "needs the file_id of a file")
			}
			return "", &protocol.Error{Code: protocol.CodeNotFound}
		}
		texts = append(texts, item.Text)
	}
	text := strings.Join(texts, "\n\n")
	if utf8.RuneCountInString(text) > limit {
		return "", protocol.Invalid("body.input", "is too long")
	}
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return text, nil
}

// streamTurn answers with the events of a turn of the caller's, after a sequence.
func (s *Server) streamTurn(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, after int64) error {
	return s.streamReader(w, r, turn, s.Turns.Follow(callerOf(r.Context()).AccountID, turn, after))
}

func (s *Server) streamReader(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, reader *actors.Reader) error {
	w.Header().Set("X-Turn-Id", turn.String())
	w.Header().Set("Location", "/chat/turns/"+turn.String())
	return s.sendEvents(w, r, nil, reader)
}

// TurnInput is embedded by inputs of routes of one turn. It is exported because huma skips what is not.
type TurnInput struct {
	TurnID protocol.TurnID `path:"turn_id"`
}

func (s *Server) getTurn(ctx context.Context, in *TurnInput) (*body[protocol.Turn], error) {
	turn, err := s.TurnStore.GetTurn(ctx, callerOf(ctx).AccountID, in.TurnID)
	if err != nil {
		return nil, err
	}
	return ok(*turn), nil
}

type turnEventsInput struct {
	TurnInput
	ResumeInput
	Mode string `query:"mode" enum:"events,snapshot" default:"events" doc:"snapshot begins with the message so far, in place of the events before it."`
}

// getTurnEvents resumes a turn's stream, live or finished.
func (s *Server) getTurnEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, in *turnEventsInput) error {
	after, err := in.cursor()
	if err != nil {
		return err
	}
	account := callerOf(r.Context()).AccountID
	reader := s.Turns.Follow(account, in.TurnID, after)
	if in.Mode != "snapshot" && reader.Reaches() { // lives here: nothing has to be looked up
		return s.streamLive(w, r, in.TurnID, reader)
	}
	bounded, cancel := untilAnswered(r.Context())
	defer cancel()
	turn, err := s.TurnStore.GetTurn(bounded, account, in.TurnID)
	if err != nil {
		return err
	}
	if turn.State.Terminal() { // to resume a live stream is free
		if err := s.draw(w, r, bucketReplays, account.String()); err != nil {
			return err
		}
	}
	if err := s.streams.enter(account, s.MaxStreams); err != nil {
		return err
	}
	defer s.leaveStream(r.Context(), account)
	if in.Mode == "snapshot" {
		return s.streamSnapshot(w, r, turn)
	}
	switch {
	case turn.State.Terminal() && after >= turn.LastSequence:
		w.WriteHeader(stdhttp.StatusNoContent) // an EventSource stops
		return nil
	case after > turn.LastSequence:
		return protocol.Conflict(protocol.CodeSequenceAhead, map[string]int64{"last_sequence": turn.LastSequence},
			"The turn has not come so far. Load it anew.")
	}
	return s.streamTurn(w, r, in.TurnID, after)
}

// streamLive answers with the events of a turn of which all that has to be known is in memory.
func (s *Server) streamLive(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, reader *actors.Reader) error {
	account := callerOf(r.Context()).AccountID
	if err := s.streams.enter(account, s.MaxStreams); err != nil {
		return err
	}
	defer s.leaveStream(r.Context(), account)
	return s.streamReader(w, r, turn, reader)
}

// streamSnapshot begins with the message so far. turn.finished is always sent, so of a finished turn the snapshot covers
// all but that.
func (s *Server) streamSnapshot(w stdhttp.ResponseWriter, r *stdhttp.Request, turn *protocol.Turn) error {
	account := callerOf(r.Context()).AccountID
	message, err := s.TurnStore.GetMessage(r.Context(), account, turn.MessageID)
	if err != nil {
		return err
	}
	covers := message.CoversSequence
	if message.Status != protocol.MessageStreaming {
		if turn, err = s.TurnStore.GetTurn(r.Context(), account, turn.TurnID); err != nil {
			return err
		}
		covers = turn.LastSequence - 1
	}
	frame, err := protocol.AppendEvent(nil, turn.TurnID, covers, s.now(), &protocol.TurnSnapshot{CoversSequence: covers, Message: *message})
	if err != nil {
		return err
	}
	w.Header().Set("X-Turn-Id", turn.TurnID.String())
	return s.sendEvents(w, r, append(frame, '\n'), s.Turns.Follow(account, turn.TurnID, covers))
}

// chatRoutes are the live turns.
func (s *Server) chatRoutes() []route {
	const stops = "The turn's events. The body ends after turn.finished; a client that goes away does not stop the turn."
	return []route{
		stream("POST", "/chat", "startTurn", "Say something and follow the answer.", Policy{Conflicts: true}, s.postChat).
			about("Commits the user's message and the turn, then streams its events. The turn goes on when the client disconnects: resume it with GET /chat/turns/{turn_id}/events. A repeat with the same Idempotency-Key gets the same turn or receipt.").
			sends(object{"conversation_id": "conv_01h2xcejqtf2nbrexx3vqjhp41", "input": []any{object{"type": "text", "text": "What is 6*7?"}}, "profile": "balanced", "if_busy": "queue"}).
			refuses(protocol.CodeTurnInProgress, protocol.CodeHeadMoved, protocol.CodeSteeringClosed, protocol.CodeNotDeliverable, protocol.CodeTooManyLiveTurns, protocol.CodeTooManyStreams, protocol.CodeTooManyFollowUps, protocol.CodeTooManyInputs).
			documented(func(api huma.API, op *huma.Operation) {
				eventStream(stdhttp.StatusOK, stops)(api, op)
				op.Responses["202"] = &huma.Response{
					Description: "A turn is live: the follow-up that was queued, or the receipt of the steering input, as if_busy asked.",
					Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
						schemaOf[protocol.FollowUp](api), schemaOf[protocol.SteeringReceipt](api),
					}}}},
				}
			}),
		call("GET", "/chat/turns/{turn_id}", "getTurn", "Read a turn, live or finished.", reads, s.getTurn).
			about("The state, the last sequence, the usage once it has ended, and the message that it writes."),
		stream("GET", "/chat/turns/{turn_id}/events", "followTurn", "Follow a turn from any sequence, live or finished.", Policy{Conflicts: true}, s.getTurnEvents).
			about("Events after Last-Event-ID or after (the header wins), from any node, during the turn and after it. The past is the same bytes every time. mode=snapshot begins with the message so far. Resuming a live turn costs no quota; the events of a finished turn draw from a limit of their own.").
			refuses(protocol.CodeSequenceAhead, protocol.CodeTooManyStreams).
			documented(func(api huma.API, op *huma.Operation) {
				eventStream(stdhttp.StatusOK, stops)(api, op)
				op.Responses["204"] = &huma.Response{Description: "The turn has ended and all of it was seen."}
			}),
		stream("POST", "/chat/steering", "steerTurn", "Steer, cancel or withdraw, while a turn is live.", Policy{Conflicts: true, Cancels: true}, s.postSteering).
			about("The command is committed before the 202. An input ends applied or returned, exactly once; a repeat with the same client_steering_id gets the first receipt.").
			sends(object{"type": "input", "turn_id": "turn_01h2xcejqtf2nbrexx3vqjhp41", "client_steering_id": "c-1", "input": []any{object{"type": "text", "text": "Shorter, please."}}, "delivery": "next_step"}).
			refuses(protocol.CodeSteeringClosed, protocol.CodeNotDeliverable, protocol.CodeTooManyInputs).
			documented(func(api huma.API, op *huma.Operation) {
				answer[protocol.SteeringReceipt](api, op, stdhttp.StatusAccepted, "It is durable. An input will end applied or returned, once.")
			}),
	}
}

func schemaOf[T any](api huma.API) *huma.Schema {
	return api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}
