package protocol

import "time"

// Project is a group of conversations with common settings and instructions.
type Project struct {
	ProjectID         ProjectID    `json:"project_id"`
	Name              string       `json:"name"`
	State             ProjectState `json:"state" enum:"active,archived,deleted"`
	ArchivedAt        *time.Time   `json:"archived_at" doc:"Not null when the project is archived, or was archived when it was deleted."`
	DeletedAt         *time.Time   `json:"deleted_at"`
	PurgeAt           *time.Time   `json:"purge_at" doc:"The time from which a deleted project cannot be restored and is erased."`
	ConversationCount int64        `json:"conversation_count"`
	FileCount         int64        `json:"file_count"`
	Version           int64        `json:"version"`
	CreatedAt         time.Time    `json:"created_at"`
	UpdatedAt         time.Time    `json:"updated_at"`
}

// Address returns the path of the project.
func (p *Project) Address() string { return "/projects/" + p.ProjectID.String() }

// CurrentVersion returns the version of the project.
func (p *Project) CurrentVersion() int64 { return p.Version }

// The scopes of a project's memory: what the account's other conversations know, or only those of the project.
const (
	MemoryOfAccount = "account"
	MemoryOfProject = "project"
)

// The policies of a project for approvals: tools with effects need an approval, or all tools do.
const (
	ApproveEffects = "effects"
	ApproveAll     = "all"
)

// MaxProjectTools limits the tools that the settings of a project name.
const MaxProjectTools = 100

// ProjectSettings are the settings of a project. Settings that were never written have version 0.
type ProjectSettings struct {
	DefaultProfile *Profile   `json:"default_profile" enum:"auto,balanced,deep_reasoning,coding" doc:"The profile of turns whose request and whose conversation name none. Null: the default profile of the account."`
	MemoryScope    string     `json:"memory_scope" enum:"account,project"`
	Tools          ToolChoice `json:"tools" doc:"The tools that turns of the project may use."`
	ApprovalPolicy string     `json:"approval_policy" enum:"effects,all" doc:"The tools whose calls need an approval: those with effects, or all."`
	Version        int64      `json:"version"`
}

// CurrentVersion returns the version of the settings.
func (s *ProjectSettings) CurrentVersion() int64 { return s.Version }

// DefaultProjectSettings returns the settings of a project that has not stored any.
func DefaultProjectSettings() *ProjectSettings {
	return &ProjectSettings{MemoryScope: MemoryOfAccount, ApprovalPolicy: ApproveEffects}
}

// MaxInstructions limits the instructions of a project and those of an account, in characters.
const MaxInstructions = 16_000

// Instructions are part of every model request of a project or of an account. Instructions that were never written are empty
// and have version 0.
type Instructions struct {
	Content   string     `json:"content"`
	Version   int64      `json:"version"`
	UpdatedAt *time.Time `json:"updated_at"`
}

// CurrentVersion returns the version of the instructions.
func (i *Instructions) CurrentVersion() int64 { return i.Version }

// WorkKind is the kind of an entry in the work history of a project.
type WorkKind string

// The kinds of work.
const (
	WorkProjectCreated      WorkKind = "project_created"
	WorkProjectRenamed      WorkKind = "project_renamed"
	WorkProjectArchived     WorkKind = "project_archived"
	WorkProjectUnarchived   WorkKind = "project_unarchived"
	WorkProjectDeleted      WorkKind = "project_deleted"
	WorkProjectRestored     WorkKind = "project_restored"
	WorkSettingsChanged     WorkKind = "settings_changed"
	WorkInstructionsChanged WorkKind = "instructions_changed"
	WorkConversationCreated WorkKind = "conversation_created"
	WorkConversationIn      WorkKind = "conversation_moved_in"
	WorkConversationOut     WorkKind = "conversation_moved_out"
	WorkConversationDeleted WorkKind = "conversation_deleted"
	WorkTurnStarted         WorkKind = "turn_started"
	WorkFileAdded           WorkKind = "file_added"
	WorkFileRemoved         WorkKind = "file_removed"
	WorkTaskStarted         WorkKind = "task_started"
)

// Work is one entry in the work history of a project.
type Work struct {
	WorkID         WorkID          `json:"work_id"`
	Kind           WorkKind        `json:"kind" enum:"project_created,project_renamed,project_archived,project_unarchived,project_deleted,project_restored,settings_changed,instructions_changed,conversation_created,conversation_moved_in,conversation_moved_out,conversation_deleted,turn_started,file_added,file_removed,task_started"`
	By             string          `json:"by" enum:"user,service" doc:"user: a request of the account; service: for example a turn that was started from the queue."`
	SessionID      *SessionID      `json:"session_id" doc:"The session (device) of the request; null if the service did it."`
	ConversationID *ConversationID `json:"conversation_id"`
	TurnID         *TurnID         `json:"turn_id"`
	OtherProjectID *ProjectID      `json:"other_project_id" doc:"For a move: the project that the conversation came from or went to; null if it was in none."`
	FileID         *FileID         `json:"file_id"`
	TaskID         *TaskID         `json:"task_id" doc:"The research task."`
	Version        *int64          `json:"version" doc:"The new version of what was changed: of the project, its settings or its instructions."`
	At             time.Time       `json:"at"`
}
