package turnlog

import "turnstone/protocol"

// ArtifactWrite is what a call of a tool writes: a new artifact, or a version of one.
type ArtifactWrite struct {
	Scope
	TurnID protocol.TurnID
	ToolID protocol.ToolID

	Artifact    protocol.ArtifactID // zero: a new one
	BaseVersion int64               // of an artifact that exists: the version that the model has read
	Kind        protocol.ArtifactKind
	Language    string  // of code; empty: unknown
	Title       string  // empty: it stays
	Content     *string // nil: Edits change the content of the base
	Edits       []Replacement
}

// Replacement replaces a text that occurs exactly once.
type Replacement struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// ArtifactContent is a version of an artifact with its content.
type ArtifactContent struct {
	protocol.ArtifactVersion
	ConversationID protocol.ConversationID
	Kind           protocol.ArtifactKind
	Language       *string
	Content        string
}

// Refusal is why a call of a tool has no effect. Its text is for the model.
type Refusal struct {
	Code   protocol.ToolErrorCode
	Detail string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

// The reasons of refusals.
const (
	RefusedStale   protocol.ToolErrorCode = "stale_version" // the detail has the difference
	RefusedTooMany protocol.ToolErrorCode = "too_many_artifacts"
	RefusedMissing protocol.ToolErrorCode = "not_found"
	RefusedSize    protocol.ToolErrorCode = "too_large"
	RefusedInput   protocol.ToolErrorCode = "invalid_input"
	RefusedProject protocol.ToolErrorCode = "read_only" // it is archived
)
