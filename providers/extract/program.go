package extract

import "os/exec"

// Helper is a program, or the data of one, that is used to read files.
type Helper struct {
	Package string // of Debian
	For     string // what it reads
	Without string // what happens without it
	found   func() bool
}

// Installed reports whether this computer has the program.
func (h Helper) Installed() bool { return h.found() }

// PDFData is what pdftotext needs for the scripts of East Asia. Without it, it leaves out characters without an error.
var PDFData = Helper{
	Package: "poppler-data", For: "PDFs in Chinese, Japanese and Korean whose fonts are not embedded",
	Without: "their texts are not read", found: func() bool { return isThere("/usr/share/poppler/cMap") },
}

// Helpers are the other programs.
var Helpers = []Helper{
	{"poppler-utils", "texts and thumbnails of PDFs", "PDFs are stored, but their texts are not read", onPath(pdftotext, pdftoppm)},
	{"tesseract-ocr", "text in scans and pictures, with a package for each language, for example tesseract-ocr-deu", "scans have the state no_text", onPath(tesseract)},
	{
		"libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui", "documents of Office before 2007 (.doc, .xls, .ppt)",
		"they are stored, but their texts are not read", func() bool { return officeProgram() != "" },
	},
	{"libheif-examples", "pictures in HEIC and AVIF", "they have no thumbnail, and models do not get them", func() bool { return onPath(heifDecoders[0])() || onPath(heifDecoders[1])() }},
}

func onPath(names ...string) func() bool {
	return func() bool {
		for _, name := range names {
			if _, err := exec.LookPath(name); err != nil {
				return false
			}
		}
		return true
	}
}
