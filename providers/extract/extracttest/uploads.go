package extracttest

import (
	"path"
	"strings"
)

// extensions are those of the names of files with a type; default: that after the slash.
var extensions = map[string]string{
	docx: "docx", xlsx: "xlsx", pptx: "pptx", odt: "odt", ods: "ods", odp: "odp", epub: "epub", eml: "eml", mhtml: "mhtml", outlook: "msg", ipynb: "ipynb",
	"text/plain": "txt", "text/markdown": "md", "text/x-go": "go", "image/svg+xml": "svg", "audio/mpeg": "mp3", "application/x-unknown": "bin",
}

// Filename is the name of a file with the content.
func (r *Row) Filename() string {
	if path.Ext(r.Name) != "" {
		return r.Name // of a real file
	}
	extension, known := extensions[r.MediaType]
	if !known {
		_, extension, _ = strings.Cut(r.MediaType, "/")
	}
	return strings.ReplaceAll(r.Name, ", ", "-") + "." + extension
}

// uploaded is what becomes of contents that a service refuses, or reads as those of another type.
var uploaded = map[string]string{
	"pdf, empty":                     "422",
	"text, empty":                    "422",
	"mail, empty":                    "422",
	"pdf, encrypted":                 "encrypted",
	"docx, encrypted":                "encrypted",
	"docx, encrypted entries":        "encrypted",
	"odt, encrypted":                 "encrypted",
	"pptx, encrypted":                "encrypted",
	"xlsx, encrypted":                "encrypted",
	"epub, encrypted":                "encrypted",
	"pdf, a text":                    "content_mismatch",
	"pdf, a picture":                 "content_mismatch",
	"docx, a workbook":               "content_mismatch",
	"docx, a presentation":           "content_mismatch",
	"docx, a text":                   "content_mismatch",
	"odt, a Word document":           "content_mismatch",
	"pptx, a Word document":          "content_mismatch",
	"xlsx, a Word document":          "content_mismatch",
	"xlsx, a text":                   "content_mismatch",
	"epub, a Word document":          "content_mismatch",
	"text, invalid bytes and NUL":    "content_mismatch",
	"jpeg, a text":                   "content_mismatch",
	"sound":                          "content_mismatch",
	"archive":                        "content_mismatch",
	"outlook, another document":      "content_mismatch",
	"outlook, a text":                "content_mismatch",
	"pdf without text":               "no_text no_ocr jpeg 395x512 wwww of 1",
	"pdf without text, of two pages": "no_text no_ocr jpeg 395x512 wwww of 2",
	"pdf without text, of ten pages": "no_text no_ocr [pages_not_shown 2] jpeg 395x512 wwww of 10",
	"png, a gif":                     "none 3x2 jpeg 3x2 ----",
	"jpeg, a png":                    "none 3x2 jpeg 3x2 ----",
	"gif, a webp":                    "none 3x2 jpeg 3x2 ----",
	"webp, a jpeg":                   "none 3x2 jpeg 3x2 ----",
	"unknown type":                   `done "x"`,
}

// Uploaded returns what becomes of a file with the content: its summary, or the code of the failure of its upload.
func (r *Row) Uploaded() (summary string, isOther bool) {
	if other := uploaded[r.Name]; other != "" {
		return other, true
	}
	return r.Want, false
}
