package markdown

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed" // the styles
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	table "github.com/yuin/goldmark/extension/ast"
)

//go:embed styles.xml
var wordStyles string

const (
	xmlHead      = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	contentTypes = xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>` +
		`<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>` +
		`<Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/>` +
		`<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/></Types>`
	relationships     = `http://schemas.openxmlformats.org/officeDocument/2006/relationships`
	relationshipsHead = xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	packageParts      = relationshipsHead + `<Relationship Id="rId1" Type="` + relationships + `/officeDocument" Target="word/document.xml"/>` +
		`<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>`
	documentHead = xmlHead + `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="` + relationships + `"><w:body>`
	documentEnd  = `<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="567" w:footer="567" w:gutter="0"/></w:sectPr></w:body></w:document>`
	indentStep   = 360 // twentieths of a point
	maxIndent    = 12  // steps
	maxLinks     = 5000
)

// Word returns a document of Office Open XML (DOCX, ECMA-376) with Markdown of any length. Text that cannot be converted in bounded
// time is plain.
func Word(ctx context.Context, title, source string) ([]byte, error) {
	text, formulas := extractFormulas(source)
	w := &word{source: []byte(text), formulas: formulas, numbers: map[string]int{}}
	var root ast.Node
	if flat(source) {
		root = NewBudget(ctx).parse(forWord, w.source)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if root == nil {
		for line := range strings.Lines(source) {
			w.paragraph("", func() { w.run(strings.TrimRight(line, "\r\n"), format{}) })
		}
	} else {
		w.blocks(root)
	}
	var core bytes.Buffer
	core.WriteString(xmlHead + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>`)
	_ = xml.EscapeText(&core, []byte(title)) // the buffer takes everything
	core.WriteString(`</dc:title></cp:coreProperties>`)
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	for _, part := range []struct{ name, content string }{
		{"[Content_Types].xml", contentTypes},
		{"_rels/.rels", packageParts},
		{"docProps/core.xml", core.String()},
		{"word/styles.xml", wordStyles},
		{"word/_rels/document.xml.rels", w.links()},
		{"word/document.xml", documentHead + w.out.String() + documentEnd},
	} {
		to, err := archive.Create(part.name)
		if err == nil {
			_, err = to.Write([]byte(part.content))
		}
		if err != nil {
			return nil, fmt.Errorf("writing a document: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("writing a document: %w", err)
	}
	return file.Bytes(), nil
}

// word writes the body of a document.
type word struct {
	source   []byte
	formulas []formula       // of the source, which has placeholders for them
	out      strings.Builder // the paragraphs
	runs     strings.Builder // of the present paragraph
	targets  []string        // of the links, without repetitions
	numbers  map[string]int  // of the targets
	indent   int             // steps
	marker   string          // of a list item, until its first paragraph is written
	quoted   int             // quotes around the present block

	// Of the present paragraph.
	directed    bool // it has a letter
	rightToLeft bool
}

// format is how a run of text looks.
type format struct{ bold, italic, strike, code, link bool }

func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // the builder takes everything
	return b.String()
}

// links returns the part with the targets of the links.
func (w *word) links() string {
	var b strings.Builder
	b.WriteString(relationshipsHead + `<Relationship Id="rId1" Type="` + relationships + `/styles" Target="styles.xml"/>`)
	for i, target := range w.targets {
		fmt.Fprintf(&b, `<Relationship Id="rId%d" Type="%s/hyperlink" Target="%s" TargetMode="External"/>`, i+2, relationships, escapeXML(target))
	}
	b.WriteString(`</Relationships>`)
	return b.String()
}

// blocks writes the blocks within a node.
func (w *word) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.block(n)
	}
}

func (w *word) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.paragraph(fmt.Sprintf("Heading%d", n.Level), func() { w.inlines(n, format{}) })
	case *ast.Paragraph, *ast.TextBlock:
		w.paragraph("", func() { w.inlines(n, format{}) })
	case *ast.List:
		w.list(n)
	case *ast.Blockquote:
		w.quoted, w.indent = w.quoted+1, w.indent+1
		w.blocks(n)
		w.quoted, w.indent = w.quoted-1, w.indent-1
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		style := "Code"
		if n.Kind() == ast.KindHTMLBlock {
			style = ""
		}
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			w.paragraph(style, func() { w.run(strings.TrimRight(string(line.Value(w.source)), "\r\n"), format{}) })
		}
		if block, is := n.(*ast.HTMLBlock); is && block.HasClosure() {
			w.paragraph(style, func() { w.run(strings.TrimRight(string(block.ClosureLine.Value(w.source)), "\r\n"), format{}) })
		}
	case *ast.ThematicBreak:
		w.out.WriteString(`<w:p><w:pPr><w:pBdr><w:bottom w:val="single" w:sz="6" w:space="1" w:color="auto"/></w:pBdr></w:pPr></w:p>`)
	case *table.Table:
		w.table(n)
	default:
		w.blocks(n)
	}
}

// list writes the items of a list, with their markers as text.
func (w *word) list(n *ast.List) {
	number := n.Start
	w.indent++
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		w.marker = "•"
		if n.IsOrdered() {
			w.marker = fmt.Sprintf("%d.", number)
			number++
		}
		w.blocks(item)
		if w.marker != "" { // an item without a text
			w.paragraph("", func() {})
		}
	}
	w.indent--
}

func (w *word) table(n *table.Table) {
	w.out.WriteString(`<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid>`)
	for range n.Alignments {
		w.out.WriteString(`<w:gridCol/>`)
	}
	w.out.WriteString(`</w:tblGrid>`)
	indent, marker := w.indent, w.marker
	w.indent, w.marker = 0, ""
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		w.out.WriteString(`<w:tr>`)
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			w.out.WriteString(`<w:tc><w:tcPr><w:tcW w:w="0" w:type="auto"/></w:tcPr>`)
			w.paragraph("", func() { w.inlines(cell, format{bold: row.Kind() == table.KindTableHeader}) })
			w.out.WriteString(`</w:tc>`)
		}
		w.out.WriteString(`</w:tr>`)
	}
	w.indent, w.marker = indent, marker
	w.out.WriteString(`</w:tbl><w:p/>`) // two tables need a paragraph in between
}

// paragraph writes a paragraph with a style; empty: the usual one.
func (w *word) paragraph(style string, content func()) {
	if style == "" && w.quoted > 0 {
		style = "Quote"
	}
	w.runs.Reset()
	w.rightToLeft, w.directed = false, false
	marked := w.marker != ""
	if marked {
		w.run(w.marker, format{})
		w.runs.WriteString(`<w:r><w:tab/></w:r>`)
		w.marker = ""
	}
	content()
	w.out.WriteString(`<w:p><w:pPr>`)
	if style != "" {
		fmt.Fprintf(&w.out, `<w:pStyle w:val="%s"/>`, style)
	}
	left := min(w.indent, maxIndent) * indentStep
	if marked {
		fmt.Fprintf(&w.out, `<w:tabs><w:tab w:val="left" w:pos="%d"/></w:tabs>`, left)
	}
	if w.rightToLeft {
		w.out.WriteString(`<w:bidi/>`)
	}
	switch {
	case marked:
		fmt.Fprintf(&w.out, `<w:ind w:left="%d" w:hanging="%d"/>`, left, indentStep)
	case left > 0:
		fmt.Fprintf(&w.out, `<w:ind w:left="%d"/>`, left)
	}
	w.out.WriteString(`</w:pPr>` + w.runs.String() + `</w:p>`)
}

// inlines writes the runs within a node.
func (w *word) inlines(parent ast.Node, as format) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inline(n, as)
	}
}

func (w *word) inline(n ast.Node, as format) {
	switch n := n.(type) {
	case *ast.Text:
		w.run(unescaped(n.Value(w.source)), as)
		if n.HardLineBreak() {
			w.runs.WriteString(`<w:r><w:br/></w:r>`)
		} else if n.SoftLineBreak() {
			w.run(" ", as)
		}
	case *ast.String:
		w.run(unescaped(n.Value), as)
	case *ast.CodeSpan:
		as.code = true
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, is := c.(*ast.Text); is {
				w.run(strings.ReplaceAll(string(t.Value(w.source)), "\n", " "), as)
			}
		}
	case *ast.Emphasis:
		as.bold, as.italic = as.bold || n.Level > 1, as.italic || n.Level == 1
		w.inlines(n, as)
	case *table.Strikethrough:
		as.strike = true
		w.inlines(n, as)
	case *ast.Link:
		w.link(targetOf(n.Destination, w.formulas), func(as format) { w.inlines(n, as) }, as)
	case *ast.Image:
		w.link(targetOf(n.Destination, w.formulas), func(as format) { w.inlines(n, as) }, as)
	case *ast.AutoLink:
		address := string(n.URL(w.source))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(address, "mailto:") {
			address = "mailto:" + address
		}
		w.link(linkTarget(restoreSource(address, w.formulas)), func(as format) { w.run(string(n.Label(w.source)), as) }, as)
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			segment := n.Segments.At(i)
			w.run(string(segment.Value(w.source)), as)
		}
	default:
		w.inlines(n, as)
	}
}

// link writes a link. Without a target, it is text.
func (w *word) link(target *url.URL, content func(format), as format) {
	if target == nil {
		content(as)
		return
	}
	address := target.String()
	number, known := w.numbers[address]
	if !known {
		if len(w.targets) == maxLinks {
			content(as)
			return
		}
		w.targets = append(w.targets, address)
		number = len(w.targets)
		w.numbers[address] = number
	}
	as.link = true
	fmt.Fprintf(&w.runs, `<w:hyperlink r:id="rId%d">`, number+1)
	content(as)
	w.runs.WriteString(`</w:hyperlink>`)
}

// run writes a text, with formulas as they were written. The first letter of a paragraph decides on its direction.
func (w *word) run(text string, as format) {
	text = replacePlaceholders(text, w.formulas, func(f *formula) string {
		if !f.first() {
			return ""
		}
		return f.raw
	})
	if text == "" {
		return
	}
	if !w.directed {
		if at := strings.IndexFunc(text, unicode.IsLetter); at >= 0 {
			first, _ := utf8.DecodeRuneInString(text[at:])
			w.directed, w.rightToLeft = true, unicode.In(first, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana)
		}
	}
	w.runs.WriteString(`<w:r><w:rPr>`)
	for _, property := range []struct {
		set bool
		xml string
	}{
		{as.link, `<w:rStyle w:val="Hyperlink"/>`},
		{as.code, `<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas" w:cs="Consolas"/>`},
		{as.bold, `<w:b/>`},
		{as.italic, `<w:i/>`},
		{as.strike, `<w:strike/>`},
		{w.rightToLeft, `<w:rtl/>`},
	} {
		if property.set {
			w.runs.WriteString(property.xml)
		}
	}
	w.runs.WriteString(`</w:rPr><w:t xml:space="preserve">` + escapeXML(text) + `</w:t></w:r>`)
}
