package protocol

import (
	"encoding/json"
	"time"
)

// Profile is how much thought an answer gets; which model stands behind it is the service's business.
type Profile string

// The profiles. Auto resolves to one of the others.
const (
	ProfileAuto          Profile = "auto"
	ProfileBalanced      Profile = "balanced"
	ProfileDeepReasoning Profile = "deep_reasoning"
	ProfileCoding        Profile = "coding"
)

// Profiles lists what a client may name.
var Profiles = []Profile{ProfileAuto, ProfileBalanced, ProfileDeepReasoning, ProfileCoding}

// Valid says whether the profile is one of Profiles.
func (p Profile) Valid() bool {
	return p == ProfileAuto || p == ProfileBalanced || p == ProfileDeepReasoning || p == ProfileCoding
}

// Limits of what a client may send, and of what a turn may hold.
const (
	MaxInputRunes     = 100_000 // of one user message
	MaxSteeringRunes  = 16_000  // of one steering input
	MaxPendingInputs  = 10      // steering inputs waiting in one turn
	MaxTurnInputs     = 100     // steering inputs that one turn accepts
	MaxFollowUps      = 50      // queued or held items of one conversation
	MaxClientIDLength = 128     // client_steering_id, Idempotency-Key
)

// InputItem is one piece of what the user sends.
type InputItem struct {
	Type   string  `json:"type" enum:"text,file"`
	Text   string  `json:"text,omitempty"`
	FileID *FileID `json:"file_id,omitempty"`
}

// BranchRequest asks that the turn begins a sibling of a message.
type BranchRequest struct {
	MessageID MessageID `json:"message_id"`
	Mode      string    `json:"mode" enum:"edit,regenerate"`
}

// What POST /chat does while a turn is live, unless it refuses (reject, the default).
const (
	BusyQueue = "queue"
	BusySteer = "steer"
)

// Turn is a live or finished turn as a client reads it.
type Turn struct {
	TurnID            TurnID         `json:"turn_id"`
	ConversationID    ConversationID `json:"conversation_id"`
	State             TurnState      `json:"state" enum:"queued,running,requires_action,recovering,cancelling,completed,cancelled,failed,incomplete"`
	StopReason        *StopReason    `json:"stop_reason"`
	AcceptingSteering bool           `json:"accepting_steering"`
	LastSequence      int64          `json:"last_sequence"`
	Profile           Profile        `json:"profile" doc:"The profile that answers: the resolved one."`
	Usage             *Usage         `json:"usage"`
	Error             *TurnError     `json:"error"`
	MessageID         MessageID      `json:"message_id" doc:"The assistant's message."`
	PendingApprovals  []Approval     `json:"pending_approvals"`
	CreatedAt         time.Time      `json:"created_at"`
	FinishedAt        *time.Time     `json:"finished_at"`
}

// Approval is a tool call that waits for a decision. None is asked for by the tools that exist.
type Approval struct {
	ApprovalID string `json:"approval_id"`
	ToolID     ToolID `json:"tool_id"`
}

// Delivery says when a steering input takes effect.
type Delivery string

// The deliveries: at the next model step, or at once, cutting the open answer.
const (
	DeliverNextStep  Delivery = "next_step"
	DeliverInterrupt Delivery = "interrupt"
)

// CancelScope is what a cancel ends.
type CancelScope string

// The scopes: the turn alone, which holds the queue, or the queue with it.
const (
	CancelTurn             CancelScope = "turn"
	CancelTurnAndFollowUps CancelScope = "turn_and_follow_ups"
)

// Covers reports whether a cancel of this scope does all that the other one asks for.
func (s CancelScope) Covers(other CancelScope) bool {
	return s == CancelTurnAndFollowUps || other != CancelTurnAndFollowUps
}

// CancelledBy is who asked for a cancel.
type CancelledBy string

// Who cancels.
const (
	CancelledByUser     CancelledBy = "user"
	CancelledByOperator CancelledBy = "operator"
	CancelledByDeletion CancelledBy = "deletion" // of the conversation
)

// SteeringReceipt answers an accepted steering command. It was committed before it was sent.
type SteeringReceipt struct {
	SteeringID SteeringID `json:"steering_id"`
	TurnID     TurnID     `json:"turn_id"`
	State      string     `json:"state" enum:"accepted"`
	Sequence   int64      `json:"sequence" doc:"The event that told every reader."`
	Replayed   bool       `json:"replayed"`
}

// TurnSpec is what a turn was asked to do. It is stored with the turn and never changes.
type TurnSpec struct {
	AccountID          AccountID      `json:"account_id"`
	TurnID             TurnID         `json:"turn_id"`
	ConversationID     ConversationID `json:"conversation_id"`
	BranchID           BranchID       `json:"branch_id"`
	UserMessageID      MessageID      `json:"user_message_id"`
	AssistantMessageID MessageID      `json:"assistant_message_id"`
	ParentMessageID    *MessageID     `json:"parent_message_id"` // the message before the user's
	FollowUpID         *FollowUpID    `json:"follow_up_id"`      // the queue item that became this turn
	Input              string         `json:"-"`                 // the user's text; stored as the message only
	Requested          Profile        `json:"requested"`
	Routing            TurnRouting    `json:"routing"`
	CreatedAt          time.Time      `json:"created_at"`
}

// TurnBegin is the first transition of a turn, as StartTurn stores it beside the rows.
type TurnBegin struct {
	Frames   []byte // events 1..Last, one line each
	Last     int64
	State    TurnState
	Accepts  bool // the steering window
	Payloads []Payload
}

// TurnStart asks the store to begin a turn, in one transaction.
type TurnStart struct {
	AccountID      AccountID
	Owner          NodeID          // the node that will run it, epoch 1
	ConversationID *ConversationID // nil: a new conversation
	Input          string
	Expected       *ExpectedHead // nil: not checked
	Branch         *BranchRequest
	Profile        Profile // empty: the conversation's, else auto
	IfBusy         string
	Temporary      bool
	MaxLiveTurns   int
	Idempotency    *IdempotencyKey
	RequestID      string // for the log
	At             time.Time
	// Begin is pure. It gets the spec with every identifier set, Requested resolved from the request and the
	// conversation, and returns the first transition; it also fills spec.Routing.
	Begin func(spec *TurnSpec) (TurnBegin, error)
}

// ExpectedHead is the head that the client saw; a nil ID means an empty branch.
type ExpectedHead struct{ ID *MessageID }

// IdempotencyKey makes a creating request repeatable. Scope: account, method, concrete path, key.
type IdempotencyKey struct {
	Method, Path, Key string
	BodyHash          [32]byte
}

// TurnStartResult is what StartTurn did: exactly one of Spec, FollowUp, Receipt and Busy is set.
type TurnStartResult struct {
	Spec     *TurnSpec // the turn, begun now or (Replayed) by an earlier request with the same key
	Begin    TurnBegin // not with Replayed
	Replayed bool
	FollowUp *FollowUp        // IfBusy queue
	Receipt  *SteeringReceipt // Replayed: an earlier request with the same key steered a turn
	// IfBusy steer: the live turn that is to be steered, with an input that has the key as its name. The key stays bound to
	// this turn for as long as the turn may take the input, so a repeat finds what became of it.
	Busy *TurnID
}

// KeptStart is what an earlier POST /chat with the same key did: exactly one field is set.
type KeptStart struct {
	TurnID   *TurnID
	FollowUp *FollowUp
	Receipt  *SteeringReceipt
}

// FollowUpChange is what an account does to an item of its queue.
type FollowUpChange struct {
	AccountID      AccountID
	ConversationID ConversationID
	FollowUpID     FollowUpID
	State          string  // queued, held or cancelled
	Content        *string // nil: as it is
	Version        *int64  // the one that the account saw; nil: it did not say
	At             time.Time

	// Set by the node that would run the queue's next turn; without Begin none is begun.
	Owner        NodeID
	MaxLiveTurns int
	Begin        func(spec *TurnSpec) (TurnBegin, error)
}

// TurnAppend is one batch of a turn's log: events that become visible once it is durable, and what goes with them.
// It is stored only if the turn is still owned by (Owner, Epoch), is not terminal and its next sequence is First.
type TurnAppend struct {
	AccountID   AccountID
	TurnID      TurnID
	Owner       NodeID
	Epoch       int32
	First, Last int64
	Frames      []byte // events First..Last, one line each
	State       TurnState
	Accepts     bool
	Records     []TurnRecord
	Patient     bool // nothing but more text: on a busy node it may wait a moment for the appends of other turns
}

// TurnRecord is a private entry of the log, unique by (turn, Kind, Key): what recovery and command look-ups need and
// readers do not see.
type TurnRecord struct {
	Kind     string // one of the kinds below
	Key      string
	Sequence int64 // the event it went with
	Body     json.RawMessage
}

// SteeringRecord is the body of RecordSteering and, without Hash, of RecordWithdraw.
type SteeringRecord struct {
	SteeringID SteeringID `json:"steering_id"`
	Hash       string     `json:"hash"` // of the input, to tell a repeat from another input with the same name
}

// The kinds of private records.
const (
	RecordStep     = "step"     // Key: the step's number; a finished model step
	RecordSteering = "steering" // Key: the client_steering_id; an accepted input
	RecordCancel   = "cancel"   // Key: empty for the first cancel, its scope for one that widened it
	RecordWithdraw = "withdraw" // Key: the steering_id; an input that was taken back
)

// TurnFinish is the last batch of a turn, with all that ends with it.
type TurnFinish struct {
	TurnAppend
	Spec         *TurnSpec
	StopReason   StopReason
	Usage        Usage
	Error        *TurnError
	ModelID      string
	Parts        []Part // the assistant's message as it stays
	Status       MessageStatus
	Parked       []ParkedInput // returned steering that becomes held follow-ups
	PauseQueue   bool          // queued follow-ups become held; on every end but completed, and where a cancel asked for it
	DropQueue    bool          // queued follow-ups become cancelled: a cancel of scope turn_and_follow_ups
	Mended       bool          // the log cannot be read as it is; see actors.TurnStore.MendTurn
	At           time.Time
	MaxLiveTurns int
	// Begin makes the first transition of the turn that follows from the queue; see TurnStart.Begin.
	Begin func(spec *TurnSpec) (TurnBegin, error)
}

// ParkedInput is a returned steering input on its way into the queue.
type ParkedInput struct {
	FollowUpID FollowUpID
	Text       string
}

// StartedTurn is a turn that the store began by itself, from the queue.
type StartedTurn struct {
	Spec  *TurnSpec
	Begin TurnBegin
	Epoch int32
}

// TurnHead is where a turn stands in the directory.
type TurnHead struct {
	State        TurnState
	Accepts      bool
	Owner        *NodeID // nil: nobody's
	OwnerAddress string  // where the owner's peers reach it; empty on a single node
	OwnerDead    bool
	Epoch        int32
	LastSequence int64
}

// StoredTurn is everything that adoption needs.
type StoredTurn struct {
	Spec    *TurnSpec
	Head    TurnHead
	Frames  []byte // the whole log so far, one event a line
	Records []TurnRecord
}

// Claim is a turn that a node has taken over: its epoch was raised.
type Claim struct {
	AccountID AccountID
	TurnID    TurnID
	Epoch     int32
	Cause     string // restart, node_lost, actor_lost, drain; operator: it was seized to be ended
	Adoptions int    // how often the turn was claimed, this time included
}

// HistoryMessage is one earlier message of a branch, for the model's context.
type HistoryMessage struct {
	Role   string
	Parts  []Part
	Status MessageStatus
}
