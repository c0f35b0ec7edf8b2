package extract

import (
	"bytes"
	"strconv"
	"strings"
)

// readOpenDocument reads an ODT document.
func readOpenDocument(t *text, c content) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	if err := checkManifest(a); err != nil {
		return err
	}
	r := &openReader{text: t}
	if err := a.walk("content.xml", r.visit); err != nil {
		return err
	}
	if !r.hasText {
		return errDamaged // another kind of document
	}
	return nil
}

// checkManifest returns errEncrypted if an entry is encrypted.
func checkManifest(a *archive) error {
	const name = "META-INF/manifest.xml"
	if !a.has(name) {
		return nil
	}
	return a.walk(name, func(n node) error {
		if n.opens("encryption-data") {
			return errEncrypted
		}
		return nil
	})
}

// openReader writes the text of an OpenDocument.
type openReader struct {
	*text
	hasText bool
	depth   int // of paragraphs: only their text is shown
	hidden  int // depth of elements whose text is not part of the document
	cells   int
	line    strings.Builder
}

func (r *openReader) visit(n node) error {
	switch {
	case n.start != nil && r.hidden > 0, n.opens("annotation"), n.opens("tracked-changes"):
		r.hidden++
	case n.end != "" && r.hidden > 0:
		r.hidden--
	case r.hidden > 0:
	case n.start != nil:
		r.open(n)
	case n.end != "":
		return r.close(n.end)
	case r.depth > 0:
		r.line.Write(collapse(n.text))
	}
	return nil
}

func (r *openReader) open(n node) {
	switch n.start.Name.Local {
	case "text":
		r.hasText = true
	case "h":
		r.depth++
		r.line.WriteString(heading(n.attr("outline-level")))
	case "p":
		r.depth++
	case "tab":
		r.line.WriteByte('\t')
	case "line-break":
		r.line.WriteByte('\n')
	case "s":
		const most = 100 // spaces in a row
		count, err := strconv.Atoi(n.attr("c"))
		if err != nil {
			count = 1
		}
		r.line.WriteString(strings.Repeat(" ", max(0, min(count, most))))
	case "table-cell":
		r.cells++
	}
}

func (r *openReader) close(name string) error {
	switch name {
	case "p", "h":
		r.depth--
		if r.cells == 0 && r.depth == 0 {
			return r.flush()
		}
		r.line.WriteByte(' ')
	case "table-cell":
		r.cells--
		r.line.WriteByte('\t')
	case "table-row":
		if r.cells == 0 {
			return r.flush()
		}
	}
	return nil
}

func (r *openReader) flush() error {
	line := strings.TrimRight(r.line.String(), " \t\n")
	r.line.Reset()
	return r.write(line + "\n")
}

// collapse replaces each run of white space by one space, as OpenDocument requires.
func collapse(raw []byte) []byte {
	var b bytes.Buffer
	space := false
	for _, c := range raw {
		is := c == ' ' || c == '\t' || c == '\n' || c == '\r'
		switch {
		case !is:
			b.WriteByte(c)
		case !space:
			b.WriteByte(' ')
		}
		space = is
	}
	return b.Bytes()
}
