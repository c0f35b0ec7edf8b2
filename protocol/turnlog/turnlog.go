// Package turnlog defines the data that the actors and the store of turns exchange: the specification of a turn, the
// batches of its log with their private records, its start, its end and its owner. None of it is published.
//
// It imports only package protocol, and decides nothing.
package turnlog

import (
	"encoding/json"
	"time"

	"turnstone/protocol"
)

// Spec is the specification of a turn. It is stored with the turn and never changes.
type Spec struct {
	AccountID          protocol.AccountID      `json:"account_id"`
	TurnID             protocol.TurnID         `json:"turn_id"`
	ConversationID     protocol.ConversationID `json:"conversation_id"`
	BranchID           protocol.BranchID       `json:"branch_id"`
	UserMessageID      protocol.MessageID      `json:"user_message_id"`
	AssistantMessageID protocol.MessageID      `json:"assistant_message_id"`
	ParentMessageID    *protocol.MessageID     `json:"parent_message_id"`          // the message before the user's
	PreviousProfile    protocol.Profile        `json:"previous_profile,omitempty"` // of that message; empty if there is none
	FollowUpID         *protocol.FollowUpID    `json:"follow_up_id"`               // the queue item that became this turn
	Input              string                  `json:"-"`                          // the user's text; stored only as the message
	Attachments        []protocol.FileID       `json:"attachments,omitempty"`      // of the user's message
	Requested          protocol.Profile        `json:"requested"`
	Routing            protocol.TurnRouting    `json:"routing"`
	CreatedAt          time.Time               `json:"created_at"`

	// What the project of the conversation determined when the turn started; absent if there is none. A node that adopts
	// the turn uses the same version of the instructions and the same tools.
	ProjectID           *protocol.ProjectID `json:"project_id,omitempty"`
	InstructionsVersion int64               `json:"instructions_version,omitempty"` // 0: no instructions
	DisabledTools       []string            `json:"disabled_tools,omitempty"`       // and those that the request switched off
	AskAll              bool                `json:"ask_all,omitempty"`              // every call of a tool needs an approval

	AccountInstructions int64 `json:"account_instructions,omitempty"` // the version that the account's had when the turn started; 0: none

	// Granted are the sources of memory to which the account consented when the turn started; none in a temporary
	// conversation. A later revocation applies to the turn, a later consent does not.
	Granted []protocol.MemorySource `json:"granted,omitempty"`

	ApprovalLifetime time.Duration `json:"approval_lifetime,omitempty"` // after which an approval expires; 0: a day
}

// Instructions are the user's for every request of a turn; empty: none.
type Instructions struct {
	Project string // of the project of the conversation
	Account string
}

// Begin is the first transition of a turn. StartTurn stores it together with the turn's rows.
type Begin struct {
	Frames   []byte // events 1..Last, one line each
	Last     int64
	State    protocol.TurnState
	Accepts  bool // the turn accepts steering
	Payloads []protocol.Payload
}

// Runner is the node that runs the turns that the store starts, passed to the store in addition to the request. The zero value
// is a node that runs no new turn, because it drains.
type Runner struct {
	NodeID       protocol.NodeID // owns the turns, with epoch 1
	MaxLiveTurns int             // per account
	// Begin returns the first transition. It is pure. It receives the spec with every identifier set and with Requested
	// resolved from the request and the conversation, and also sets spec.Routing.
	Begin func(spec *Spec) (Begin, error)
}

// Start is a client's request to start a turn. Nothing changes it.
type Start struct {
	AccountID      protocol.AccountID
	ConversationID *protocol.ConversationID // nil: a new conversation
	Input          string
	Attachments    []protocol.FileID // the input has a text, or at least one of them
	Expected       *ExpectedHead     // nil: not checked
	Branch         *protocol.BranchRequest
	Profile        protocol.Profile // empty: the conversation's, else auto
	IfBusy         string
	Temporary      bool
	Tools          *protocol.ToolChoice
	ProjectID      *protocol.ProjectID // of a new conversation; nil: none
	SessionID      *protocol.SessionID // of the request, for the work history of a project
	Idempotency    *protocol.IdempotencyKey
	RequestID      string // for the log
	At             time.Time
}

// ExpectedHead is the head message that the client saw; a nil ID means an empty branch.
type ExpectedHead struct{ ID *protocol.MessageID }

// StartResult is the result of StartTurn: exactly one of Spec, FollowUp, Receipt and Busy is set.
type StartResult struct {
	Spec     *Spec // the turn, started now or (Replayed) by an earlier request with the same key
	Begin    Begin // not set with Replayed
	Replayed bool
	FollowUp *protocol.FollowUp        // IfBusy queue
	Receipt  *protocol.SteeringReceipt // of the input that has steered a turn, now or (Replayed) with an earlier request with the same key
	// IfBusy steer: the live turn to steer, with an input that has SteersAs as its client_steering_id. The idempotency key
	// stays bound to both while the turn may accept the input, so a repeated request finds the outcome.
	Busy     *protocol.TurnID
	SteersAs string
}

// StoredStart is the stored result of an earlier POST /chat with the same key: exactly one field is set.
type StoredStart struct {
	TurnID   *protocol.TurnID
	FollowUp *protocol.FollowUp
	Receipt  *protocol.SteeringReceipt
}

// Queue names the follow-up queue of a conversation, and the time of a change.
type Queue struct {
	AccountID      protocol.AccountID
	ConversationID protocol.ConversationID
	At             time.Time
}

// NewFollowUp is a follow-up that is added to the end of its queue.
type NewFollowUp struct {
	Queue
	Content     string
	Attachments []protocol.FileID
	Profile     protocol.Profile // empty: that of the conversation when its turn starts
	Tools       *protocol.ToolChoice
}

// FollowUpChange is a change that an account makes to one of its follow-ups.
type FollowUpChange struct {
	Queue
	FollowUpID protocol.FollowUpID
	protocol.FollowUpChange
}

// FollowUpPromotion moves a follow-up to the front of its queue.
type FollowUpPromotion struct {
	Queue
	FollowUpID protocol.FollowUpID
	Interrupt  bool // the follow-up starts at the next end of the live turn, even if that turn does not complete
}

// Append is one batch of a turn's log: events, which become visible once the batch is durable, and the state and
// records stored with them. It is stored only if (Owner, Epoch) still owns the turn, the turn is not terminal and its
// next sequence is First.
type Append struct {
	AccountID   protocol.AccountID
	TurnID      protocol.TurnID
	Owner       protocol.NodeID
	Epoch       int32
	First, Last int64
	Frames      []byte // events First..Last, one line each
	State       protocol.TurnState
	Accepts     bool
	Records     []Record
	Deferrable  bool // contains only more text: on a busy node it may wait briefly for the appends of other turns
}

// Record is a private entry of the log, unique by (turn, Kind, Key). Recovery and command lookups use it; readers
// do not see it.
type Record struct {
	Kind     string // one of the kinds below
	Key      string
	Sequence int64 // of the event that it was stored with
	Body     json.RawMessage
}

// SteeringRecord is the body of RecordSteering and, without Hash, of RecordWithdraw and RecordApply.
type SteeringRecord struct {
	SteeringID protocol.SteeringID `json:"steering_id"`
	Hash       string              `json:"hash"` // of the input; differs for another input with the same client_steering_id
}

// The kinds of private records.
const (
	RecordStep     = "step"     // Key: the step's number; a finished model step
	RecordSteering = "steering" // Key: the client_steering_id; an accepted input
	RecordCancel   = "cancel"   // Key: empty for the first cancel, the scope for a cancel that widened it
	RecordWithdraw = "withdraw" // Key: the steering_id; a withdrawn input
	RecordApply    = "apply"    // Key: the steering_id; an input that the user wanted to be applied at once
	RecordApproval = "approval" // Key: the approval_id; a request for an approval, an ApprovalRecord
	RecordDecision = "decision" // Key: the approval_id; the decision on it, a DecisionRecord
	RecordUse      = "use"      // Key: the tool_id; a call that runs under an approval, a UseRecord
	RecordResult   = "result"   // Key: the result_id; the rest of a result that was cut, a ResultRecord
)

// ApprovalRecord is the body of a record of a request for an approval.
type ApprovalRecord struct {
	ID         string            `json:"id"` // of the approval, as a UUID
	Approval   protocol.Approval `json:"approval"`
	Definition string            `json:"definition"` // digest of the definition of the tool
}

// DecisionRecord is the body of a record of the decision on an approval.
type DecisionRecord struct {
	ID         string              `json:"id"`                   // of the approval, as a UUID
	SteeringID protocol.SteeringID `json:"steering_id,omitzero"` // of a decision of the user
	Decision   protocol.Decision   `json:"decision"`
	By         protocol.DecidedBy  `json:"by"`
	Session    string              `json:"session,omitempty"` // that has decided, as a UUID, for the audit; empty: not the user, or not known
	Hash       string              `json:"hash,omitempty"`    // of the command of the user, to distinguish a repeat from another decision
	At         time.Time           `json:"at"`
}

// UseRecord is the body of a record of a call that runs under an approval. Only the audit reads it.
type UseRecord struct {
	ApprovalID protocol.ApprovalID `json:"approval_id,omitzero"` // zero: a grant of the conversation
}

// Grant is the approval of every call of a tool with a resource, for the rest of a conversation.
type Grant struct {
	Tool       string
	Resource   string
	Definition string // digest of the definition of the tool
}

// ResultRecord is the body of a record of a result that was cut.
type ResultRecord struct {
	Text string `json:"text"` // the whole output
}

// Finish is the last batch of a turn, with the final message and the changes to the queue that are stored with it.
type Finish struct {
	Append
	Spec       *Spec
	StopReason protocol.StopReason
	Usage      protocol.Usage
	Error      *protocol.TurnError
	ModelID    string
	Parts      []protocol.Part // of the assistant's message, final
	Status     protocol.MessageStatus
	Returned   []ReturnedInput // returned steering inputs, which become held follow-ups
	PauseQueue bool            // queued follow-ups become held: at every end except completed
	DropQueue  bool            // queued follow-ups become cancelled: after a cancel of scope turn_and_follow_ups
	Repaired   bool            // part of the log cannot be read; see turn.Store.RepairTurn
	At         time.Time
}

// ReturnedInput is a returned steering input that becomes a held follow-up.
type ReturnedInput struct {
	FollowUpID protocol.FollowUpID
	Text       string
}

// Started is a turn that the store started from a follow-up.
type Started struct {
	Spec  *Spec
	Begin Begin
	Epoch int32
}

// Head is the current state and owner of a turn.
type Head struct {
	State        protocol.TurnState
	Accepts      bool
	Owner        *protocol.NodeID // nil: no owner
	OwnerDead    bool
	OwnerAddress string // of Owner; empty: it cannot be reached, or there is none
	Epoch        int32
	LastSequence int64
	Parked       bool // the turn waits for an approval, and has no owner until then
}

// Stored is everything that a node needs to adopt a turn.
type Stored struct {
	Spec    *Spec
	Head    Head
	Frames  []byte // the whole log so far, one event per line
	Records []Record
}

// CauseOperator is the cause of a claim that an operator makes only to end the turn. It is not published.
const CauseOperator protocol.RecoveryCause = "operator"

// CauseWake is the cause of a claim of a turn that waited for an approval without an owner. It is not published: the turn was not
// interrupted.
const CauseWake protocol.RecoveryCause = "wake"

// Claim is a turn that a node has taken over. The takeover raised its epoch.
type Claim struct {
	AccountID protocol.AccountID
	TurnID    protocol.TurnID
	Epoch     int32
	Cause     protocol.RecoveryCause // CauseOperator: the turn was claimed only to end it; CauseWake: it waited for an approval
	Adoptions int                    // number of claims of the turn so far, this one included; claims after a drain do not count
}

// Work returns the turn and the epoch of the claim.
func (c Claim) Work() (protocol.TurnID, int32) { return c.TurnID, c.Epoch }

// HistoryMessage is one earlier message of a branch, for the model's context.
type HistoryMessage struct {
	Role        string
	Parts       []protocol.Part
	Attachments []protocol.FileID
	Status      protocol.MessageStatus
	Pictures    []Picture // those of its files that the model gets; set by package actors/modelinput
	Shown       int       // how many of the parts, the last ones, show files; set by package actors/modelinput
}

// FileHead is what is known of a file without its text.
type FileHead struct {
	FileID        protocol.FileID
	Filename      string
	MediaType     string
	State         protocol.TextState
	Pages         int // or sheets, slides, chapters; 0: the type has none, or they are not known
	Width, Height int // of a picture, in pixels; 0: not known
	Size          int // of the text, in bytes
	Tokens        int // of the text; estimated
	Pictures      int // as which a model can get it: of a document of pictures its first pages; 0: none
	Reason        protocol.TextReason
	Notes         []protocol.TextNote // what of it was left out or guessed
}
