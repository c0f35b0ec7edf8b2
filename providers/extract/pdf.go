package extract

import (
	"regexp"
	"strconv"
	"strings"

	"turnstone/protocol"
)

// The programs that read PDFs, of Debian's package poppler-utils.
const (
	pdftotext = "pdftotext"
	pdftoppm  = "pdftoppm"
	pdfdetach = "pdfdetach"
)

// programArguments returns the arguments of pdftotext, which prints the text in the order of reading, with a form feed after each
// page, or of another program. All read stdin and print to stdout.
func programArguments(task Task, argument string) []string {
	last := maxBlocks + 1 // the last one says that there are more
	switch task {
	case drawPage:
		return []string{"-png", "-singlefile", "-f", argument, "-scale-to", strconv.Itoa(2 * thumbnailSide), "-"}
	case drawLarge:
		return []string{"-png", "-singlefile", "-f", argument, "-scale-to", strconv.Itoa(pictureSide), "-"}
	case drawScan:
		return []string{"-png", "-gray", "-singlefile", "-f", argument, "-scale-to", strconv.Itoa(recognizedSide), "-"}
	case recognize:
		return []string{"stdin", "stdout", "-l", argument, "tsv"}
	case decodeHEIF:
		return []string{"/proc/self/fd/0", argument}
	case listMembers:
		return []string{"-list", "/proc/self/fd/0"}
	case ReadText, prepare, convert:
	case Inspect:
		last = 1 // the password is needed before the first page
	}
	return []string{"-enc", "UTF-8", "-eol", "unix", "-l", strconv.Itoa(last), "-", "-"}
}

// readPages reads what pdftotext prints. Its last page may be cut.
func readPages(printed string, cut bool) *protocol.Extraction {
	t := &text{truncated: cut}
	pages := strings.SplitAfter(printed, "\f")
	for _, page := range pages {
		body, ended := strings.CutSuffix(page, "\f")
		if body == "" && !ended {
			break // after the last page
		}
		err := t.begin(protocol.BlockPage, "")
		if err == nil {
			err = t.joined(body)
		}
		if err != nil {
			break // errFull
		}
	}
	return t.pagesWithText()
}

// pagesWithText returns the text of a PDF, with the number of its pages without text. If none has any, it is a document of
// pictures.
func (t *text) pagesWithText() *protocol.Extraction {
	x := t.extraction()
	if len(x.Blocks) == 0 {
		x.State, x.Reason, x.Text = protocol.TextNoText, protocol.TextNothing, ""
	} else if empty := x.Pages - len(x.Blocks); empty > 0 {
		x.Notes = append(x.Notes, protocol.TextNote{Kind: protocol.NotePagesNoText, Count: empty})
	}
	return x
}

var missingPack = regexp.MustCompile(`(?i)Missing language pack for '([\w-]{1,40})'`)

// damage are the reports of pdftotext that text is lost: of pages that are missing, and of contents that end early or cannot be
// decoded. Others, of tables of references for example, are repaired without a loss.
var damage = regexp.MustCompile(`(?m)^Syntax Error.*: (?:Kid object|Failed to parse page|Weird page contents|Unterminated string|Leftover args|End of file|Bad .* in flate|Couldn't find a font)`)

// noteReports adds what pdftotext has reported: what is damaged, and as missing the data of the scripts of East Asia, which is in
// the package poppler-data. Without it, the characters of fonts that a PDF does not contain are left out.
func noteReports(x *protocol.Extraction, errors string) {
	if reports := len(damage.FindAllString(errors, -1)); reports > 0 {
		x.Notes = append(x.Notes, protocol.TextNote{Kind: protocol.NoteMissingParts, Count: reports})
	}
	pack := missingPack.FindStringSubmatch(errors)
	switch {
	case pack == nil:
	case x.State == protocol.TextNoText:
		*x = protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextNoReader}
	default:
		x.Notes = append(x.Notes, protocol.TextNote{Kind: protocol.NoteNoFont, Value: pack[1]})
	}
}

// pdfFailure returns the result for a PDF that pdftotext could not read, from what it printed as errors.
func pdfFailure(errors string) *protocol.Extraction {
	if strings.Contains(errors, "Incorrect password") || strings.Contains(errors, "Unsupported security handler") || strings.Contains(errors, "Copying of text") {
		return failed(errEncrypted)
	}
	return failed(errDamaged)
}
