// Package media detects the type of a content from its first bytes, and compares it with the name and the declared type
// of the file. It implements the Detector of package actors/upload.
package media

import (
	"bytes"
	"mime"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// Detector detects media types.
type Detector struct{}

// aliases maps the names of the library to those of filetype.Types.
var aliases = map[string]string{
	"application/x-ole-storage":    encrypted,
	"audio/x-wav":                  "audio/wav",
	"audio/x-flac":                 "audio/flac",
	"audio/x-m4a":                  "audio/mp4",
	"application/ogg":              "audio/ogg",
	"image/heif":                   "image/heic",
	"application/x-gzip":           "application/gzip",
	"text/xml":                     "application/xml",
	"text/javascript":              "application/javascript",
	"application/x-javascript":     "application/javascript",
	"text/json":                    "application/json",
	"text/yaml":                    "application/yaml",
	"application/x-yaml":           "application/yaml",
	"audio/x-mpeg":                 "audio/mpeg",
	"audio/mp3":                    "audio/mpeg",
	"audio/wave":                   "audio/wav",
	"audio/vnd.wave":               "audio/wav",
	"application/x-zip-compressed": "application/zip",
}

// encrypted is the container of encrypted Office documents, and of Office documents before 2007.
const encrypted = "application/x-ole-storage"

// extensions maps extensions of names to the types that a content of such a name may have.
var extensions = map[string][]string{
	".pdf":  {"application/pdf"},
	".docx": {"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	".xlsx": {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	".pptx": {"application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	".odt":  {"application/vnd.oasis.opendocument.text"},
	".epub": {"application/epub+zip"},
	".png":  {"image/png"}, ".jpg": {"image/jpeg"}, ".jpeg": {"image/jpeg"}, ".webp": {"image/webp"}, ".gif": {"image/gif"}, ".heic": {"image/heic"},
	".mp3": {"audio/mpeg"}, ".wav": {"audio/wav"}, ".ogg": {"audio/ogg"}, ".flac": {"audio/flac"}, ".m4a": {"audio/mp4"},
	".zip": {"application/zip"}, ".gz": {"application/gzip"}, ".tar": {"application/x-tar"},
}

// Detect returns the media type of a content from its first bytes. For a text, it is the declared type, or the one of the
// extension. mismatch is the reason why the content cannot be a file with this name and declared type.
func (Detector) Detect(head []byte, filename, declared string) (mediaType string, mismatch *protocol.UploadFailure) {
	declared = canonical(declared)
	detected := detect(head)
	if detected == encrypted {
		return detected, failure(protocol.UploadEncrypted, "The document is encrypted, or in the format of Office before 2007. Save it again without a password.")
	}
	if isText(detected, head) {
		return detectText(detected, filename, declared)
	}
	switch {
	case filetype.KindOf(detected) == protocol.FileOther:
		return detected, failure(protocol.UploadContentMismatch, "The content is of the type "+detected+", which is not accepted.")
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

func canonical(name string) string {
	if alias, is := aliases[name]; is {
		return alias
	}
	return name
}

// detect returns the most specific accepted type of a content; that of the content itself if none is accepted.
func detect(head []byte) string {
	found := mimetype.Detect(head)
	for m := found; m != nil; m = m.Parent() {
		name := canonical(plain(m.String()))
		if name == encrypted || filetype.KindOf(name) != protocol.FileOther {
			return name
		}
	}
	return canonical(plain(found.String()))
}

func plain(name string) string {
	media, _, err := mime.ParseMediaType(name)
	if err != nil {
		return name
	}
	return media
}

// isText reports whether a content is a text: the library reports it, or it has no type and its first bytes are UTF-8.
func isText(detected string, head []byte) bool {
	switch filetype.KindOf(detected) {
	case protocol.FileText:
		return true
	case protocol.FileDocument:
		return detected == "text/html"
	}
	return detected == filetype.OctetStream && bytes.IndexByte(head, 0) < 0 && utf8.Valid(trimRune(head))
}

// trimRune removes an incomplete character at the end of the first bytes.
func trimRune(head []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(head); n++ {
		if c := head[len(head)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(head[len(head)-n:]) {
				return head[:len(head)-n]
			}
			break
		}
	}
	return head
}

// detectText returns the type of a text. Which language a text is in, its name and its declared type say, not its content.
func detectText(detected, filename, declared string) (string, *protocol.UploadFailure) {
	kind := filetype.KindOf(declared)
	switch {
	case declared == filetype.OctetStream:
	case kind != protocol.FileText && declared != "text/html":
		return detected, failure(protocol.UploadContentMismatch, "The content is a text, and the upload declares "+declared+".")
	}
	if len(extensions[extension(filename)]) > 0 {
		return detected, failure(protocol.UploadContentMismatch, "The content is a text, which the name of the file contradicts.")
	}
	if declared != filetype.OctetStream {
		return declared, nil
	}
	if byName := canonical(plain(mime.TypeByExtension(extension(filename)))); filetype.KindOf(byName) == protocol.FileText {
		return byName, nil
	}
	if filetype.KindOf(detected) == protocol.FileOther {
		return "text/plain", nil
	}
	return detected, nil
}

func extension(filename string) string { return strings.ToLower(path.Ext(filename)) }

// fits reports whether a content of a type may have a name.
func fits(filename, detected string) bool {
	allowed, known := extensions[extension(filename)]
	if !known {
		return true
	}
	for _, one := range allowed {
		if one == detected {
			return true
		}
	}
	return false
}

// within reports whether a declared container holds the detected format.
func within(detected, declared string) bool {
	return declared == "application/zip" && strings.Contains(detected, "zip")
}
