package chat

import (
	"context"
	"crypto/sha256"
	stdhttp "net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/actors/turn"
	"turnstone/http/exchange"
	"turnstone/http/route"
	"turnstone/http/sse"
	"turnstone/http/tools"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/turnlog"
)

// chatRequest is the body of POST /chat.
type chatRequest struct {
	ConversationID *protocol.ConversationID `json:"conversation_id,omitempty" nullable:"true" doc:"The conversation to continue. Absent or null: start a new conversation."`
	Input          []protocol.InputItem     `json:"input,omitempty" maxItems:"32" doc:"The message of the user: its texts, and the files that it has. Must be empty to regenerate an answer. May also be empty if the head of the branch is a user message, which is then answered."`
	ExpectedHead   optionalMessageID        `json:"expected_head_message_id,omitempty" doc:"The last message of the branch, as known to the client; null for an empty branch. If the branch has another head, the request fails with 409 conversation_head_moved. Absent: not checked."`
	Branch         *protocol.BranchRequest  `json:"branch,omitempty" doc:"Start a new branch with another version of a message: edit replaces a user message, regenerate replaces an answer."`
	Profile        protocol.Profile         `json:"profile,omitempty" enum:"auto,balanced,deep_reasoning,coding" doc:"Default: the profile of the conversation, else the default profile of its project, else that of the account, else auto."`
	IfBusy         string                   `json:"if_busy,omitempty" enum:"reject,queue,steer" default:"reject" doc:"What to do if a turn is live: reject fails with 409 turn_in_progress, queue adds the input to the follow-ups of the conversation, steer adds the input to the live turn."`
	Tools          *protocol.ToolChoice     `json:"tools,omitempty" doc:"The tools that the turn may use. Absent: all that the project of the conversation may."`
	ProjectID      *protocol.ProjectID      `json:"project_id,omitempty" nullable:"true" doc:"The active project of a new conversation. For an existing conversation, absent, null or its own project."`
	Temporary      bool                     `json:"temporary,omitempty" doc:"Make the new conversation temporary. True is refused for an existing conversation that is not."`
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
func (h *Handlers) postChat(w stdhttp.ResponseWriter, r *stdhttp.Request, in *chatInput) error {
	ctx, account := r.Context(), exchange.CallerOf(r.Context()).AccountID
	text, attachments, err := readInput(in.Body.Input)
	if err != nil {
		return err
	}
	if err := tools.Check(h.Tools, "body.tools", in.Body.Tools); err != nil {
		return err
	}
	if in.Body.ConversationID == nil { // the store knows an existing one
		if err := protocol.CheckTemporary(in.Body.Temporary, in.Body.ProjectID, nil); err != nil {
			return err
		}
	}
	key := in.key(r)
	bounded, cancel := exchange.UntilFirstByte(ctx)
	defer cancel()
	stored, err := h.storedStart(bounded, account, key)
	if err != nil {
		return err
	}
	if stored != nil && stored.TurnID == nil { // no stream, so no slot is needed
		return h.respondAccepted(w, true, stored.FollowUp, stored.Receipt)
	}
	if err := h.Streams.Acquire(account); err != nil {
		return err
	}
	defer h.Streams.Release(ctx, account)
	if stored != nil {
		w.Header().Set(exchange.ReplayedHeader, "true")
		return h.streamTurn(w, r, *stored.TurnID, 0)
	}
	if err := h.Limits.Draw(r.Context(), route.BucketChat, account.String()); err != nil {
		return err
	}
	start := in.Body.start(account, text, attachments, key, h.Now())
	start.RequestID, start.SessionID = exchange.RequestIDOf(ctx), &exchange.CallerOf(ctx).SessionID
	return h.startTurn(bounded, w, r, start)
}

// startTurn starts a turn or, while a turn is live, does what if_busy requests.
func (h *Handlers) startTurn(ctx context.Context, w stdhttp.ResponseWriter, r *stdhttp.Request, start *turnlog.Start) error {
	result, err := h.Turns.StartTurn(ctx, start)
	point := failpoint.ChatAfterTurnRowBefore200
	if err == nil && result.Busy != nil {
		point = failpoint.SteerAfterCommit
	}
	if err = failpoint.Respond(point, err); err != nil {
		return err
	}
	if result.Spec == nil {
		return h.respondAccepted(w, result.Replayed, result.FollowUp, result.Receipt)
	}
	if result.Replayed {
		w.Header().Set(exchange.ReplayedHeader, "true")
	}
	return h.streamTurn(w, r, result.Spec.TurnID, 0)
}

// key returns the idempotency key of the request; nil if it has none.
func (in *chatInput) key(r *stdhttp.Request) *protocol.IdempotencyKey {
	if in.IdempotencyKey == "" {
		return nil
	}
	return &protocol.IdempotencyKey{
		Method: r.Method, Path: r.URL.Path, Key: in.IdempotencyKey, BodyHash: sha256.Sum256(exchange.Of(r.Context()).Body),
	}
}

func (h *Handlers) storedStart(ctx context.Context, account protocol.AccountID, key *protocol.IdempotencyKey) (*turnlog.StoredStart, error) {
	if key == nil {
		return nil, nil // no key, no earlier request
	}
	return h.Store.StoredStart(ctx, account, *key)
}

func (c *chatRequest) start(account protocol.AccountID, text string, attachments []protocol.FileID, key *protocol.IdempotencyKey, at time.Time) *turnlog.Start {
	return &turnlog.Start{
		AccountID: account, ConversationID: c.ConversationID, Input: text, Attachments: attachments, Expected: c.ExpectedHead.expected(),
		Branch: c.Branch, Profile: c.Profile, IfBusy: c.IfBusy, Temporary: c.Temporary, Tools: c.Tools, ProjectID: c.ProjectID, Idempotency: key, At: at,
	}
}

// streamTurn responds with the events of a turn of the caller after a sequence.
func (h *Handlers) streamTurn(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, after int64) error {
	return h.streamReader(w, r, turn, h.Turns.Follow(exchange.CallerOf(r.Context()).AccountID, turn, after))
}

func (h *Handlers) streamReader(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, reader *turn.Reader) error {
	setTurnHeaders(w.Header(), turn)
	return h.Streams.Serve(w, r, &sse.Stream{Reader: reader})
}

// setTurnHeaders sets the headers of every stream of a turn.
func setTurnHeaders(header stdhttp.Header, turn protocol.TurnID) {
	header.Set("X-Turn-Id", turn.String())
	header.Set("Location", "/chat/turns/"+turn.String())
}
