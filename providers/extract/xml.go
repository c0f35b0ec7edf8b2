package extract

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
)

// node is one step of a walk through XML: the start or the end of an element, or a text.
type node struct {
	start *xml.StartElement
	end   string // local name
	text  []byte
}

func (n node) opens(name string) bool { return n.start != nil && n.start.Name.Local == name }

// attr returns the value of an attribute, whatever its namespace; "" if it is absent.
func (n node) attr(name string) string {
	for _, a := range n.start.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// attrOf is attr for one namespace, which ends with suffix.
func (n node) attrOf(suffix, name string) string {
	for _, a := range n.start.Attr {
		if a.Name.Local == name && strings.HasSuffix(a.Name.Space, suffix) {
			return a.Value
		}
	}
	return ""
}

// narrow returns a reader of UTF-8 for XML in UTF-16, which has a byte order mark; other XML stays as it is.
func narrow(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	const mark = 2
	if head, err := b.Peek(mark); err == nil && (bytes.Equal(head, []byte{0xFF, 0xFE}) || bytes.Equal(head, []byte{0xFE, 0xFF})) {
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(b)
	}
	return b
}

// decoderOf decodes XML that names its encoding. That of UTF-16 is decoded already.
func decoderOf(label string, r io.Reader) (io.Reader, error) {
	if strings.HasPrefix(strings.ToLower(label), "utf-16") {
		return r, nil
	}
	return charset.NewReaderLabel(label, r)
}

// walkXML reads XML without building a tree. It refuses documents that declare entities, and those that are nested too
// deeply. Entities other than the five of XML are errors.
func walkXML(r io.Reader, visit func(node) error) error {
	d := xml.NewDecoder(narrow(r))
	d.CharsetReader = decoderOf
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch one := token.(type) {
		case xml.Directive:
			if bytes.ContainsAny(one, "[") || bytes.Contains(one, []byte("ENTITY")) {
				return errComplex
			}
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return errComplex
			}
			err = visit(node{start: &one})
		case xml.EndElement:
			depth--
			err = visit(node{end: one.Name.Local})
		case xml.CharData:
			err = visit(node{text: one})
		}
		if err != nil {
			return err
		}
	}
}
