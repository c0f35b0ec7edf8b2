package extract

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"path"
	"strings"

	htmlcharset "golang.org/x/net/html/charset"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

const (
	// maxMail limits what is read of a mail with its attachments.
	maxMail = 64 << 20
	// maxParts and maxNested limit the parts of a mail, and mails that are attached to mails.
	maxParts  = 1000
	maxNested = 8
)

// mailReader writes mails and saved web pages: both are MIME documents.
type mailReader struct {
	*text
	parts  int
	isPage bool // a saved web page, of which only the page is shown
}

// readMail reads a mail: its headers, its text, and each attachment as a chapter. readPage reads a web page that was saved with its
// pictures.
func readMail(t *text, c content) error { return (&mailReader{text: t}).read(c, 0) }

func readPage(t *text, c content) error { return (&mailReader{text: t, isPage: true}).read(c, 0) }

func (m *mailReader) read(c content, depth int) error {
	raw, err := io.ReadAll(io.LimitReader(c.reader(), maxMail))
	if err != nil {
		return err
	}
	m.truncated = m.truncated || c.size > maxMail
	if bytes.HasPrefix(raw, []byte("From ")) { // as in a mailbox
		_, raw, _ = bytes.Cut(raw, []byte("\n"))
	}
	return m.message(raw, depth)
}

// shownHeaders are the headers of a mail that a reader sees.
var shownHeaders = []string{"From", "To", "Cc", "Date", "Subject"}

func (m *mailReader) message(raw []byte, depth int) error {
	from := bufio.NewReader(bytes.NewReader(raw))
	header, err := textproto.NewReader(from).ReadMIMEHeader()
	if len(header) == 0 || err != nil && header.Get("From") == "" && header.Get("Content-Type") == "" && header.Get("Subject") == "" {
		return errDamaged
	}
	if !m.isPage {
		if err := m.begin(protocol.BlockChapter, m.word(header.Get("Subject"))); err != nil {
			return err
		}
		for _, name := range shownHeaders {
			if value := m.word(header.Get(name)); value != "" {
				if err := m.joined(name + ": " + value); err != nil {
					return err
				}
			}
		}
		if err := m.write("\n"); err != nil {
			return err
		}
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return m.part(header, body, depth)
}

// word decodes a value of a header.
func (m *mailReader) word(value string) string {
	decoder := mime.WordDecoder{CharsetReader: htmlcharset.NewReaderLabel}
	decoded, err := decoder.DecodeHeader(value)
	if err != nil {
		decoded = value
	}
	return strings.Join(strings.Fields(m.decode([]byte(decoded), false)), " ")
}

// part writes a part of a mail.
func (m *mailReader) part(header textproto.MIMEHeader, body []byte, depth int) error {
	if m.parts++; m.parts > maxParts || depth > maxNested {
		return errComplex
	}
	mediaType, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil && mediaType == "" {
		mediaType = "text/plain"
	}
	if boundary := parameters["boundary"]; strings.HasPrefix(mediaType, "multipart/") && boundary != "" {
		return m.multipart(mediaType, boundary, body, depth)
	}
	content, err := decodedBody(header.Get("Content-Transfer-Encoding"), body)
	if err != nil {
		m.note(protocol.NoteMissingParts, 1)
	}
	name := m.filename(header, parameters)
	disposition, _, _ := mime.ParseMediaType(header.Get("Content-Disposition")) // without one it is inline
	isAttached := disposition == "attachment" || name != ""
	switch {
	case mediaType == "text/html" && !isAttached:
		return m.html(content, parameters["charset"])
	case m.isPage, strings.HasPrefix(mediaType, "image/") && header.Get("Content-Id") != "" && disposition != "attachment": // part of the page
		return nil
	case strings.HasPrefix(mediaType, "text/") && !isAttached:
		return m.joined(m.textOf(content, parameters["charset"]))
	case mediaType == mailType:
		return m.message(content, depth+1)
	}
	return m.attachment(name, mediaType, content, parameters["charset"], depth)
}

// filename returns the name of an attachment; empty if it has none.
func (m *mailReader) filename(header textproto.MIMEHeader, parameters map[string]string) string {
	_, disposition, _ := mime.ParseMediaType(header.Get("Content-Disposition")) // without a name there
	for _, name := range []string{disposition["filename"], parameters["name"]} {
		if name = m.word(name); name != "" {
			return name
		}
	}
	return ""
}

// multipart writes the parts of a part: of several forms of the same text the plain one, or of a web page the page.
func (m *mailReader) multipart(mediaType, boundary string, body []byte, depth int) error {
	type one struct {
		header textproto.MIMEHeader
		body   []byte
	}
	var all []one
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for len(all) < maxParts {
		next, err := parts.NextRawPart()
		if err != nil {
			if err != io.EOF || len(all) == 0 { //nolint:errorlint // it is not wrapped
				m.note(protocol.NoteMissingParts, 1)
			}
			break
		}
		content, err := io.ReadAll(next)
		if err != nil && len(content) == 0 {
			m.note(protocol.NoteMissingParts, 1)
			break
		}
		all = append(all, one{next.Header, content})
	}
	if len(all) == 0 {
		return nil
	}
	if len(all) == maxParts {
		return errComplex
	}
	if mediaType == "multipart/alternative" {
		best := all[len(all)-1]
		for _, p := range all {
			if kind, _, _ := mime.ParseMediaType(p.header.Get("Content-Type")); kind == "text/plain" && len(bytes.TrimSpace(p.body)) > 0 {
				best = p
				break
			}
		}
		return m.part(best.header, best.body, depth+1)
	}
	for _, p := range all {
		if err := m.part(p.header, p.body, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// decodedBody returns what can be decoded of a part; the error says that the rest is damaged.
func decodedBody(transfer string, body []byte) ([]byte, error) {
	var from io.Reader
	switch strings.ToLower(strings.TrimSpace(transfer)) {
	case "base64":
		clean := bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' || r == ' ' || r == '\t' {
				return -1
			}
			return r
		}, body)
		from = base64.NewDecoder(base64.StdEncoding, bytes.NewReader(clean))
	case "quoted-printable":
		from = quotedprintable.NewReader(bytes.NewReader(body))
	default:
		return body, nil
	}
	return io.ReadAll(from)
}

// textOf decodes the text of a part in its charset, or in the encoding that it looks like.
func (m *mailReader) textOf(content []byte, label string) string {
	if from, name := htmlcharset.Lookup(label); from != nil && name != "utf-8" {
		if decoded, err := from.NewDecoder().Bytes(content); err == nil {
			return string(decoded)
		}
	}
	return m.decode(content, false)
}

func (m *mailReader) html(content []byte, label string) error {
	markup := m.textOf(content, label)
	if label == "" {
		markup = m.decode(content, true)
	}
	markdown, _ := m.markdownOf(markup)
	return m.joined(markdown)
}

// attachment writes a file in a mail as a chapter, if it can be read here.
func (m *mailReader) attachment(name, mediaType string, body []byte, label string, depth int) error {
	mediaType = filetype.Canonical(mediaType)
	if byName := filetype.ByName(name); filetype.KindOf(mediaType) == protocol.FileOther && byName != "" {
		mediaType = byName
	}
	if name == "" {
		name = mediaType
	}
	if err := m.begin(protocol.BlockChapter, name); err != nil {
		return err
	}
	if err := m.joined(fmt.Sprintf("Attachment: %s (%s, %d bytes)", path.Base(name), mediaType, len(body))); err != nil {
		return err
	}
	read, isDocument := documents[mediaType]
	switch {
	case mediaType == mailType:
		return m.message(body, depth+1)
	case mediaType == outlookType:
		inner, err := outlookStreams(m.text, content{bytes.NewReader(body), int64(len(body))})
		if err != nil {
			m.note(protocol.NoteUnreadMembers, 1)
			return nil // it is noted
		}
		return m.outlook(inner, depth+1)
	case isDocument:
		before := m.truncated
		if err := read(m.text, content{bytes.NewReader(body), int64(len(body))}); err != nil {
			if err == errFull { //nolint:errorlint // it is not wrapped
				return err
			}
			m.note(protocol.NoteUnreadMembers, 1)
		}
		m.truncated = m.truncated || before
	case filetype.KindOf(mediaType) == protocol.FileText:
		return m.joined(m.textOf(body, label))
	default:
		m.note(protocol.NoteUnreadMembers, 1)
	}
	return nil
}
