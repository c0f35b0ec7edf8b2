package protocol

import "time"

// Limits of shares.
const (
	MaxSharedMessages     = 20_000
	MaxSharedBytes        = 8 << 20 // of the text, the code and the artifacts of one share
	MaxShares             = 1000    // of an account, those that have expired excluded
	MaxSharedFiles        = 50      // of one share
	MaxShareableFiles     = 200     // that a preview lists
	MaxShareableArtifacts = 200     // that a preview lists; an imported conversation can have more
	// SharePrefix starts every token of a share.
	SharePrefix = "sh1_"
)

// Share is a snapshot of a conversation that everybody who has its address can read.
type Share struct {
	ShareID        ShareID        `json:"share_id"`
	ConversationID ConversationID `json:"conversation_id"`
	Title          string         `json:"title" doc:"The title that readers see."`
	MessageCount   int            `json:"message_count"`
	FileIDs        []FileID       `json:"file_ids" doc:"The files that readers may download, by their numbers. A file that was deleted is left out."`
	ArtifactIDs    []ArtifactID   `json:"artifact_ids" doc:"The artifacts of which readers may download a copy, by their numbers."`
	OpenCount      int64          `json:"open_count" doc:"How often the share was opened, up to a minute ago."`
	LastOpenedAt   *time.Time     `json:"last_opened_at"`
	CreatedAt      time.Time      `json:"created_at"`
	ExpiresAt      time.Time      `json:"expires_at"`
}

// Address returns the path of the share. It has no version.
func (s *Share) Address() string { return "/shares/" + s.ShareID.String() }

// CreatedShare is a share with the address at which everybody can read it. Only the response to its creation has it.
type CreatedShare struct {
	Share
	Token string `json:"token" doc:"Grants everybody who has it access to the snapshot. It is shown only in this response and its replays."`
	URL   string `json:"url" doc:"The page of the share."`
}

// SharedMessage is a message as readers of a share see it: without identifiers, tool calls, reasoning, notices, usage and
// feedback.
type SharedMessage struct {
	Role        string             `json:"role" enum:"user,assistant"`
	Profile     *Profile           `json:"profile" doc:"Of an answer: the profile of the model."`
	CreatedAt   time.Time          `json:"created_at"`
	Parts       []SharedPart       `json:"parts"`
	Attachments []SharedAttachment `json:"attachments" doc:"One for each file of the message, shared or not. Snapshots from before files could be shared have none."`
}

// SharedAttachment is a file of a shared message.
type SharedAttachment struct {
	N *int `json:"n" doc:"The number of the file in the files of the share. null: the file is not shared."`
}

// SharedFile is a file that readers of a share may download.
type SharedFile struct {
	N         int    `json:"n" doc:"The number of the file, for GET /shared/{token}/files/{n}."`
	Filename  string `json:"filename" doc:"The name that the file had when the snapshot was taken."`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size" doc:"Bytes."`
}

// ShareableFile is a file that a share may carry.
type ShareableFile struct {
	FileID    FileID `json:"file_id"`
	Filename  string `json:"filename"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size" doc:"Bytes."`
}

// SharedArtifact is the copy of an artifact that readers of a share may download: its newest version when the snapshot was taken.
type SharedArtifact struct {
	N        int          `json:"n" doc:"The number of the artifact, for GET /shared/{token}/artifacts/{n}."`
	Kind     ArtifactKind `json:"kind" enum:"document,code,html,svg,table,diagram"`
	Title    string       `json:"title"`
	Language *string      `json:"language" doc:"Of code; null: unknown, or not code."`
	Version  int64        `json:"version"`
	Bytes    int64        `json:"bytes"`
}

// ShareableArtifact is an artifact that a share may carry.
type ShareableArtifact struct {
	ArtifactID ArtifactID   `json:"artifact_id"`
	Kind       ArtifactKind `json:"kind" enum:"document,code,html,svg,table,diagram"`
	Title      string       `json:"title"`
	Version    int64        `json:"version"`
	Bytes      int64        `json:"bytes"`
}

// SharedPart is a piece of a shared message.
type SharedPart struct {
	Type      PartType `json:"type" enum:"text,code,artifact"`
	Text      string   `json:"text,omitempty" doc:"For text. That of an answer is Markdown."`
	Language  string   `json:"language,omitempty" doc:"For code."`
	Filename  string   `json:"filename,omitempty" doc:"For code."`
	Code      string   `json:"code,omitempty" doc:"For code."`
	Truncated bool     `json:"truncated,omitempty" doc:"The part was cut off before its end."`
	N         int      `json:"n,omitempty" doc:"For artifact: its number in the artifacts of the share. An artifact that is not shared has no part."`
}

// SharedPage is a page of a share, as everybody who has its address can read it.
type SharedPage struct {
	Title        string           `json:"title"`
	CreatedAt    time.Time        `json:"created_at" doc:"When the snapshot was taken."`
	ExpiresAt    time.Time        `json:"expires_at"`
	MessageCount int              `json:"message_count" doc:"Of all pages."`
	Page         int              `json:"page" doc:"The number of this page, from 1."`
	PageCount    int              `json:"page_count"`
	Files        []SharedFile     `json:"files" doc:"The files of the share, on every page. A file that was deleted since the snapshot was taken is left out."`
	Artifacts    []SharedArtifact `json:"artifacts" doc:"The artifacts of the share, on every page."`
	Messages     []SharedMessage  `json:"messages" doc:"The messages of this page, oldest first."`
}

// SharePreview is a page of what a share would show if it were created now.
type SharePreview struct {
	Title         string              `json:"title"`
	MessageID     MessageID           `json:"message_id" doc:"The last message of the snapshot. Pass it when you create the share, so that it has exactly the messages of the preview."`
	MessageCount  int                 `json:"message_count" doc:"Of all pages."`
	Files         []ShareableFile     `json:"files" doc:"The files of the snapshot that a share may carry, at most 200, in the order of its messages. Only the first page has them."`
	FileCount     int                 `json:"file_count" doc:"The number of all files that a share may carry, also of those that are not listed. Only the first page has it; it is 0 on the others."`
	Artifacts     []ShareableArtifact `json:"artifacts" doc:"The artifacts of the conversation, on all of its branches, at most 200, newest first. Only the first page has them."`
	ArtifactCount int                 `json:"artifact_count" doc:"The number of all artifacts that a share may carry, also of those that are not listed. Only the first page has it; it is 0 on the others."`
	Data          []SharedMessage     `json:"data" doc:"The messages of this page, oldest first. No file and no artifact is chosen yet, so their attachments have no numbers, and they have no parts of artifacts."`
	NextCursor    *string             `json:"next_cursor"`
	HasMore       bool                `json:"has_more"`
}

// SharedNumbers are the numbers of what a share carries.
type SharedNumbers struct {
	Files     map[FileID]int
	Artifacts map[ArtifactID]int
}

// NewSharedMessage returns what readers of a share see of a message. It copies the fields that are public, so that a new
// field of a message is private until it is added here.
func NewSharedMessage(role string, profile *Profile, createdAt time.Time, parts []Part, files []FileID, numbers SharedNumbers) SharedMessage {
	shared := SharedMessage{Role: role, CreatedAt: createdAt, Parts: []SharedPart{}, Attachments: make([]SharedAttachment, len(files))}
	for i, id := range files {
		if n, carried := numbers.Files[id]; carried {
			shared.Attachments[i].N = &n
		}
	}
	if role == RoleAssistant {
		shared.Profile = profile
	}
	for i := range parts {
		switch part := &parts[i]; part.Type {
		case PartText:
			shared.Parts = append(shared.Parts, SharedPart{Type: PartText, Text: part.Text, Truncated: part.Truncated})
		case PartCode:
			shared.Parts = append(shared.Parts, SharedPart{
				Type: PartCode, Language: part.Language, Filename: part.Filename, Code: part.Code, Truncated: part.Truncated,
			})
		case PartArtifact:
			if part.ArtifactID == nil {
				continue
			}
			if n, carried := numbers.Artifacts[*part.ArtifactID]; carried {
				shared.Parts = append(shared.Parts, SharedPart{Type: PartArtifact, N: n})
			}
		}
	}
	return shared
}
