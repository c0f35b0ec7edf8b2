package protocol

// TextState is the state of the text of a file.
type TextState string

// The states. All but TextPending are final.
const (
	TextPending TextState = "pending" // the content was not read yet
	TextDone    TextState = "done"    // the text can be read; it may be empty
	TextNone    TextState = "none"    // a content of this type has no text: a picture, a sound, an archive
	TextNoText  TextState = "no_text" // a document of pictures, such as a scan, in which no text was found; TextReason says why
	TextFailed  TextState = "failed"  // the content could not be read; TextReason says why
)

// TextStates lists every state: the open one, then the terminal ones.
var TextStates = []TextState{TextPending, TextDone, TextNone, TextNoText, TextFailed}

// TextTrigger is a cause of a transition of the text of a file.
type TextTrigger string

// The triggers of a text.
const (
	TextRead      TextTrigger = "read"         // the content was read
	TextHasNone   TextTrigger = "skip"         // a content of its type has no text
	TextNotFound  TextTrigger = "find_no_text" // its pages are pictures without recognized text
	TextReadFails TextTrigger = "fail"         // it cannot be read, or exceeds a limit
)

// TextTransitions lists every legal transition of the text of a file. The text of a file whose kind has none starts as TextNone.
var TextTransitions = []Transition[TextState, TextTrigger]{
	{TextPending, TextRead, TextDone},
	{TextPending, TextHasNone, TextNone},
	{TextPending, TextNotFound, TextNoText},
	{TextPending, TextReadFails, TextFailed},
}
