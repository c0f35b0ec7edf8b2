package protocol

import (
	"strings"
	"time"
)

// FeedKind is one kind of resource whose changes the account feed reports.
type FeedKind struct {
	Kind   string
	Prefix string // of the identifiers of its items
	Doc    string // what a change is, and what the fields of the item contain
}

// FeedKinds lists the kinds of resources in the account feed. A kind also needs its triggers, in a migration that calls
// feed_attach.
var FeedKinds = []FeedKind{
	{"conversation", conversationKind{}.prefix(), "A conversation was created, changed or deleted, its title was set, or more of it was read. `version` is the version of the conversation."},
	{"draft", conversationKind{}.prefix(), "The draft of a conversation changed. `id` is the conversation; `version` is the version of the draft."},
	{"queue", conversationKind{}.prefix(), "The follow-ups of a conversation or their order changed. `id` is the conversation; `version` is the `queue_version`."},
	{"follow_up", followUpKind{}.prefix(), "A follow-up was created or changed. `version` and `state` are those of the follow-up."},
	{"branch", branchKind{}.prefix(), "A branch was created or renamed."},
	{"turn", turnKind{}.prefix(), "A turn was started, or its state changed. `state` is the state of the turn."},
	{"approval", approvalKind{}.prefix(), "A tool call waits for an approval, or its approval was decided. `state` is the state of the approval."},
	{"project", projectKind{}.prefix(), "A project was created, changed, deleted or restored, or its settings or instructions changed. `version` and `state` are those of the project."},
	{"feedback", messageKind{}.prefix(), "The feedback on a response was set or removed. `id` is the message."},
	{"upload", uploadKind{}.prefix(), "An upload was created, or its state changed. `state` is the state of the upload."},
	{"file", fileKind{}.prefix(), "A file was added, renamed or deleted, or its projects changed. `version` is the version of the file."},
	{"file_text", fileKind{}.prefix(), "The text of a file was read, or cannot be. `id` is the file; `state` is the state of its text."},
	{"task", taskKind{}.prefix(), "A research task was started, or its state changed. `version` and `state` are those of the task."},
	{"share", shareKind{}.prefix(), "A share was created or revoked."},
	{"artifact", artifactKind{}.prefix(), "An artifact was created, or has a new version. `version` is that of the artifact."},
	{"prompt", promptKind{}.prefix(), "A prompt was created, changed or deleted. `version` is that of the prompt. " +
		"A project that is deleted or restored hides or shows its prompts without an item for each of them."},
	{"account", accountKind{}.prefix(), "The email address or the display name of the account changed. `id` is the account."},
	{"settings", accountKind{}.prefix(), "The settings of the account changed. `id` is the account; `version` is the version of the settings."},
	{"instructions", accountKind{}.prefix(), "The instructions of the account changed. `id` is the account; `version` is the version of the instructions."},
	{"consent", accountKind{}.prefix(), "A consent of the account to a source of memory was granted, changed or revoked. `id` is the account."},
}

// The types of the feed's own items, which have no id.
const (
	FeedStarted = "feed.started" // the first item of a feed without a cursor
	FeedReset   = "feed.reset"   // items were lost to the client: it must reload what it displays
)

const (
	feedChanged = ".changed"
	feedDeleted = ".deleted"
)

// FeedItem is one item of the account feed. It names what changed and contains no content.
type FeedItem struct {
	Type           string          `json:"type" doc:"The kind of the resource and what happened to it, for example draft.changed or conversation.deleted; or feed.started or feed.reset. Clients ignore types that they do not know."`
	ID             string          `json:"id,omitempty" doc:"The resource. Absent in feed.started and feed.reset."`
	ConversationID *ConversationID `json:"conversation_id,omitempty" doc:"The conversation of the resource, if it has one."`
	Version        *int64          `json:"version,omitempty" doc:"The version of the resource after the change, if it has one."`
	State          string          `json:"state,omitempty" doc:"The state of the resource after the change, if it has one."`
	At             time.Time       `json:"at" doc:"The time of the change."`
}

// NewFeedItem returns the item for a change of a resource. The kind may be one that only a later version knows.
func NewFeedItem(kind string, deleted bool, prefix string, id [16]byte) FeedItem {
	item := FeedItem{Type: kind + feedChanged, ID: string(appendBase32([]byte(prefix+"_"), id))}
	if deleted {
		item.Type = kind + feedDeleted
	}
	return item
}

// Kind returns the kind of the resource.
func (f *FeedItem) Kind() string {
	kind, _, _ := strings.Cut(f.Type, ".")
	return kind
}
