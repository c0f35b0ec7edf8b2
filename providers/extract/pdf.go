package extract

import (
	"strconv"
	"strings"

	"turnstone/protocol"
)

// The programs that read PDFs, of Debian's package poppler-utils.
const (
	pdftotext = "pdftotext"
	pdftoppm  = "pdftoppm"
)

// pdfArguments returns the arguments of pdftotext, which prints the text in the order of reading, with a form feed after each
// page, or of pdftoppm. Both read stdin and print to stdout.
func pdfArguments(task Task) []string {
	last := maxBlocks
	switch task {
	case drawPage:
		return []string{"-png", "-singlefile", "-f", "1", "-scale-to", strconv.Itoa(2 * thumbnailSide), "-"}
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
	return t.extraction()
}

// pdfFailure returns the result for a PDF that pdftotext could not read, from what it printed as errors.
func pdfFailure(errors string) *protocol.Extraction {
	if strings.Contains(errors, "Incorrect password") || strings.Contains(errors, "Unsupported security handler") || strings.Contains(errors, "Copying of text") {
		return failed(errEncrypted)
	}
	return failed(errDamaged)
}
