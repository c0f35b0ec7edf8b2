package protocol

import "slices"

// TextReason is the reason why a content could not be read, or why it has no text.
type TextReason string

// The reasons.
const (
	TextEncrypted  TextReason = "encrypted"   // reading it needs a password
	TextDamaged    TextReason = "damaged"     // it is incomplete, or not of its type
	TextTooComplex TextReason = "too_complex" // it exceeds a limit of time, memory, nesting or unpacked size
	TextNoReader   TextReason = "no_reader"   // the service has no program that reads this type
	TextUnreadable TextReason = "unreadable"  // the reader failed several times
	TextLimit      TextReason = "text_limit"  // the files of the account have as much text as the service keeps for one account

	// Those of TextNoText.
	TextNoOCR   TextReason = "no_ocr"  // the service has no program that recognizes the text of pictures
	TextNothing TextReason = "no_text" // there is none, also in its pictures
)

// NoteKind is a kind of what a reader has left out or had to guess.
type NoteKind string

// The kinds.
const (
	NoteEncoding      NoteKind = "encoding"        // the encoding was guessed: Value is its name, Count the certainty in percent
	NoteHidden        NoteKind = "hidden"          // hidden passages are left out
	NoteMissingParts  NoteKind = "missing_parts"   // parts that the document names are missing or damaged
	NotePagesNoText   NoteKind = "pages_no_text"   // pages have no text; they may be pictures
	NoteNoFont        NoteKind = "no_font"         // characters could not be read; Value names what was missing
	NoteRecognized    NoteKind = "recognized"      // the text of pages was recognized in pictures, so it may have mistakes
	NoteFirstPage     NoteKind = "first_page"      // the picture is the first of several pages or frames
	NoteNoValues      NoteKind = "no_values"       // formulas have no stored value; they are shown as formulas
	NoteUnreadMembers NoteKind = "unread_members"  // attachments or embedded files were not read
	NotePlain         NoteKind = "plain"           // the structure was too complex; only the words are kept
	NotePagesNotShown NoteKind = "pages_not_shown" // pages of a document of pictures, besides those that models get
)

// NoteKinds has all of them.
var NoteKinds = []NoteKind{NoteEncoding, NoteHidden, NoteMissingParts, NotePagesNoText, NoteNoFont, NoteRecognized, NoteFirstPage, NoteNoValues, NoteUnreadMembers, NotePlain, NotePagesNotShown}

// TextNote is what a reader has left out or had to guess.
type TextNote struct {
	Kind  NoteKind `json:"kind" enum:"encoding,hidden,missing_parts,pages_no_text,no_font,recognized,first_page,no_values,unread_members,plain,pages_not_shown" doc:"encoding: the file does not name its encoding, so it was guessed. hidden: passages that are not shown are left out. missing_parts: parts of the document are missing or damaged. pages_no_text: pages without text, which may be pictures. no_font: characters could not be read, because data of a script is missing. recognized: the text of pages was recognized in pictures. first_page: only the first page or frame is used as a picture. no_values: formulas without a stored value. unread_members: attachments that were not read. plain: the structure was too complex, so only the words are kept. pages_not_shown: the last pages of a document of pictures, which models do not get."`
	Value string   `json:"value,omitempty" doc:"The encoding or the script."`
	Count int      `json:"count,omitempty" doc:"How many; of an encoding, the certainty in percent."`
}

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
	Further   [][]byte    `json:"-"`                   // the pages behind the first one of a document of pictures, for models
	Tokens    int         `json:"tokens,omitempty"`    // estimated
	Truncated bool        `json:"truncated,omitempty"`
	Notes     []TextNote  `json:"notes,omitempty"` // what was left out or guessed
	Text      string      `json:"text,omitempty"`
	Blocks    []TextBlock `json:"blocks,omitempty"` // ordered, without overlaps
}

// ShowPages makes pictures the pages that models get besides the first one.
func (x *Extraction) ShowPages(further [][]byte) {
	x.Further = further
	x.Notes = WithPagesNotShown(x.Notes, x.Pages-1-len(further))
}

// WithPagesNotShown returns notes that say how many pages are not shown.
func WithPagesNotShown(notes []TextNote, count int) []TextNote {
	others := slices.DeleteFunc(slices.Clone(notes), func(n TextNote) bool { return n.Kind == NotePagesNotShown })
	if count <= 0 {
		return others
	}
	return append(others, TextNote{Kind: NotePagesNotShown, Count: count})
}

// TextRange is a range of the text of a file.
type TextRange struct {
	FileID     FileID      `json:"file_id"`
	State      TextState   `json:"state" enum:"pending,done,none,no_text,failed" doc:"none: a content of this type has no text. no_text: it is a document of pictures, such as a scan, in which no text was found."`
	Reason     *TextReason `json:"reason" enum:"encrypted,damaged,too_complex,no_reader,unreadable,text_limit,no_ocr,no_text" doc:"Why the content could not be read, if the state is failed, or why it has no text, if the state is no_text: the service has no program that recognizes text in pictures (no_ocr), or there is none (no_text)."`
	Notes      []TextNote  `json:"notes" doc:"What was left out or had to be guessed."`
	Pages      *int        `json:"pages" doc:"The number of pages, sheets, slides or chapters; null if the type has none."`
	Truncated  bool        `json:"truncated" doc:"The content has more text than the service keeps."`
	Size       int         `json:"size" doc:"Of the whole text, in bytes of UTF-8."`
	Tokens     int         `json:"tokens" doc:"The estimated number of tokens of the whole text."`
	Offset     int         `json:"offset" doc:"The byte at which the range starts. It is smaller than the requested one if that was inside of a character."`
	Text       string      `json:"text" doc:"The range."`
	Blocks     []TextBlock `json:"blocks" doc:"The blocks that have a part in the range."`
	NextOffset *int        `json:"next_offset" doc:"The offset of the next range; null at the end."`
}
