package extract

import (
	"errors"
	"io"
	"slices"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// documents maps the media types with a structure to the functions that read them. A PDF is read by pdftotext.
var documents = map[string]func(*text, content) error{
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   readWord,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         readSheets,
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": readSlides,
	"application/vnd.oasis.opendocument.text":                                   readOpenDocument("text"),
	"application/vnd.oasis.opendocument.spreadsheet":                            readOpenDocument("spreadsheet"),
	"application/vnd.oasis.opendocument.presentation":                           readOpenDocument("presentation"),
	"application/epub+zip": readBook,
	"text/html":            readHTML,
	"application/rtf":      readRTF,
	notebookType:           readNotebook,
}

// readerOf returns the function that reads documents of a type; nil if it has no structure.
func readerOf(mediaType string) func(*text, content) error {
	switch mediaType {
	case mailType:
		return readMail
	case pageType:
		return readPage
	case outlookType:
		return readOutlook
	}
	return documents[mediaType]
}

const (
	pdf          = "application/pdf"
	mailType     = "message/rfc822"
	pageType     = "multipart/related"
	notebookType = "application/x-ipynb+json"
)

// Read reads a content of any type other than PDF. A content that cannot be read is a result, too.
func Read(of io.ReaderAt, size int64, mediaType string) *protocol.Extraction {
	c := content{of, size}
	switch read := readerOf(mediaType); {
	case filetype.KindOf(mediaType) == protocol.FileImage:
		return readPicture(c, mediaType)
	case read != nil:
		return readInto(read, c)
	case filetype.KindOf(mediaType).HasText():
		return readInto(readText, c)
	}
	return &protocol.Extraction{State: protocol.TextNone}
}

func readInto(read func(*text, content) error, c content) *protocol.Extraction {
	t := &text{}
	err := read(t, c)
	if err == nil || errors.Is(err, errFull) {
		return t.extraction()
	}
	return failed(err)
}

// valid reports whether a result can be stored: what a child prints is checked like any other input.
func valid(x *protocol.Extraction) bool {
	states := []protocol.TextState{protocol.TextDone, protocol.TextNone, protocol.TextFailed}
	reasons := []protocol.TextReason{protocol.TextEncrypted, protocol.TextDamaged, protocol.TextTooComplex}
	if !slices.Contains(states, x.State) || (x.State == protocol.TextFailed) != slices.Contains(reasons, x.Reason) || x.State != protocol.TextDone && x.Text != "" {
		return false
	}
	if len(x.Notes) > len(protocol.NoteKinds) || slices.ContainsFunc(x.Notes, func(n protocol.TextNote) bool {
		return !slices.Contains(protocol.NoteKinds, n.Kind) || n.Count < 0 || n.Count > maxUnpacked || len(n.Value) > maxTitle || clean(n.Value) != n.Value
	}) {
		return false
	}
	const most = 1 << 31
	if len(x.Text) > maxText || len(x.Blocks) > maxBlocks || x.Pages < 0 || x.Pages > maxBlocks || x.Width < 0 || x.Width >= most || x.Height < 0 || x.Height >= most || clean(x.Text) != x.Text {
		return false
	}
	if x.Thumbnail != nil && (x.State != protocol.TextNone || !isRendition(x.Thumbnail, thumbnailSide, maxThumbnail)) {
		return false
	}
	if x.Picture != nil && (x.Thumbnail == nil || !isRendition(x.Picture, pictureSide, maxPicture)) {
		return false
	}
	end := 0
	for i := range x.Blocks {
		b := &x.Blocks[i]
		if b.Offset < end || b.Length <= 0 || b.Length > len(x.Text)-b.Offset || len(b.Title) > maxTitle || clean(b.Title) != b.Title || b.Page < 1 || b.Page > x.Pages {
			return false
		}
		switch b.Kind {
		case protocol.BlockPage, protocol.BlockSheet, protocol.BlockSlide, protocol.BlockChapter:
		default:
			return false
		}
		end = b.Offset + b.Length
	}
	return true
}
