package protocol

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Profile selects how an answer is produced. Clients name only profiles; the service maps each profile to a model.
type Profile string

// The profiles. Auto resolves to one of the others.
const (
	ProfileAuto          Profile = "auto"
	ProfileBalanced      Profile = "balanced"
	ProfileDeepReasoning Profile = "deep_reasoning"
	ProfileCoding        Profile = "coding"
)

// Profiles lists the profiles that a client may request.
var Profiles = []Profile{ProfileAuto, ProfileBalanced, ProfileDeepReasoning, ProfileCoding}

// Valid reports whether the profile is one of Profiles.
func (p Profile) Valid() bool {
	return p == ProfileAuto || p == ProfileBalanced || p == ProfileDeepReasoning || p == ProfileCoding
}

// ProfileAbilities is what a profile can do. It describes the first model of the profile.
type ProfileAbilities struct {
	Profile         Profile `json:"profile" enum:"balanced,deep_reasoning,coding"`
	ModelID         string  `json:"model_id" doc:"The model that answers first. It may change; the profile stays."`
	Pictures        bool    `json:"pictures" doc:"The model sees pictures. Otherwise it gets their names and sizes."`
	Tools           bool    `json:"tools" doc:"The model can use tools."`
	ContextTokens   int     `json:"context_tokens" doc:"About how many tokens a conversation and its answer can have before the oldest messages are left out."`
	MaxOutputTokens int     `json:"max_output_tokens" doc:"The most tokens that one answer has."`
	Effort          *string `json:"effort" enum:"low,medium,high" doc:"The reasoning effort; null if the model decides."`
	Fallback        bool    `json:"fallback" doc:"Another model answers if the first one cannot."`
}

// Limits of client input and of a turn.
const (
	MaxInputRunes     = 100_000 // in one user message
	MaxSteeringRunes  = 16_000  // in one steering input
	MaxInputItems     = 32      // texts and files of one input
	MaxPendingInputs  = 10      // pending steering inputs of one turn
	MaxTurnInputs     = 100     // steering inputs that one turn accepts
	MaxFollowUps      = 50      // queued or held follow-ups of one conversation
	MaxFollowUpOrder  = 500     // follow-ups that one order can name; inputs that turns returned can exceed MaxFollowUps
	MaxAttachments    = 20      // files of one message
	MaxClientIDLength = 128     // of client_steering_id and Idempotency-Key
)

// InputItem is one item of the user's input.
type InputItem struct {
	Type   string  `json:"type" enum:"text,file"`
	Text   string  `json:"text,omitempty"`
	FileID *FileID `json:"file_id,omitempty"`
}

// BranchRequest requests that the turn creates a sibling of a message.
type BranchRequest struct {
	MessageID MessageID `json:"message_id"`
	Mode      string    `json:"mode" enum:"edit,regenerate"`
}

// The values of if_busy other than reject, the default: what POST /chat does with the input while a turn is live.
const (
	BusyQueue = "queue"
	BusySteer = "steer"
)

// Turn is a live or finished turn in the form that clients read.
type Turn struct {
	TurnID            TurnID         `json:"turn_id"`
	ConversationID    ConversationID `json:"conversation_id"`
	State             TurnState      `json:"state" enum:"queued,running,requires_action,recovering,cancelling,completed,cancelled,failed,incomplete"`
	StopReason        *StopReason    `json:"stop_reason"`
	AcceptingSteering bool           `json:"accepting_steering"`
	LastSequence      int64          `json:"last_sequence"`
	Profile           Profile        `json:"profile" doc:"The resolved profile, which produces the answer."`
	Usage             *Usage         `json:"usage"`
	Error             *TurnError     `json:"error"`
	MessageID         MessageID      `json:"message_id" doc:"The assistant's message."`
	PendingApprovals  []Approval     `json:"pending_approvals"`
	CreatedAt         time.Time      `json:"created_at"`
	FinishedAt        *time.Time     `json:"finished_at"`
}

// Delivery is the time at which a steering input takes effect.
type Delivery string

// The deliveries: when the model has finished its sentence or its tools have ended, or at once, within the sentence. Both cut
// off the open answer.
const (
	DeliverNextStep  Delivery = "next_step"
	DeliverInterrupt Delivery = "interrupt"
)

// CancelScope is what a cancel applies to.
type CancelScope string

// The scopes: CancelTurn cancels the turn and holds its queue; CancelTurnAndFollowUps cancels both.
const (
	CancelTurn             CancelScope = "turn"
	CancelTurnAndFollowUps CancelScope = "turn_and_follow_ups"
)

// Covers reports whether a cancel of this scope includes everything that a cancel of the other scope does.
func (s CancelScope) Covers(other CancelScope) bool {
	return s == CancelTurnAndFollowUps || other != CancelTurnAndFollowUps
}

// CancelledBy is the origin of a cancel.
type CancelledBy string

// The origins of a cancel.
const (
	CancelledByUser     CancelledBy = "user"
	CancelledByOperator CancelledBy = "operator"
	CancelledByDeletion CancelledBy = "deletion" // of the conversation or its project
)

// SteeringReceipt is the response to an accepted steering command. The command is committed before the receipt is sent.
type SteeringReceipt struct {
	SteeringID SteeringID `json:"steering_id"`
	TurnID     TurnID     `json:"turn_id"`
	State      string     `json:"state" enum:"accepted"`
	Sequence   int64      `json:"sequence" doc:"The sequence of the event that reports the command to every reader."`
	Replayed   bool       `json:"replayed"`
}

// Accepted returns the receipt of a command. sequence is that of the event that reports it; replayed is true for a repeated command.
func Accepted(command SteeringID, turn TurnID, sequence int64, replayed bool) SteeringReceipt {
	return SteeringReceipt{SteeringID: command, TurnID: turn, State: "accepted", Sequence: sequence, Replayed: replayed}
}

// IdempotencyKey identifies a creating request, so that a client can repeat it without a second effect. A key is unique
// within the account, the method and the concrete path.
type IdempotencyKey struct {
	Method, Path, Key string
	BodyHash          [32]byte
	Streamed          bool // BodyHash is known only when the handler has read the body
}

// JoinTexts returns the texts of an input as one, with an empty line between them. Files have none.
func JoinTexts(items []InputItem) string {
	var texts []string
	for _, item := range items {
		if item.Type != "file" {
			texts = append(texts, item.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// CheckSteering returns why an input cannot steer a turn or a research task: it has files, no text, or a text that is too long.
// The text stays as the user wrote it.
func CheckSteering(text string, files int) error {
	switch {
	case files > 0:
		return Invalid("body.input", "must not contain files when it steers")
	case strings.TrimSpace(text) == "":
		return Invalid("body.input", "must contain text")
	case utf8.RuneCountInString(text) > MaxSteeringRunes:
		return Invalid("body.input", fmt.Sprintf("must have at most %d characters when it steers", MaxSteeringRunes))
	}
	return nil
}
