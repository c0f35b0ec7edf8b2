package extract

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
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

// walkXML reads XML without building a tree. It refuses documents that declare entities, and those that are nested too
// deeply. Entities other than the five of XML are errors.
func walkXML(r io.Reader, visit func(node) error) error {
	d := xml.NewDecoder(r)
	d.CharsetReader = charset.NewReaderLabel
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
