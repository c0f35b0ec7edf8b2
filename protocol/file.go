package protocol

import "time"

// FileKind is the group of media types to which a file belongs, for the filter of the library.
type FileKind string

// The kinds.
const (
	FileDocument FileKind = "document" // texts with a layout, spreadsheets and presentations
	FileText     FileKind = "text"     // plain text, Markdown, source code and data
	FileImage    FileKind = "image"
	FileAudio    FileKind = "audio"
	FileArchive  FileKind = "archive"
	FileOther    FileKind = "other"
)

// HasText reports whether the text of such a file can be read.
func (k FileKind) HasText() bool { return k == FileDocument || k == FileText || k == FileImage }

// FileKinds lists every kind.
var FileKinds = []FileKind{FileDocument, FileText, FileImage, FileAudio, FileArchive, FileOther}

// FileScan is the verdict of the malware scanner. A file exists only with a clean one.
type FileScan struct {
	Verdict string    `json:"verdict" enum:"clean"`
	Engine  string    `json:"engine" doc:"The malware scanner. test-signatures detects only the EICAR test file, and does not protect from malware."`
	At      time.Time `json:"at"`
}

// File is a file of an account. Its content never changes.
type File struct {
	FileID       FileID      `json:"file_id"`
	Filename     string      `json:"filename"`
	MediaType    string      `json:"media_type" doc:"The media type that was detected in the content."`
	Kind         FileKind    `json:"kind" enum:"document,text,image,audio,archive,other"`
	Size         int64       `json:"size" doc:"In bytes."`
	SHA256       string      `json:"sha256" doc:"Of the content, in hexadecimal."`
	Scan         FileScan    `json:"scan"`
	ProjectIDs   []ProjectID `json:"project_ids" doc:"The projects that the file belongs to."`
	TextState    TextState   `json:"text_state" enum:"pending,done,none,no_text,failed" doc:"The state of the text: GET …/text returns it, and the reason of a failure."`
	Pages        *int        `json:"pages" doc:"The number of pages, sheets, slides or chapters; null if the type has none, or before the text was read."`
	Width        *int        `json:"width" doc:"Of a picture as it is shown, in pixels; null if it is not known."`
	Height       *int        `json:"height" doc:"Of a picture as it is shown, in pixels; null if it is not known."`
	HasThumbnail bool        `json:"has_thumbnail" doc:"GET …/thumbnail returns a small version of the picture, or of the first page of a PDF."`
	Kept         bool        `json:"kept" doc:"false: the file was uploaded for a temporary conversation, or first attached in one, and ends with it, unless it belongs to a project or another conversation has it."`
	Version      int64       `json:"version"`
	CreatedAt    time.Time   `json:"created_at"`
	UpdatedAt    time.Time   `json:"updated_at"`
	DeletedAt    *time.Time  `json:"deleted_at" doc:"When the file was deleted from the library; null if it was not. Until the last message that has it is erased, it can be read."`
}

// Address returns the path of the file.
func (f *File) Address() string { return "/files/" + f.FileID.String() }

// CurrentVersion returns the version of the file.
func (f *File) CurrentVersion() int64 { return f.Version }

// FileDetails is a file with the places where it is used.
type FileDetails struct {
	File
	References []FileReference `json:"references" doc:"The newest 20 messages that have the file, without those of temporary conversations, newest first."`
}

// FileReference is a message that has a file.
type FileReference struct {
	ConversationID ConversationID `json:"conversation_id"`
	BranchID       BranchID       `json:"branch_id"`
	MessageID      MessageID      `json:"message_id"`
	Title          string         `json:"title" doc:"The title of the conversation; empty if it has none."`
	CreatedAt      time.Time      `json:"created_at" doc:"When the message was created."`
}

// FileUse is the state of a file that a message is to have.
type FileUse string

// The states.
const (
	FileReady   FileUse = "ready"
	FileDeleted FileUse = "deleted" // it is in no library any more, but messages have it
	FileMissing FileUse = "missing"
)

// FileState is the state of one file that a message has, or is to have.
type FileState struct {
	FileID FileID  `json:"file_id"`
	State  FileUse `json:"state" enum:"ready,deleted,missing" doc:"deleted: the file was deleted from the library; the messages that have it keep it, and no new message can have it. missing: there is no such file."`
	File   *File   `json:"file" doc:"The file; null if it is missing."`
}
