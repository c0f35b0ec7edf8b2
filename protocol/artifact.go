package protocol

import "time"

// ArtifactKind is what the content of an artifact is.
type ArtifactKind string

// The kinds of artifacts.
const (
	ArtifactDocument ArtifactKind = "document" // Markdown
	ArtifactCode     ArtifactKind = "code"
	ArtifactHTML     ArtifactKind = "html"
	ArtifactSVG      ArtifactKind = "svg"
	ArtifactTable    ArtifactKind = "table"   // CSV as in RFC 4180
	ArtifactDiagram  ArtifactKind = "diagram" // Mermaid
)

// ArtifactKinds lists every kind.
var ArtifactKinds = []ArtifactKind{ArtifactDocument, ArtifactCode, ArtifactHTML, ArtifactSVG, ArtifactTable, ArtifactDiagram}

// ArtifactAuthor is who wrote a version of an artifact.
type ArtifactAuthor string

// The authors.
const (
	ByModel ArtifactAuthor = "model"
	ByUser  ArtifactAuthor = "user"
)

// Limits of artifacts.
const (
	MaxArtifactBytes    = 1 << 20 // of one version
	MaxArtifactVersions = 200     // of one artifact; beyond them, the oldest versions are dropped
	MaxArtifacts        = 200     // of one conversation
	MaxArtifactLanguage = 40      // characters
)

// Artifact is a document that the model and the user write together. Its fields describe the current version.
type Artifact struct {
	ArtifactID     ArtifactID     `json:"artifact_id"`
	ConversationID ConversationID `json:"conversation_id"`
	MessageID      *MessageID     `json:"message_id" doc:"The answer that created the artifact; null in a fork and after an import."`
	Kind           ArtifactKind   `json:"kind" enum:"document,code,html,svg,table,diagram" doc:"document: Markdown; table: CSV as in RFC 4180; diagram: Mermaid."`
	Title          string         `json:"title"`
	Language       *string        `json:"language" doc:"Of code: its language, for example go. null for other kinds."`
	Version        int64          `json:"version"`
	CreatedBy      ArtifactAuthor `json:"created_by" enum:"model,user" doc:"Who wrote the current version."`
	Bytes          int            `json:"bytes" doc:"The size of the current version."`
	SHA256         string         `json:"sha256" doc:"Of the content of the current version, in hexadecimal digits."`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at" doc:"When the current version was written."`
}

// Address returns the path of the artifact.
func (a *Artifact) Address() string { return "/artifacts/" + a.ArtifactID.String() }

// CurrentVersion returns the version of the artifact.
func (a *Artifact) CurrentVersion() int64 { return a.Version }

// ArtifactVersion is one version of an artifact. It never changes.
type ArtifactVersion struct {
	ArtifactID ArtifactID     `json:"artifact_id"`
	Version    int64          `json:"version"`
	Title      string         `json:"title"`
	CreatedBy  ArtifactAuthor `json:"created_by" enum:"model,user"`
	MessageID  *MessageID     `json:"message_id" doc:"The answer that wrote the version; null: the user did, or the version was copied by a fork or an import."`
	Bytes      int            `json:"bytes"`
	SHA256     string         `json:"sha256"`
	CreatedAt  time.Time      `json:"created_at"`
}

// ArtifactDiff is the difference between two versions of an artifact, line by line.
type ArtifactDiff struct {
	ArtifactID ArtifactID `json:"artifact_id"`
	From       int64      `json:"from"`
	To         int64      `json:"to"`
	Added      int        `json:"added" doc:"The number of lines that only the version to has."`
	Removed    int        `json:"removed" doc:"The number of lines that only the version from has."`
	Hunks      []DiffHunk `json:"hunks" doc:"What differs, with up to three equal lines around it, in the order of the text."`
	Truncated  bool       `json:"truncated" doc:"The hunks are not all: they have at most 2,000 lines, of at most 500 characters each. A text of more than 50,000 lines is compared as a whole."`
}

// DiffHunk is a range of lines that differ, with their surroundings.
type DiffHunk struct {
	FromLine int        `json:"from_line" doc:"The first line of the hunk in the version from, from 1."`
	ToLine   int        `json:"to_line" doc:"The first line of the hunk in the version to, from 1."`
	Lines    []DiffLine `json:"lines"`
}

// DiffLine is one line of a hunk.
type DiffLine struct {
	Change DiffChange `json:"change" enum:"equal,added,removed"`
	Text   string     `json:"text" doc:"Without its end of line."`
}

// DiffChange is in which version a line is.
type DiffChange string

// The changes: the line is in both versions, or in one of them.
const (
	LineEqual   DiffChange = "equal"
	LineAdded   DiffChange = "added"
	LineRemoved DiffChange = "removed"
)

// ArtifactUpdated reports a version of an artifact that the turn wrote. The message has one part for each artifact, with the
// newest version that the turn wrote.
type ArtifactUpdated struct {
	PartID     PartID         `json:"part_id"`
	ArtifactID ArtifactID     `json:"artifact_id"`
	Version    int64          `json:"version"`
	Kind       ArtifactKind   `json:"kind" enum:"document,code,html,svg,table,diagram"`
	Title      string         `json:"title"`
	Language   string         `json:"language,omitempty" doc:"Of code."`
	CreatedBy  ArtifactAuthor `json:"created_by" enum:"model,user"`
}

// EventType returns the type of the event.
func (*ArtifactUpdated) EventType() EventType { return "artifact.updated" }
