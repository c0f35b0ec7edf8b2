package protocol

import "time"

// ResearchDepth is how thoroughly a research task works.
type ResearchDepth string

// The depths.
const (
	ResearchQuick    ResearchDepth = "quick"
	ResearchStandard ResearchDepth = "standard"
	ResearchDeep     ResearchDepth = "deep"
)

// ResearchSource is a place that a research task searches.
type ResearchSource string

// The places.
const (
	ResearchWeb           ResearchSource = "web"
	ResearchFiles         ResearchSource = "files"         // of the account, or those that the request names
	ResearchConversations ResearchSource = "conversations" // of the account
	ResearchConnectors    ResearchSource = "connectors"    // for requests only: no task searches one yet
)

// ResearchSources lists every place, in the order in which a task searches them.
var ResearchSources = []ResearchSource{ResearchWeb, ResearchFiles, ResearchConversations}

// Limits of research tasks.
const (
	MaxResearchQuestion = 4000 // characters
	MaxResearchRunning  = 3    // tasks of an account that run at the same time
	MaxResearchWaiting  = 100  // tasks of an account that have not ended
	MaxResearchPlan     = 24   // questions of a plan
	MaxResearchStep     = 400  // characters of a question of a plan
	MaxResearchInputs   = 10   // inputs of a user that wait to be applied
)

// ResearchAmounts is an amount of what a research task uses: its budget, or what it has spent.
type ResearchAmounts struct {
	Tokens  int64 `json:"tokens" minimum:"0" doc:"Input and output tokens of models."`
	Pages   int64 `json:"pages" minimum:"0" doc:"Pages and documents that are read."`
	Seconds int64 `json:"seconds" minimum:"0" doc:"Time since the task began to run, without the time in which no node ran it."`
}

// ResearchBudgets are the budgets of the depths.
var ResearchBudgets = map[ResearchDepth]ResearchAmounts{
	ResearchQuick:    {Tokens: 100_000, Pages: 12, Seconds: 300},
	ResearchStandard: {Tokens: 400_000, Pages: 40, Seconds: 1200},
	ResearchDeep:     {Tokens: 1_500_000, Pages: 120, Seconds: 3600},
}

// ResearchProgress is how far a research task is.
type ResearchProgress struct {
	Done         int `json:"done" doc:"The number of steps that have ended."`
	Total        int `json:"total" doc:"The number of steps that are known so far; it grows while the task finds more to do."`
	SourcesFound int `json:"sources_found" doc:"Distinct sources that the searches found."`
	SourcesKept  int `json:"sources_kept" doc:"Sources of which at least one excerpt is kept."`
	Reused       int `json:"reused" doc:"Steps whose stored results were used again after an interruption."`
}

// ResearchStep is one question of the plan of a research task.
type ResearchStep struct {
	StepID   string            `json:"step_id" doc:"Unique within the task, for example q3."`
	Question string            `json:"question"`
	State    ResearchStepState `json:"state" enum:"open,running,done,struck,skipped" doc:"struck: by the user; skipped: the budget did not suffice, or the user wanted the report at once."`
}

// ResearchFailureCode is the reason why a research task has failed.
type ResearchFailureCode string

// The reasons.
const (
	ResearchModelFailed    ResearchFailureCode = "model_failed"    // the model could not be used, although it was tried for a while
	ResearchBudgetExceeded ResearchFailureCode = "budget_exceeded" // the budget did not suffice for a report
	ResearchDailyLimit     ResearchFailureCode = "daily_limit"     // the account has used its tokens of the day
	ResearchNotStored      ResearchFailureCode = "report_rejected" // the report could not be stored: a quota, or an archived project
	ResearchInterrupted    ResearchFailureCode = "interrupted"     // the processes that ran the task ended too often
)

// ResearchFailure is why a research task has failed.
type ResearchFailure struct {
	Code   ResearchFailureCode `json:"code" enum:"model_failed,budget_exceeded,daily_limit,report_rejected,interrupted"`
	Detail string              `json:"detail"`
}

// ResearchChecks is what the checks of the citations of a report found.
type ResearchChecks struct {
	Sentences   int `json:"sentences"`
	Factual     int `json:"factual" doc:"Sentences that state something that needs a source."`
	Supported   int `json:"supported" doc:"Factual sentences with a citation whose excerpt supports them."`
	Unsupported int `json:"unsupported" doc:"Factual sentences that are marked as not supported by a source."`
	Removed     int `json:"removed" doc:"Citations of the model that were removed, because no kept excerpt supports the sentence."`
}

// ResearchTask is a research task: work that finds and reads sources, and writes a report with citations.
type ResearchTask struct {
	TaskID         TaskID           `json:"task_id"`
	ConversationID ConversationID   `json:"conversation_id"`
	TurnID         *TurnID          `json:"turn_id" doc:"The turn whose tool started the task; null: a request did."`
	Question       string           `json:"question"`
	Depth          ResearchDepth    `json:"depth" enum:"quick,standard,deep"`
	Sources        []ResearchSource `json:"sources" enum:"web,files,conversations" doc:"The places that are searched."`
	State          ResearchState    `json:"state" enum:"queued,running,cancelling,completed,failed,cancelled"`
	Phase          ResearchPhase    `json:"phase" enum:"planning,searching,reading,synthesizing"`
	Progress       ResearchProgress `json:"progress"`
	Budget         ResearchAmounts  `json:"budget"`
	Spent          ResearchAmounts  `json:"spent" doc:"What the task has used so far. A model's answer that exceeds the budget is counted in full."`
	Plan           []ResearchStep   `json:"plan"`
	Checks         *ResearchChecks  `json:"checks" doc:"Of the citations of the report; null before the report is stored."`
	ArtifactID     *ArtifactID      `json:"artifact_id" doc:"The report; null before the task is completed."`
	MessageID      *MessageID       `json:"message_id" doc:"The message with the report; null before the task is completed."`
	Failure        *ResearchFailure `json:"failure"`
	LastSequence   int64            `json:"last_sequence" doc:"The sequence of the last event."`
	Version        int64            `json:"version" doc:"Changes whenever anything about the task changes."`
	CreatedAt      time.Time        `json:"created_at"`
	FinishedAt     *time.Time       `json:"finished_at"`
}

// Address returns the path of the task. Its version is no condition of any request.
func (t *ResearchTask) Address() string { return "/research-tasks/" + t.TaskID.String() }

// ResearchExcerpt is a passage of a source that supports the report.
type ResearchExcerpt struct {
	ExcerptID string `json:"excerpt_id" doc:"Unique within the task, for example s4e1."`
	Text      string `json:"text" doc:"The words of the source, unchanged."`
	Locator   string `json:"locator" doc:"Where the passage is in the source, for example \"page 3\" or \"paragraph 12\"; empty: not known."`
}

// ResearchKeptSource is a source of which a research task keeps excerpts.
type ResearchKeptSource struct {
	SourceID       string            `json:"source_id" doc:"Unique within the task, for example s4."`
	Number         *int              `json:"number" doc:"The number by which the report cites the source; null: it does not."`
	Kind           ResearchSource    `json:"kind" enum:"web,files,conversations"`
	Title          string            `json:"title"`
	URL            *string           `json:"url"`
	FileID         *FileID           `json:"file_id"`
	ConversationID *ConversationID   `json:"conversation_id"`
	AccessedAt     time.Time         `json:"accessed_at"`
	SHA256         string            `json:"sha256" doc:"Of the text as it was read, in hexadecimal digits."`
	Excerpts       []ResearchExcerpt `json:"excerpts"`
}

// ResearchSteeringType is what an input of the user asks of a research task.
type ResearchSteeringType string

// The types.
const (
	ResearchInput    ResearchSteeringType = "input"     // a text that the model takes into account
	ResearchPlan     ResearchSteeringType = "plan"      // questions to strike and to add
	ResearchWriteNow ResearchSteeringType = "write_now" // the report is written with what there is
)

// ResearchReceipt is the response to an accepted steering command of a research task. The command is committed before.
type ResearchReceipt struct {
	SteeringID SteeringID `json:"steering_id"`
	TaskID     TaskID     `json:"task_id"`
	State      string     `json:"state" enum:"accepted"`
	Sequence   int64      `json:"sequence" doc:"Of the event that reports the acceptance."`
	Replayed   bool       `json:"replayed" doc:"true: the response to an earlier request with the same client_steering_id."`
}
