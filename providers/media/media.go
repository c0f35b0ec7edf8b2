// Package media detects the type of a content from its first bytes, and compares it with the name and the declared type
// of the file. It implements the Detector of package actors/upload. It reads no more than these bytes, and never changes a
// content.
package media

import (
	"bytes"
	"mime"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
	"turnstone/providers/charset"
)

// Detector detects media types.
type Detector struct{}

// encrypted is the container of encrypted Office documents, and of Office documents before 2007.
const (
	encrypted = "application/x-ole-storage"
	zipped    = "application/zip"
)

// packages are the documents that are ZIP archives. Programs write their entries in any order, so the first bytes may say only
// that a content is an archive; then the name and the declared type decide, and the reader of the document finds what is wrong.
var packages = []string{
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"application/vnd.oasis.opendocument.text",
	"application/vnd.oasis.opendocument.spreadsheet",
	"application/vnd.oasis.opendocument.presentation",
	"application/epub+zip",
}

// Detect returns the media type of a content from its first bytes. For a text, it is the declared type, or the one of the
// extension. mismatch is the reason why the content cannot be a file with this name and declared type.
func (Detector) Detect(head []byte, filename, declared string) (mediaType string, mismatch *protocol.UploadFailure) {
	declared = filetype.Canonical(declared)
	detected := detect(head)
	if detected == zipped {
		detected = packageOf(filename, declared)
	}
	if detected == encrypted {
		if old := oldOffice(filename, declared); old != "" {
			return old, nil
		}
		return detected, failure(protocol.UploadEncrypted, "The document is encrypted, or in a format of old programs. Save it again without a password.")
	}
	if isText(detected, head) {
		return detectText(detected, filename, declared)
	}
	switch {
	case filetype.KindOf(detected) == protocol.FileOther:
		return detected, failure(protocol.UploadContentMismatch, "The content is of the type "+detected+", which is not accepted.")
	case filetype.KindOf(detected) == protocol.FileImage && isPicture(filename, declared): // browsers show what it is
		return detected, nil
	case declared != filetype.OctetStream && declared != detected && !within(detected, declared):
		return detected, failure(protocol.UploadContentMismatch, "The content is of the type "+detected+", and the upload declares "+declared+".")
	case !fits(filename, detected):
		return detected, failure(protocol.UploadContentMismatch, "The content is of the type "+detected+", which the name of the file contradicts.")
	}
	return detected, nil
}

func failure(code protocol.UploadFailureCode, detail string) *protocol.UploadFailure {
	return &protocol.UploadFailure{Code: code, Detail: detail}
}

// oldOffice returns the type of a document of Office before 2007, or of a mail of Outlook, whose first bytes say only that it may be one; "" if neither the
// name nor the declared type says so.
func oldOffice(filename, declared string) string {
	byName := filetype.ByName(filename)
	if slices.Contains(compound, byName) && (declared == filetype.OctetStream || slices.Contains(compound, declared)) {
		return byName
	}
	if byName == "" && slices.Contains(compound, declared) {
		return declared
	}
	return ""
}

// packageOf returns the type of an archive whose first bytes say no more.
func packageOf(filename, declared string) string {
	for _, one := range []string{declared, filetype.ByName(filename)} {
		if slices.Contains(packages, one) {
			return one
		}
	}
	return zipped
}

// isPicture reports whether a file is sent as a picture, of whatever format.
func isPicture(filename, declared string) bool {
	byName := filetype.KindOf(filetype.ByName(filename))
	return (declared == filetype.OctetStream || filetype.KindOf(declared) == protocol.FileImage) && (byName == protocol.FileImage || byName == protocol.FileOther)
}

// detect returns the most specific accepted type of a content; that of the content itself if none is accepted.
func detect(head []byte) string {
	found := mimetype.Detect(head)
	for m := found; m != nil; m = m.Parent() {
		name := filetype.Canonical(plain(m.String()))
		if name == encrypted || filetype.KindOf(name) != protocol.FileOther {
			return name
		}
	}
	return filetype.Canonical(plain(found.String()))
}

func plain(name string) string {
	media, _, err := mime.ParseMediaType(name)
	if err != nil {
		return name
	}
	return media
}

// isText reports whether a content is a text: the library reports it, or it finds a type that is not accepted in what is a
// text by its bytes, or in UTF-16, which is a text without a mark, too.
func isText(detected string, head []byte) bool {
	switch filetype.KindOf(detected) {
	case protocol.FileText:
		return true
	case protocol.FileDocument:
		return slices.Contains(textDocuments, detected)
	case protocol.FileOther:
		return bytes.IndexByte(head, 0) < 0 && charset.Detect(head).Name == "utf-8" || detected == filetype.OctetStream && strings.HasPrefix(charset.Detect(head).Name, "utf-16")
	}
	return false
}

// detectText returns the type of a text. Which language a text is in, its name and its declared type say, not its content.
func detectText(detected, filename, declared string) (string, *protocol.UploadFailure) {
	byName := filetype.ByName(filename)
	switch {
	case declared == filetype.OctetStream, isTextType(declared):
	case isTextType(byName) && slices.Contains(misnamed, declared):
		return byName, nil
	case slices.Contains(misnamed, declared) && (byName == "" || slices.Contains(misnamed, byName)): // programs write pages and tables with such names
		return textTypeOf(detected), nil
	default:
		return detected, failure(protocol.UploadContentMismatch, "The content is a text, and the upload declares "+declared+".")
	}
	if slices.Contains(misnamed, byName) {
		return textTypeOf(detected), nil
	}
	if byName != "" && !isTextType(byName) {
		return detected, failure(protocol.UploadContentMismatch, "The content is a text, which the name of the file contradicts.")
	}
	if declared != filetype.OctetStream && !(slices.Contains(plainTypes, declared) && slices.Contains(textDocuments, byName)) {
		return declared, nil
	}
	if byName != "" {
		return byName, nil
	}
	return textTypeOf(detected), nil
}

func textTypeOf(detected string) string {
	if isTextType(detected) {
		return detected
	}
	return "text/plain"
}

// plainTypes are the types that clients declare for texts of which they know no more.
var plainTypes = []string{"text/plain", "application/json"}

// misnamed are the types of Office before 2007, which systems with these programs also give to texts, such as CSV.
var misnamed = []string{"application/vnd.ms-excel", "application/msword", "application/vnd.ms-powerpoint"}

// compound are the types of documents in the container of Office before 2007.
var compound = append([]string{"application/vnd.ms-outlook"}, misnamed...)

// textDocuments are the documents whose contents are text.
var textDocuments = []string{"text/html", "application/rtf", "message/rfc822", "multipart/related", "application/x-ipynb+json"}

func isTextType(name string) bool {
	return filetype.KindOf(name) == protocol.FileText || slices.Contains(textDocuments, name)
}

// fits reports whether a content of a type may have a name.
func fits(filename, detected string) bool {
	byName := filetype.ByName(filename)
	return byName == "" || byName == detected || isTextType(byName)
}

// within reports whether a declared container holds the detected format.
func within(detected, declared string) bool {
	return declared == zipped && strings.Contains(detected, "zip")
}
