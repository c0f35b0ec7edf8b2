package protocol

// TextState is the state of the text of a file.
type TextState string

// The states. All but TextPending are final.
const (
	TextPending TextState = "pending" // the content was not read yet
	TextDone    TextState = "done"    // the text can be read; it may be empty
	TextNone    TextState = "none"    // a content of this type has no text: a picture, a sound, an archive
	TextFailed  TextState = "failed"  // the content could not be read; TextReason says why
)

// TextReason is the reason why a content could not be read.
type TextReason string

// The reasons.
const (
	TextEncrypted  TextReason = "encrypted"   // reading it needs a password
	TextDamaged    TextReason = "damaged"     // it is incomplete, or not of its type
	TextTooComplex TextReason = "too_complex" // it exceeds a limit of time, memory, nesting or unpacked size
	TextNoReader   TextReason = "no_reader"   // the service has no program that reads this type
	TextUnreadable TextReason = "unreadable"  // the reader failed several times
	TextLimit      TextReason = "text_limit"  // the files of the account have as much text as the service keeps for one account
)

// BlockKind is the kind of the parts that a document has.
type BlockKind string

// The kinds.
const (
	BlockPage    BlockKind = "page"
	BlockSheet   BlockKind = "sheet"
	BlockSlide   BlockKind = "slide"
	BlockChapter BlockKind = "chapter"
)

// TextBlock is a part of a text, which a citation can name.
type TextBlock struct {
	Kind   BlockKind `json:"kind" enum:"page,sheet,slide,chapter"`
	Page   int       `json:"page" minimum:"1" doc:"The number of the page, sheet, slide or chapter."`
	Title  string    `json:"title,omitempty" doc:"The name of the sheet or the title of the chapter, if it has one."`
	Offset int       `json:"offset" doc:"The byte of the text at which the block starts."`
	Length int       `json:"length" doc:"In bytes. A block without text is left out."`
}

// Extraction is what was read from a content. Offsets are bytes of Text, which is UTF-8 without NUL.
type Extraction struct {
	State     TextState   `json:"state"`
	Reason    TextReason  `json:"reason,omitempty"`
	Pages     int         `json:"pages,omitempty"` // 0: the type has no pages
	Width     int         `json:"width,omitempty"` // of a picture, in pixels
	Height    int         `json:"height,omitempty"`
	Thumbnail []byte      `json:"thumbnail,omitempty"` // of a picture, as JPEG or PNG; nil: it has none
	Picture   []byte      `json:"picture,omitempty"`   // a larger version, for models
	Tokens    int         `json:"tokens,omitempty"`    // estimated
	Truncated bool        `json:"truncated,omitempty"`
	Text      string      `json:"text,omitempty"`
	Blocks    []TextBlock `json:"blocks,omitempty"` // ordered, without overlaps
}

// TextRange is a range of the text of a file.
type TextRange struct {
	FileID     FileID      `json:"file_id"`
	State      TextState   `json:"state" enum:"pending,done,none,failed"`
	Reason     *TextReason `json:"reason" enum:"encrypted,damaged,too_complex,no_reader,unreadable,text_limit" doc:"Why the content could not be read, if the state is failed."`
	Pages      *int        `json:"pages" doc:"The number of pages, sheets, slides or chapters; null if the type has none."`
	Truncated  bool        `json:"truncated" doc:"The content has more text than the service keeps."`
	Size       int         `json:"size" doc:"Of the whole text, in bytes of UTF-8."`
	Tokens     int         `json:"tokens" doc:"The estimated number of tokens of the whole text."`
	Offset     int         `json:"offset" doc:"The byte at which the range starts. It is smaller than the requested one if that was inside of a character."`
	Text       string      `json:"text" doc:"The range."`
	Blocks     []TextBlock `json:"blocks" doc:"The blocks that have a part in the range."`
	NextOffset *int        `json:"next_offset" doc:"The offset of the next range; null at the end."`
}
