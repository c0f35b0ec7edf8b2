package protocol

import (
	"slices"
	"strings"
)

// MediaType is one media type that a file may have.
type MediaType struct {
	Name string
	Kind FileKind
}

// OctetStream is the media type of a content whose type the client does not know.
const OctetStream = "application/octet-stream"

// MediaTypes lists the media types that the service accepts, in addition to every text type and OctetStream. With
// OctetStream, the detected type must be one of them.
var MediaTypes = []MediaType{
	{"application/pdf", FileDocument},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", FileDocument},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", FileDocument},
	{"application/vnd.openxmlformats-officedocument.presentationml.presentation", FileDocument},
	{"application/vnd.oasis.opendocument.text", FileDocument},
	{"application/epub+zip", FileDocument},
	{"text/html", FileDocument},
	{"application/json", FileText},
	{"application/xml", FileText},
	{"application/yaml", FileText},
	{"application/toml", FileText},
	{"application/javascript", FileText},
	{"application/x-ndjson", FileText},
	{"application/x-sh", FileText},
	{"application/sql", FileText},
	{"image/jpeg", FileImage},
	{"image/png", FileImage},
	{"image/webp", FileImage},
	{"image/gif", FileImage},
	{"image/heic", FileImage},
	{"image/svg+xml", FileText}, // never shown as a picture: it may contain scripts
	{"audio/mpeg", FileAudio},
	{"audio/wav", FileAudio},
	{"audio/ogg", FileAudio},
	{"audio/flac", FileAudio},
	{"audio/mp4", FileAudio},
	{"application/zip", FileArchive},
	{"application/gzip", FileArchive},
	{"application/x-tar", FileArchive},
}

// AcceptsMediaType reports whether a file may declare a media type, without parameters and in lower case.
func AcceptsMediaType(name string) bool { return name == OctetStream || KindOf(name) != FileOther }

// KindOf returns the kind of a media type, without parameters and in lower case; FileOther for one that the service does
// not accept.
func KindOf(name string) FileKind {
	at := slices.IndexFunc(MediaTypes, func(m MediaType) bool { return m.Name == name })
	switch {
	case at >= 0:
		return MediaTypes[at].Kind
	case strings.HasPrefix(name, "text/"):
		return FileText
	}
	return FileOther
}
