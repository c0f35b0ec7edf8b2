package protocol

import "time"

// Formats of the files of an export, and their version. A version only gains fields.
const (
	ExportFormat             = "turnstone.export"
	ConversationExportFormat = "turnstone.conversation"
	ExportVersion            = 1
)

// ExportManifest is the last file of the archive of an account, manifest.json.
type ExportManifest struct {
	Format      string           `json:"format" enum:"turnstone.export"`
	Version     int              `json:"version"`
	AccountID   AccountID        `json:"account_id"`
	StartedAt   time.Time        `json:"started_at"`
	FinishedAt  time.Time        `json:"finished_at"`
	Consistency string           `json:"consistency" doc:"What the archive shows of changes that were made while it was written."`
	Counts      map[string]int64 `json:"counts" doc:"Numbers of exported objects by kind."`
	Files       []ExportedFile   `json:"files" doc:"Every other file of the archive, in its order."`
}

// ExportedFile describes a file of an archive.
type ExportedFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size" doc:"In bytes, uncompressed."`
	SHA256 string `json:"sha256"`
}

// ConversationExport is one exported conversation with all of its branches.
type ConversationExport struct {
	Format       string             `json:"format" enum:"turnstone.conversation"`
	Version      int                `json:"version"`
	Conversation Conversation       `json:"conversation"`
	Draft        Draft              `json:"draft"`
	FollowUps    []FollowUp         `json:"follow_ups" doc:"All items of the queue, including those that were started or cancelled."`
	Branches     []Branch           `json:"branches"`
	Messages     []Message          `json:"messages" doc:"The messages of all branches: a tree by parent_message_id. Each branch has its own messages, from the first to the last, after those of the branches that were created before it."`
	Artifacts    []ExportedArtifact `json:"artifacts,omitempty" doc:"Every version of the artifacts, the oldest of each first. Absent in the archive of an account, which has them in artifacts.json."`
	Incomplete   string             `json:"incomplete,omitempty" doc:"Why messages are missing: the conversation was deleted while it was exported. Absent: none are missing."`
}

// ExportedResearch is a research task with the sources that it keeps.
type ExportedResearch struct {
	ResearchTask
	Kept []ResearchKeptSource `json:"kept_sources"`
}

// ExportedArtifact is one version of an artifact.
type ExportedArtifact struct {
	ArtifactID     ArtifactID     `json:"artifact_id"`
	ConversationID ConversationID `json:"conversation_id"`
	Kind           ArtifactKind   `json:"kind" enum:"document,code,html,svg,table,diagram"`
	Language       *string        `json:"language"`
	Version        int64          `json:"version"`
	Title          string         `json:"title"`
	CreatedBy      ArtifactAuthor `json:"created_by" enum:"model,user"`
	CreatedAt      time.Time      `json:"created_at"`
	Content        string         `json:"content"`
}
