package modelinput

import (
	"fmt"
	"strings"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

// causes are the reasons for which a file has no text, as a model gets them.
var causes = map[protocol.TextReason]string{
	protocol.TextEncrypted:  "it needs a password",
	protocol.TextDamaged:    "it is damaged, or not of its type",
	protocol.TextTooComplex: "it is too large or too complex",
	protocol.TextNoReader:   "the service has no program that reads this type",
	protocol.TextUnreadable: "the reader failed",
	protocol.TextLimit:      "the files of the user have too much text",
	protocol.TextNoOCR:      "it has pictures of text, as a scan does, and the service does not recognize text in pictures",
	protocol.TextNothing:    "no text was found in it",
}

// CauseOf returns why a file has no text, as a model gets it.
func CauseOf(reason protocol.TextReason) string {
	if cause := causes[reason]; cause != "" {
		return cause
	}
	return "the reason is not known"
}

// notes returns the attribute that says what of a file was left out or guessed; empty if nothing was.
func notes(of []protocol.TextNote) string {
	if len(of) == 0 {
		return ""
	}
	all := make([]string, len(of))
	for i, one := range of {
		all[i] = sentence(one)
	}
	return foreign.Attribute("notes", strings.Join(all, " "))
}

// sentence returns a note as a model gets it.
func sentence(n protocol.TextNote) string {
	switch n.Kind {
	case protocol.NoteEncoding:
		return fmt.Sprintf("The encoding was guessed: %s (certainty %d %%).", n.Value, n.Count)
	case protocol.NoteHidden:
		return fmt.Sprintf("Hidden passages are left out: %d.", n.Count)
	case protocol.NoteMissingParts:
		return fmt.Sprintf("Parts of the document are missing or damaged: %d.", n.Count)
	case protocol.NotePagesNoText:
		return fmt.Sprintf("Pages without text, which may be pictures: %d.", n.Count)
	case protocol.NoteNoFont:
		return fmt.Sprintf("Some characters could not be read, because data is missing: %s.", n.Value)
	case protocol.NoteRecognized:
		return fmt.Sprintf("The text of %d pages was recognized in pictures, so it may have mistakes.", n.Count)
	case protocol.NoteFirstPage:
		return fmt.Sprintf("The picture is the first of %d pages or frames. The others are not shown.", n.Count)
	case protocol.NotePagesNotShown:
		return fmt.Sprintf("Its last pages are not shown: %d.", n.Count)
	case protocol.NoteNoValues:
		return fmt.Sprintf("Formulas without a stored value are shown as formulas: %d.", n.Count)
	case protocol.NoteUnreadMembers:
		return fmt.Sprintf("Attached or embedded files were not read: %d.", n.Count)
	case protocol.NotePlain:
		return "The structure was too complex, so only the words are kept."
	}
	return "A part of the file was not read."
}
