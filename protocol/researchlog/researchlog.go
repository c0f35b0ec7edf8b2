// Package researchlog defines the data that the actors and the store of research tasks exchange: the specification of a task,
// the entries of its journal, its steps with their results, and its owner. None of it is published.
//
// It imports only the packages protocol and turnlog, and decides nothing.
package researchlog

import (
	"encoding/json"
	"errors"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Spec is the specification of a task. It is stored with the task and never changes.
type Spec struct {
	AccountID      protocol.AccountID
	TaskID         protocol.TaskID
	ConversationID protocol.ConversationID
	ProjectID      *protocol.ProjectID // of the conversation when the task started
	TurnID         *protocol.TurnID    // whose tool started the task; nil: a request did
	SessionID      *protocol.SessionID // of the request
	Question       string
	Depth          protocol.ResearchDepth
	Sources        []protocol.ResearchSource
	FileIDs        []protocol.FileID // the only files that are searched; none: all that the account consents to
	Budget         protocol.ResearchAmounts
	Language       string // of the texts that the service adds to the report: a language of the app
	CreatedAt      time.Time
}

// StepKind is what a step does.
type StepKind string

// The kinds of steps. A step of a model has a cost in tokens, a read one in pages.
const (
	StepPlan      StepKind = "plan"      // a model divides the question
	StepRevise    StepKind = "revise"    // a model changes the plan as the user asks
	StepSearch    StepKind = "search"    // one place is searched for one question
	StepRead      StepKind = "read"      // a source is read, and its passages about the questions are chosen
	StepJudge     StepKind = "judge"     // a model quotes what answers the questions from the passages of one source
	StepGaps      StepKind = "gaps"      // a model names what to search further, for example because of contradictions
	StepWrite     StepKind = "write"     // a model writes the section about one question
	StepSummarize StepKind = "summarize" // a model writes the summary of all sections
)

// StepMarker begins the instructions of every call of a model, so that the scripted model recognises them. The kind follows.
const StepMarker = "Research step: "

// Step is one unit of work whose result is journalled. Its key is unique within the task, and its input never changes: a
// stored result is used by every later owner.
type Step struct {
	Key    string                  `json:"key"`
	Kind   StepKind                `json:"kind"`
	Source protocol.ResearchSource `json:"source,omitempty"` // of search and read
	Asked  string                  `json:"asked,omitempty"`  // the question of the task
	About  []string                `json:"about,omitempty"`  // questions of the plan
	Inputs []string                `json:"inputs,omitempty"` // of the user, oldest first
	Found  *Candidate              `json:"found,omitempty"`  // of read and judge
	Texts  []string                `json:"texts,omitempty"`  // passages of judge; sections of summarize; pairs of gaps
	Quotes []Quote                 `json:"quotes,omitempty"` // of write
	Limit  int                     `json:"limit,omitempty"`  // how much the result may contain: questions, candidates or quotes
	Tokens int64                   `json:"tokens,omitempty"` // what a model may use at most, with the input
	Files  []protocol.FileID       `json:"files,omitempty"`  // the only files of search; none: all
}

// Quote is an excerpt with the number of its source, for a model that writes.
type Quote struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Text   string `json:"text"`
}

// Candidate is something that a search found.
type Candidate struct {
	Title          string                   `json:"title"`
	URL            string                   `json:"url,omitempty"`
	FileID         *protocol.FileID         `json:"file_id,omitempty"`
	ConversationID *protocol.ConversationID `json:"conversation_id,omitempty"`
	MessageID      *protocol.MessageID      `json:"message_id,omitempty"`
	Snippet        string                   `json:"snippet,omitempty"`
}

// Passage is a part of a source.
type Passage struct {
	Text    string `json:"text"`
	Locator string `json:"locator,omitempty"`
}

// Result is the result of a step.
type Result struct {
	Failed     string      `json:"failed,omitempty"`      // why the step has none, a sentence; the other fields are empty then
	DailyLimit bool        `json:"daily_limit,omitempty"` // it failed because the account has used its tokens of the day
	Questions  []string    `json:"questions,omitempty"`
	Struck     []int       `json:"struck,omitempty"` // of revise: indices in About
	Candidates []Candidate `json:"candidates,omitempty"`
	Page       *Page       `json:"page,omitempty"`
	Quotes     []Quote     `json:"quotes,omitempty"` // of judge; the number is that of the question in About, from 1
	Text       string      `json:"text,omitempty"`

	// What the step has cost.
	Usage protocol.Usage `json:"usage,omitzero"`
	Pages int64          `json:"pages,omitempty"`
}

// Page is a source as it was read.
type Page struct {
	Title       string          `json:"title"`
	URL         string          `json:"url,omitempty"`       // the final address
	Canonical   string          `json:"canonical,omitempty"` // the address that the page calls its own
	Author      string          `json:"author,omitempty"`
	DOI         string          `json:"doi,omitempty"`
	SHA256      string          `json:"sha256"`                // of the text
	Fingerprint json.RawMessage `json:"fingerprint,omitempty"` // of the text
	AccessedAt  time.Time       `json:"accessed_at"`
	Passages    []Passage       `json:"passages,omitempty"`
}

// EntryKind is what happened to a task.
type EntryKind string

// The kinds of entries.
const (
	EntryBegin    EntryKind = "begin"     // a node has a slot for the task
	EntryResult   EntryKind = "result"    // a step has a result
	EntrySteering EntryKind = "steering"  // the user steers
	EntryTimeOver EntryKind = "time_over" // the budget of seconds is used up
	EntryCancel   EntryKind = "cancel"
	EntryStopped  EntryKind = "stopped"  // the work has stopped after a cancel
	EntryAdopt    EntryKind = "adopt"    // another owner continues
	EntryComplete EntryKind = "complete" // the report can be stored
	EntryReject   EntryKind = "reject"   // the report cannot be stored
	EntryGiveUp   EntryKind = "give_up"  // the processes that ran the task ended too often
	EntryFail     EntryKind = "fail"     // the budget does not suffice
)

// Entry is one entry of the journal of a task. The machine of a task is a function of its specification and its entries.
type Entry struct {
	Kind     EntryKind           `json:"kind"`
	Step     string              `json:"step,omitempty"` // of result
	Digest   string              `json:"digest,omitempty"`
	Result   *Result             `json:"result,omitempty"`
	Steering *Steering           `json:"steering,omitempty"`
	Detail   string              `json:"detail,omitempty"`  // of reject and fail
	Message  *protocol.MessageID `json:"message,omitempty"` // of complete
	Seconds  int64               `json:"seconds,omitempty"` // for which the task has run so far
	AtOnce   bool                `json:"at_once,omitempty"` // of result: the state of its source follows from it, and not from the end of the round, as in former journals
}

// Steering is a command of the user.
type Steering struct {
	SteeringID protocol.SteeringID           `json:"steering_id"`
	ClientID   string                        `json:"client_id"`
	Digest     string                        `json:"digest"` // of the body of the command
	Kind       protocol.ResearchSteeringType `json:"kind"`
	Text       string                        `json:"text,omitempty"`
	Strike     []string                      `json:"strike,omitempty"` // identifiers of questions of the plan
	Add        []string                      `json:"add,omitempty"`
}

// Source is a source of which excerpts are kept.
type Source struct {
	protocol.ResearchKeptSource
	Ordinal int
}

// Report is what a task ends with.
type Report struct {
	ConversationID protocol.ConversationID
	ArtifactID     protocol.ArtifactID
	MessageID      protocol.MessageID
	PartIDs        []protocol.PartID
	Title          string
	Content        string // Markdown
	Notice         string // the text of the message
	Citations      []protocol.Citation
	Checks         protocol.ResearchChecks
}

// Append is one batch of a task's journal and log, with the row that results from it. It is stored only if (Owner, Epoch)
// still owns the task and its next sequence is First.
type Append struct {
	AccountID   protocol.AccountID
	TaskID      protocol.TaskID
	Owner       protocol.NodeID
	Epoch       int32
	First, Last int64
	Frames      []byte // events First..Last, one line each
	FirstEntry  int64
	Entries     []Entry
	Task        protocol.ResearchTask   // the state after the batch; without what the specification contains
	Sources     []Source                // new or changed
	Report      *Report                 // with the state completed
	Returned    []turnlog.ReturnedInput // inputs that are returned, with a terminal state
	Usage       protocol.Usage          // of all model calls so far
	At          time.Time
}

// Claim is the ownership of a task, and the stored state from which its new owner continues.
type Claim struct {
	Spec
	Epoch        int32
	Attempts     int // how often the task was claimed since its last entry, adoptions apart
	State        protocol.ResearchState
	NextSequence int64
	Version      int64
	Entries      []Entry
}

// Claimed names a task and the epoch of its owner.
type Claimed struct {
	AccountID protocol.AccountID
	TaskID    protocol.TaskID
	Epoch     int32
}

// Work returns the task and the epoch of the claim.
func (c Claimed) Work() (protocol.TaskID, int32) { return c.TaskID, c.Epoch }

// ErrEnded means that a task has ended.
var ErrEnded = errors.New("the research task has ended")

// Conflict returns the error for a command that the state of a task does not allow.
func Conflict(current *protocol.ResearchTask) error {
	return protocol.Conflict(protocol.CodeConflict, current, "The research task has already ended.")
}
