package http

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	stdhttp "net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/actors/turn"
	"turnstone/actors/turn/machine"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/http/sse"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

// chatHandlers handle the requests that start, follow and command turns.
type chatHandlers struct {
	turns    Turns
	store    TurnStore
	messages Messages
	streams  *router.Streams
	now      func() time.Time
}

// Turns starts, commands and follows live turns. The node implements it: it runs a turn itself or finds its owner.
type Turns interface {
	StartTurn(ctx context.Context, start *turnlog.Start) (*turnlog.StartResult, error)
	CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp) (*protocol.FollowUp, error)
	ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange) (*protocol.FollowUp, error)
	PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion) (*protocol.FollowUp, error)
	Command(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, c *machine.Command) (protocol.SteeringReceipt, error)
	CancelTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, by protocol.CancelledBy, scope protocol.CancelScope) error
	Follow(account protocol.AccountID, turn protocol.TurnID, after int64) *turn.Reader
}

// TurnStore reads turns.
type TurnStore interface {
	GetTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*protocol.Turn, error)
	ListTurns(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, after *protocol.TurnID, limit int) (page []protocol.Turn, next *protocol.TurnID, err error)
	CountLive(ctx context.Context, account protocol.AccountID) (int64, error)
	// StoredStart returns the result of an earlier POST /chat with this key; nil if there was none. For the same key with
	// another body, the error is protocol.CodeIdempotencyMismatch.
	StoredStart(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*turnlog.StoredStart, error)
}

// chatRequest is the body of POST /chat.
type chatRequest struct {
	ConversationID *protocol.ConversationID `json:"conversation_id,omitempty" nullable:"true" doc:"The conversation to continue. Absent or null: start a new conversation."`
	Input          []protocol.InputItem     `json:"input,omitempty" maxItems:"32" doc:"The message of the user: its texts, and the files that it has. Must be empty to regenerate an answer. May also be empty if the head of the branch is a user message, which is then answered."`
	ExpectedHead   optionalMessageID        `json:"expected_head_message_id,omitempty" doc:"The last message of the branch, as known to the client; null for an empty branch. If the branch has another head, the request fails with 409 conversation_head_moved. Absent: not checked."`
	Branch         *protocol.BranchRequest  `json:"branch,omitempty" doc:"Start a new branch with another version of a message: edit replaces a user message, regenerate replaces an answer."`
	Profile        protocol.Profile         `json:"profile,omitempty" enum:"auto,balanced,deep_reasoning,coding" doc:"Default: the profile of the conversation, else the default profile of its project, else that of the account, else auto."`
	IfBusy         string                   `json:"if_busy,omitempty" enum:"reject,queue,steer" default:"reject" doc:"What to do if a turn is live: reject fails with 409 turn_in_progress, queue adds the input to the follow-ups of the conversation, steer adds the input to the live turn."`
	ProjectID      *protocol.ProjectID      `json:"project_id,omitempty" nullable:"true" doc:"The active project of a new conversation. Has no effect on an existing conversation."`
	Temporary      bool                     `json:"temporary,omitempty" doc:"Make the new conversation temporary. Has no effect on an existing conversation."`
}

type chatInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"128"`
	Body           chatRequest
}

// optionalMessageID distinguishes an absent field, null and an identifier.
type optionalMessageID struct {
	set bool
	id  *protocol.MessageID
}

// Schema implements huma.SchemaProvider.
func (optionalMessageID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true, Pattern: route.IdentifierPattern(protocol.MessageID{}.Prefix()), PatternDescription: "an identifier"}
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

// expected returns the head that the store must check; nil: no check.
func (o optionalMessageID) expected() *turnlog.ExpectedHead {
	if !o.set {
		return nil
	}
	return &turnlog.ExpectedHead{ID: o.id}
}

// postChat starts a turn and streams it. The user's message, the turn and its first transition are committed before the
// first byte. After that the client may disconnect; the turn continues.
func (h *chatHandlers) postChat(w stdhttp.ResponseWriter, r *stdhttp.Request, in *chatInput) error {
	ctx, account := r.Context(), router.CallerOf(r.Context()).AccountID
	text, attachments, err := readInput(in.Body.Input, protocol.MaxInputRunes)
	if err != nil {
		return err
	}
	if in.Body.ProjectID != nil && in.Body.Temporary && in.Body.ConversationID == nil {
		return protocol.Invalid("body.temporary", "must be false for a conversation in a project")
	}
	key := in.key(r)
	bounded, cancel := router.UntilFirstByte(ctx)
	defer cancel()
	stored, err := h.storedStart(bounded, account, key)
	if err != nil {
		return err
	}
	if stored != nil && stored.TurnID == nil { // no stream, so no slot is needed
		return h.repeatAccepted(w, stored.FollowUp, stored.Receipt)
	}
	if err := h.streams.Acquire(account); err != nil {
		return err
	}
	defer h.streams.Release(ctx, account)
	if stored != nil {
		w.Header().Set(router.ReplayedHeader, "true")
		return h.streamTurn(w, r, *stored.TurnID, 0)
	}
	if err := router.DrawBucket(w, r, route.BucketChat, account.String()); err != nil {
		return err
	}
	start := in.Body.start(account, text, attachments, key, h.now())
	start.RequestID, start.SessionID = router.RequestIDOf(ctx), &router.CallerOf(ctx).SessionID
	return h.startOrSteer(bounded, w, r, start)
}

// startAttempts limits how often one request tries to start a turn. It tries again if the live turn ended before it
// accepted the input.
const startAttempts = 3

// startOrSteer starts a turn or, while a turn is live, does what if_busy requests. If the live turn ends while it is
// being steered, the start is attempted again.
func (h *chatHandlers) startOrSteer(ctx context.Context, w stdhttp.ResponseWriter, r *stdhttp.Request, start *turnlog.Start) error {
	for attempt := 1; ; attempt++ {
		result, err := h.turns.StartTurn(ctx, start)
		err = failpoint.Respond(failpoint.ChatAfterTurnRowBefore200, err)
		switch {
		case err != nil:
			return err
		case result.Busy != nil:
			err := h.steerInstead(w, r, *result.Busy, start)
			if hasEnded(err) && attempt < startAttempts {
				continue
			}
			return err
		case result.Spec == nil && result.Replayed:
			return h.repeatAccepted(w, result.FollowUp, result.Receipt)
		case result.Spec == nil:
			return h.respondJSON(w, stdhttp.StatusAccepted, result.FollowUp)
		case result.Replayed:
			w.Header().Set(router.ReplayedHeader, "true")
		}
		return h.streamTurn(w, r, result.Spec.TurnID, 0)
	}
}

// hasEnded reports whether a command was refused because its turn has ended.
func hasEnded(err error) bool {
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeSteeringClosed {
		return false
	}
	closed, isClosed := refusal.Current.(machine.SteeringClosed)
	return isClosed && closed.State.Terminal()
}

// repeatAccepted responds to a repeated request with the 202 of the first request.
func (h *chatHandlers) repeatAccepted(w stdhttp.ResponseWriter, item *protocol.FollowUp, receipt *protocol.SteeringReceipt) error {
	w.Header().Set(router.ReplayedHeader, "true")
	if receipt != nil {
		return h.respondJSON(w, stdhttp.StatusAccepted, receipt)
	}
	return h.respondJSON(w, stdhttp.StatusAccepted, item)
}

// key returns the idempotency key of the request; nil if it has none.
func (in *chatInput) key(r *stdhttp.Request) *protocol.IdempotencyKey {
	if in.IdempotencyKey == "" {
		return nil
	}
	return &protocol.IdempotencyKey{
		Method: r.Method, Path: r.URL.Path, Key: in.IdempotencyKey, BodyHash: sha256.Sum256(router.ExchangeOf(r.Context()).Body),
	}
}

func (h *chatHandlers) storedStart(ctx context.Context, account protocol.AccountID, key *protocol.IdempotencyKey) (*turnlog.StoredStart, error) {
	if key == nil {
		return nil, nil //nolint:nilnil // no key, no earlier request
	}
	return h.store.StoredStart(ctx, account, *key)
}

func (c *chatRequest) start(account protocol.AccountID, text string, attachments []protocol.FileID, key *protocol.IdempotencyKey, at time.Time) *turnlog.Start {
	return &turnlog.Start{
		AccountID: account, ConversationID: c.ConversationID, Input: text, Attachments: attachments, Expected: c.ExpectedHead.expected(),
		Branch: c.Branch, Profile: c.Profile, IfBusy: c.IfBusy, Temporary: c.Temporary, ProjectID: c.ProjectID, Idempotency: key, At: at,
	}
}

// readInput joins the texts of an input, and lists its files, each once.
func readInput(items []protocol.InputItem, limit int) (text string, attachments []protocol.FileID, err error) {
	var texts []string
	for _, item := range items {
		if item.Type != "file" {
			texts = append(texts, item.Text)
			continue
		}
		if item.FileID == nil {
			return "", nil, protocol.Invalid("body.input", "must have the file_id of each file")
		}
		attachments = append(attachments, *item.FileID)
	}
	if attachments, err = onceEach("body.input", attachments); err != nil {
		return "", nil, err
	}
	text = strings.Join(texts, "\n\n")
	if utf8.RuneCountInString(text) > limit {
		return "", nil, protocol.Invalid("body.input", "is too long")
	}
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	return text, attachments, nil
}

// onceEach returns the files of a message without repetitions.
func onceEach(at string, files []protocol.FileID) (distinct []protocol.FileID, err error) {
	for _, id := range files {
		if !slices.Contains(distinct, id) {
			distinct = append(distinct, id)
		}
	}
	if len(distinct) > protocol.MaxAttachments {
		return nil, protocol.Invalid(at, fmt.Sprintf("must have at most %d files", protocol.MaxAttachments))
	}
	return distinct, nil
}

// streamTurn responds with the events of a turn of the caller after a sequence.
func (h *chatHandlers) streamTurn(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, after int64) error {
	return h.streamReader(w, r, turn, h.turns.Follow(router.CallerOf(r.Context()).AccountID, turn, after))
}

func (h *chatHandlers) streamReader(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, reader *turn.Reader) error {
	setTurnHeaders(w.Header(), turn)
	return h.streams.Serve(w, r, &sse.Stream{Reader: reader})
}

// setTurnHeaders sets the headers of every stream of a turn.
func setTurnHeaders(header stdhttp.Header, turn protocol.TurnID) {
	header.Set("X-Turn-Id", turn.String())
	header.Set("Location", "/chat/turns/"+turn.String())
}

// TurnInput is embedded by inputs of routes of one turn. It is exported because huma ignores unexported embedded
// types.
type TurnInput struct {
	TurnID protocol.TurnID `path:"turn_id"`
}

func (h *chatHandlers) getTurn(ctx context.Context, in *TurnInput) (*resource.Body[protocol.Turn], error) {
	turn, err := h.store.GetTurn(ctx, router.CallerOf(ctx).AccountID, in.TurnID)
	if err != nil {
		return nil, err
	}
	return resource.OK(*turn), nil
}

type turnEventsInput struct {
	TurnInput
	resource.ResumeInput
	Mode string `query:"mode" enum:"events,snapshot" default:"events" doc:"snapshot starts with one event that has the message so far, instead of the events up to that point."`
}

// getTurnEvents streams the events of a turn, live or finished, after a sequence.
func (h *chatHandlers) getTurnEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, in *turnEventsInput) (err error) {
	after, err := in.Position()
	if err != nil {
		return err
	}
	account := router.CallerOf(r.Context()).AccountID
	reader := h.turns.Follow(account, in.TurnID, after)
	if in.Mode != "snapshot" && reader.FollowsLocally() { // the turn runs on this node: no lookup is needed
		return h.streamLive(w, r, in.TurnID, reader)
	}
	bounded, cancel := router.UntilFirstByte(r.Context())
	defer cancel()
	turn, err := h.store.GetTurn(bounded, account, in.TurnID)
	if err != nil {
		return err
	}
	if turn.State.Terminal() { // resuming a live turn is not limited
		if err := router.DrawBucket(w, r, route.BucketReplays, account.String()); err != nil {
			return err
		}
		defer func() {
			if err != nil { // an error, which a live turn has too, reports no limit
				router.HideLimit(w)
			}
		}()
	}
	if err := h.streams.Acquire(account); err != nil {
		return err
	}
	defer h.streams.Release(r.Context(), account)
	if in.Mode == "snapshot" {
		return h.streamSnapshot(w, r, turn)
	}
	switch {
	case turn.State.Terminal() && after >= turn.LastSequence:
		w.WriteHeader(stdhttp.StatusNoContent) // an EventSource does not reconnect
		return nil
	case after > turn.LastSequence:
		return protocol.Conflict(protocol.CodeSequenceAhead, map[string]int64{"last_sequence": turn.LastSequence},
			"The turn has no event with this sequence yet. Load the turn again.")
	}
	return h.streamTurn(w, r, in.TurnID, after)
}

// streamLive responds with the events of a turn that runs on this node, without a lookup.
func (h *chatHandlers) streamLive(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, reader *turn.Reader) error {
	account := router.CallerOf(r.Context()).AccountID
	if err := h.streams.Acquire(account); err != nil {
		return err
	}
	defer h.streams.Release(r.Context(), account)
	return h.streamReader(w, r, turn, reader)
}

// streamSnapshot streams the message so far and then the events that follow. turn.finished is always sent as an event,
// so the snapshot of a finished turn covers all events but that one.
func (h *chatHandlers) streamSnapshot(w stdhttp.ResponseWriter, r *stdhttp.Request, turn *protocol.Turn) error {
	account := router.CallerOf(r.Context()).AccountID
	message, err := h.messages.GetMessage(r.Context(), account, turn.MessageID)
	if err != nil {
		return err
	}
	covers := message.CoversSequence
	if message.Status != protocol.MessageStreaming {
		if turn, err = h.store.GetTurn(r.Context(), account, turn.TurnID); err != nil {
			return err
		}
		covers = turn.LastSequence - 1
	}
	frame, err := protocol.AppendEvent(nil, turn.TurnID, covers, h.now(), &protocol.TurnSnapshot{CoversSequence: covers, Message: *message})
	if err != nil {
		return err
	}
	setTurnHeaders(w.Header(), turn.TurnID)
	return h.streams.Serve(w, r, &sse.Stream{First: append(frame, '\n'), Reader: h.turns.Follow(account, turn.TurnID, covers)})
}

func (h *chatHandlers) routes() []route.Route {
	const untilFinished = "The events of the turn. The stream ends after `turn.finished`. If the client disconnects, the turn continues."
	return []route.Route{
		route.Stream("POST", "/chat", "startTurn", "Send a message and stream the answer", route.Policy{Conflicts: true}, h.postChat).WithMaxBody(route.MaxBody).
			DescribedAs("Starts a turn that answers the message, and streams the events of the turn. The message and the turn are committed before the first byte of the response. If the client disconnects, the turn continues; resume the stream with GET /chat/turns/{turn_id}/events. A repeated request with the same Idempotency-Key returns the same turn, follow-up or receipt. A message can have up to 20 files; if the account has not all of them, the response is 409 `conflict` with their states in `current`, and nothing starts. The model gets the texts of the files, or of long ones the passages that have words of the message, and cites them in `citations`. A turn waits up to a minute for a text that was not read yet.").
			WithExample(route.Object{"conversation_id": "conv_01h2xcejqtf2nbrexx3vqjhp41", "input": []any{route.Object{"type": "text", "text": "What is 6*7?"}}, "profile": "balanced", "if_busy": "queue"}).
			WithCodes(protocol.CodeTurnInProgress, protocol.CodeHeadMoved, protocol.CodeSteeringClosed, protocol.CodeNotDeliverable, protocol.CodeTooManyLiveTurns, protocol.CodeTooManyStreams, protocol.CodeTooManyFollowUps, protocol.CodeTooManyInputs, protocol.CodeConflict).
			Documented(func(api huma.API, op *huma.Operation) {
				route.DocumentEventStream(stdhttp.StatusOK, untilFinished)(api, op)
				op.Responses["202"] = &huma.Response{
					Description: "A turn is live. The response is the queued follow-up or the receipt of the steering input, depending on `if_busy`.",
					Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
						schemaOf[protocol.FollowUp](api), schemaOf[protocol.SteeringReceipt](api),
					}}}},
				}
			}),
		route.Call("GET", "/chat/turns/{turn_id}", "getTurn", "Get a turn", route.Reads, h.getTurn).
			DescribedAs("Returns a live or finished turn: its state, its last sequence, the identifier of the message that it writes and, once it has ended, its usage."),
		route.Stream("GET", "/chat/turns/{turn_id}/events", "followTurn", "Stream the events of a turn", route.Policy{Conflicts: true}, h.getTurnEvents).
			DescribedAs("Streams the events of a live or finished turn that follow the sequence in Last-Event-ID or `after`; the header takes precedence. Any node serves the stream, and an event has the same bytes every time. With `mode=snapshot`, the stream starts with the message so far. Resuming a live turn is not rate limited; the events of a finished turn have a limit of their own.").
			WithCodes(protocol.CodeSequenceAhead, protocol.CodeTooManyStreams).
			Documented(func(api huma.API, op *huma.Operation) {
				route.DocumentEventStream(stdhttp.StatusOK, untilFinished)(api, op)
				op.Responses["204"] = &huma.Response{Description: "The turn has ended, and the client has received all of its events."}
			}),
		route.Stream("POST", "/chat/steering", "steerTurn", "Steer or cancel a live turn", route.Policy{Conflicts: true, Cancels: true}, h.postSteering).WithMaxBody(route.MediumBody).
			DescribedAs("Sends a command to a live turn: add an input, apply a pending input at once, withdraw it, or cancel the turn. The command is committed before the 202 response. Every accepted input is eventually applied or returned, exactly once. A repeated input with the same `client_steering_id` returns the receipt of the first one.").
			WithExample(route.Object{"type": "input", "turn_id": "turn_01h2xcejqtf2nbrexx3vqjhp41", "client_steering_id": "c-1", "input": []any{route.Object{"type": "text", "text": "Shorter, please."}}, "delivery": "next_step"}).
			WithCodes(protocol.CodeSteeringClosed, protocol.CodeNotDeliverable, protocol.CodeTooManyInputs).
			Documented(func(api huma.API, op *huma.Operation) {
				route.JSONResponse[protocol.SteeringReceipt](api, op, stdhttp.StatusAccepted, "The command is committed. An input will be applied or returned, exactly once.")
			}),
	}
}

func schemaOf[T any](api huma.API) *huma.Schema {
	return api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}
