package extract

import (
	"strconv"
	"strings"

	"turnstone/protocol"
)

// The program that reads PDFs, of Debian's package poppler-utils, and its arguments: from stdin to stdout, in the order of
// reading, with a form feed after each page.
const pdftotext = "pdftotext"

func pdftotextArguments(task Task) []string {
	last := maxBlocks
	if task == Inspect {
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
