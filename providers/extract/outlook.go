package extract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/richardlehane/mscfb"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// outlookType is a mail that Outlook saved: a compound file with a stream for each property.
const outlookType = "application/vnd.ms-outlook"

// The properties of a mail and of an attachment, by the beginnings of the names of their streams. Their ends are their types.
const (
	outlookProperty   = "__substg1.0_"
	outlookFixed      = "__properties_version1.0" // has those of a fixed length
	outlookAttachment = "__attach_version1.0_"

	propertySubject    = "0037"
	propertyFromName   = "0C1A"
	propertyFrom       = "5D01" // the address
	propertyFromOld    = "0C1F" // an address, or the name of an account of Exchange
	propertyTo         = "0E04"
	propertyCc         = "0E03"
	propertyBody       = "1000"
	propertyHTML       = "1013"
	propertyRTF        = "1009" // compressed
	propertyFile       = "3701"
	propertyLongName   = "3707"
	propertyShortName  = "3704"
	propertyMediaType  = "370E"
	propertySentAt     = 0x0039
	propertyReceivedAt = 0x0E06

	typeUnicode = "001F"
	typeBytes   = "001E" // a text in a code page
	typeBinary  = "0102"
	typeObject  = "000D" // a mail within the mail

	maxStreams = 10_000
)

// outlookItem is a mail or an attachment: its properties by their identifiers and types, the attachments, and a mail that is attached.
type outlookItem struct {
	properties map[string][]byte
	items      map[string]*outlookItem
}

func newOutlookItem() *outlookItem {
	return &outlookItem{map[string][]byte{}, map[string]*outlookItem{}}
}

// readOutlook reads a mail that Outlook saved: its headers, its text, and each attachment as a chapter.
func readOutlook(t *text, c content) error {
	root, err := outlookStreams(t, c)
	if err != nil {
		return err
	}
	m := &mailReader{text: t}
	if _, is := root.properties[outlookFixed]; !is {
		return errDamaged
	}
	return m.outlook(root, 0)
}

// outlookStreams reads the streams of a compound file as a tree. Streams that cannot be read are noted.
func outlookStreams(t *text, c content) (*outlookItem, error) {
	file, err := mscfb.New(c)
	if err != nil {
		return nil, fail(protocol.TextDamaged, err)
	}
	root, left := newOutlookItem(), int64(maxMail)
	for n := 0; ; n++ {
		stream, err := file.Next()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil || n >= maxStreams || len(stream.Path) > 2*maxNested {
			return nil, errComplex
		}
		if stream.FileInfo().IsDir() {
			continue
		}
		item := root
		for _, name := range stream.Path {
			if item.items[name] == nil {
				item.items[name] = newOutlookItem()
			}
			item = item.items[name]
		}
		content, err := io.ReadAll(io.LimitReader(stream, min(left, stream.Size)))
		if err != nil || int64(len(content)) < stream.Size {
			t.truncated = t.truncated || stream.Size > left
			t.note(protocol.NoteMissingParts, 1)
		}
		left -= int64(len(content))
		item.properties[strings.TrimPrefix(stream.Name, outlookProperty)] = content
	}
}

// outlook writes a mail.
func (m *mailReader) outlook(item *outlookItem, depth int) error {
	if m.parts++; m.parts > maxParts || depth > maxNested {
		return errComplex
	}
	if err := m.begin(protocol.BlockChapter, m.property(item, propertySubject)); err != nil {
		return err
	}
	for _, header := range []struct{ name, value string }{
		{"From", m.sender(item)},
		{"To", m.property(item, propertyTo)},
		{"Cc", m.property(item, propertyCc)},
		{"Date", sentAt(item.properties[outlookFixed])},
		{"Subject", m.property(item, propertySubject)},
	} {
		if header.value != "" {
			if err := m.joined(header.name + ": " + header.value); err != nil {
				return err
			}
		}
	}
	if err := m.write("\n"); err != nil {
		return err
	}
	if err := m.outlookBody(item); err != nil {
		return err
	}
	names := make([]string, 0, len(item.items))
	for name := range item.items {
		if strings.HasPrefix(name, outlookAttachment) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := m.outlookAttachment(item.items[name], depth); err != nil {
			return err
		}
	}
	return nil
}

func (m *mailReader) sender(item *outlookItem) string {
	name, address := m.property(item, propertyFromName), m.property(item, propertyFrom)
	if old := m.property(item, propertyFromOld); address == "" && strings.Contains(old, "@") {
		address = old
	}
	switch {
	case address == "" || address == name:
		return name
	case name == "":
		return address
	}
	return name + " <" + address + ">"
}

// property returns a property with a text, on one line.
func (m *mailReader) property(item *outlookItem, id string) string {
	return strings.Join(strings.Fields(m.outlookText(item, id)), " ")
}

func (m *mailReader) outlookText(item *outlookItem, id string) string {
	if wide, has := item.properties[id+typeUnicode]; has {
		units := make([]uint16, len(wide)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(wide[2*i:])
		}
		return strings.ReplaceAll(string(utf16.Decode(units)), "\r\n", "\n")
	}
	return strings.ReplaceAll(m.decode(item.properties[id+typeBytes], false), "\r\n", "\n")
}

// outlookBody writes the text of a mail: the plain one, otherwise that of its web page. A mail that has neither has a text in a format
// that is not read, which is noted.
func (m *mailReader) outlookBody(item *outlookItem) error {
	if plain := strings.Trim(m.outlookText(item, propertyBody), "\x00"); strings.TrimSpace(plain) != "" {
		return m.joined(plain)
	}
	if page := item.properties[propertyHTML+typeBinary]; len(page) > 0 {
		return m.html(page, "")
	}
	if page := m.outlookText(item, propertyHTML); page != "" {
		return m.html([]byte(page), "utf-8")
	}
	if len(item.properties[propertyRTF+typeBinary]) > 0 {
		m.note(protocol.NoteMissingParts, 1)
	}
	return nil
}

func (m *mailReader) outlookAttachment(item *outlookItem, depth int) error {
	if inner := item.items[outlookProperty+propertyFile+typeObject]; inner != nil && inner.properties[outlookFixed] != nil {
		return m.outlook(inner, depth+1)
	}
	name := m.property(item, propertyLongName)
	if name == "" {
		name = m.property(item, propertyShortName)
	}
	content, has := item.properties[propertyFile+typeBinary]
	if !has { // a link, or an object of another program
		m.note(protocol.NoteUnreadMembers, 1)
		if name == "" {
			return nil
		}
		return m.joined(fmt.Sprintf("Attachment: %s", name))
	}
	if m.parts++; m.parts > maxParts {
		return errComplex
	}
	mediaType := m.property(item, propertyMediaType)
	if mediaType == "" {
		mediaType = filetype.OctetStream
	}
	return m.attachment(strings.Trim(name, "\x00"), mediaType, content, "", depth)
}

// sentAt returns the time at which a mail was sent, or arrived, from the properties of a fixed length: entries of 16 bytes after a
// header, whose length depends on the kind of item.
func sentAt(fixed []byte) string {
	const entry, filetimeType, epoch = 16, 0x0040, 116444736000000000
	times := map[uint16]time.Time{}
	for _, header := range []int{32, 24, 8} { // of a mail, of one within a mail, of an attachment
		for at := header; at+entry <= len(fixed); at += entry {
			if binary.LittleEndian.Uint16(fixed[at:]) != filetimeType {
				continue
			}
			if ticks := binary.LittleEndian.Uint64(fixed[at+8:]); ticks > epoch && ticks < epoch*3 {
				times[binary.LittleEndian.Uint16(fixed[at+2:])] = time.Unix(int64((ticks-epoch)/1e7), 0).UTC() // bounded above
			}
		}
		for _, id := range []uint16{propertySentAt, propertyReceivedAt} {
			if at, has := times[id]; has {
				return at.Format(time.RFC1123Z)
			}
		}
	}
	return ""
}
