package protocol

import "time"

// SearchKind is the kind of an object that a search finds.
type SearchKind string

// The kinds that a search finds, in the order of their rank.
const (
	SearchConversation SearchKind = "conversation" // by its title
	SearchMessage      SearchKind = "message"
	SearchFile         SearchKind = "file"     // by its name or its text
	SearchArtifact     SearchKind = "artifact" // by its title or the text of its current version
	SearchTask         SearchKind = "task"     // by the question of the research
)

// MaxQueryRunes is the limit of the query of a search, and of a list of files or prompts, in characters.
const MaxQueryRunes = 160

// SearchPage is a page of what a search found.
type SearchPage struct {
	List[SearchResult]
	DidYouMean *string `json:"did_you_mean" doc:"If nothing was found: the query with its misspelled words, of five letters or more, corrected by one letter each, which finds something. null: there is none, or something was found."`
}

// SearchResult is an object that matches a search.
type SearchResult struct {
	Kind           SearchKind      `json:"kind" enum:"conversation,message,file,artifact,task" doc:"conversation: its title matches; message: its text matches; file: its name or its text matches; artifact: its title or the text of its current version matches; task: the question of the research task matches."`
	ConversationID *ConversationID `json:"conversation_id"`
	BranchID       *BranchID       `json:"branch_id" doc:"The branch on which the message was written, which shows it."`
	MessageID      *MessageID      `json:"message_id"`
	Role           *string         `json:"role" enum:"user,assistant" doc:"Who wrote the message; null for other kinds."`
	FileID         *FileID         `json:"file_id"`
	ArtifactID     *ArtifactID     `json:"artifact_id"`
	TaskID         *TaskID         `json:"task_id"`
	ProjectID      *ProjectID      `json:"project_id"`
	Title          string          `json:"title" doc:"The title of the conversation or of the artifact, the name of the file, or the question of the task."`
	Snippet        SearchSnippet   `json:"snippet"`
	Passage        *SearchPassage  `json:"passage" doc:"Of a file: where its text matches; null for other kinds, and when only its name matches."`
	At             time.Time       `json:"at" doc:"When the conversation, the message, the file, the artifact or the task was created."`
}

// SearchPassage is a range of the text of a file, around the excerpt.
type SearchPassage struct {
	Kind   BlockKind `json:"kind,omitempty" enum:"page,sheet,slide,chapter" doc:"Absent if the text has no pages."`
	Page   int       `json:"page,omitempty" doc:"The number of the page, sheet, slide or chapter."`
	Offset int       `json:"offset" doc:"The byte of the text at which the range starts."`
	Length int       `json:"length" doc:"In bytes."`
	Match  int       `json:"match" doc:"The byte of the text at which the match starts that the excerpt shows."`
}

// SearchSnippet is an excerpt of a text that matches.
type SearchSnippet struct {
	Text       string      `json:"text" doc:"An excerpt in plain text, without line breaks. An ellipsis marks where it was cut."`
	Highlights []Highlight `json:"highlights" doc:"The ranges of the text that match, in order, without overlap."`
}

// Highlight is a range of the text of an excerpt.
type Highlight struct {
	Start int `json:"start" minimum:"0" doc:"The first code point of the range. Offsets count Unicode code points, not bytes or UTF-16 units."`
	End   int `json:"end" minimum:"0" doc:"The code point after the range."`
}
