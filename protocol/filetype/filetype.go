// Package filetype has the table of the media types that files may have, and makes safe names for files. It reads no contents:
// package media detects types.
package filetype

import (
	"slices"
	"strings"

	"turnstone/protocol"
)

// Type is one media type that a file may have.
type Type struct {
	Name string
	Kind protocol.FileKind
}

// OctetStream is the media type of a content whose type the client does not know.
const OctetStream = "application/octet-stream"

// Types lists the media types that the service accepts, in addition to every text type, what ends with +json, +xml
// or +yaml, and OctetStream. With
// OctetStream, the detected type must be one of them.
var Types = []Type{
	{"application/pdf", protocol.FileDocument},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", protocol.FileDocument},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", protocol.FileDocument},
	{"application/vnd.openxmlformats-officedocument.presentationml.presentation", protocol.FileDocument},
	{"application/vnd.oasis.opendocument.text", protocol.FileDocument},
	{"application/vnd.oasis.opendocument.spreadsheet", protocol.FileDocument},
	{"application/vnd.oasis.opendocument.presentation", protocol.FileDocument},
	{"application/epub+zip", protocol.FileDocument},
	{"text/html", protocol.FileDocument},
	{"application/msword", protocol.FileDocument},
	{"application/vnd.ms-excel", protocol.FileDocument},
	{"application/vnd.ms-powerpoint", protocol.FileDocument},
	{"application/rtf", protocol.FileDocument},
	{"message/rfc822", protocol.FileDocument},
	{"application/vnd.ms-outlook", protocol.FileDocument},
	{"multipart/related", protocol.FileDocument}, // a web page that was saved with its pictures
	{"application/x-ipynb+json", protocol.FileDocument},
	{"application/json", protocol.FileText},
	{"application/xml", protocol.FileText},
	{"application/yaml", protocol.FileText},
	{"application/toml", protocol.FileText},
	{"application/javascript", protocol.FileText},
	{"application/x-ndjson", protocol.FileText},
	{"application/x-sh", protocol.FileText},
	{"application/sql", protocol.FileText},
	{"image/jpeg", protocol.FileImage},
	{"image/png", protocol.FileImage},
	{"image/webp", protocol.FileImage},
	{"image/gif", protocol.FileImage},
	{"image/bmp", protocol.FileImage},
	{"image/tiff", protocol.FileImage},
	{"image/heic", protocol.FileImage},
	{"image/avif", protocol.FileImage},
	{"image/svg+xml", protocol.FileText}, // never shown as a picture: it may contain scripts
	{"audio/mpeg", protocol.FileAudio},
	{"audio/wav", protocol.FileAudio},
	{"audio/ogg", protocol.FileAudio},
	{"audio/flac", protocol.FileAudio},
	{"audio/mp4", protocol.FileAudio},
	{"application/zip", protocol.FileArchive},
	{"application/gzip", protocol.FileArchive},
	{"application/x-tar", protocol.FileArchive},
}

// Accepts reports whether a file may declare a media type, without parameters and in lower case.
func Accepts(name string) bool { return name == OctetStream || KindOf(name) != protocol.FileOther }

// KindOf returns the kind of a media type, without parameters and in lower case; protocol.FileOther for one that the
// service does not accept.
func KindOf(name string) protocol.FileKind {
	at := slices.IndexFunc(Types, func(m Type) bool { return m.Name == name })
	switch {
	case at >= 0:
		return Types[at].Kind
	case strings.HasPrefix(name, "text/"), strings.HasSuffix(name, "+json"), strings.HasSuffix(name, "+xml"), strings.HasSuffix(name, "+yaml"):
		return protocol.FileText
	}
	return protocol.FileOther
}
