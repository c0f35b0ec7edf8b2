package extract

import (
	"bytes"
	"errors"
	"strings"

	"turnstone/protocol"
)

// readOpenDocument returns a function that reads the documents whose body is an element: a text (ODT), a spreadsheet (ODS) or a
// presentation (ODP).
func readOpenDocument(body string) func(*text, content) error {
	return func(t *text, c content) error {
		a, err := openArchive(c)
		if err != nil {
			return err
		}
		if err := checkManifest(a); err != nil {
			return err
		}
		r := &openReader{prose: prose{text: t}, body: body, styles: map[string]openStyle{}, counters: map[string][]int{}}
		if a.has("styles.xml") {
			r.inStyles = true
			switch err := a.walk("styles.xml", r.visit); {
			case errors.Is(err, errComplex), errors.Is(err, errFull):
				return err
			case err != nil:
				t.note(protocol.NoteMissingParts, 1)
			}
			r.inStyles, r.depth, r.hidden, r.inBody = false, 0, 0, false
		}
		if err := a.walk("content.xml", r.visit); err != nil {
			return err
		}
		if !r.hasBody {
			return errDamaged // another kind of document
		}
		return nil
	}
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

// openStyle is what a style says about its text: that it is hidden, or how the levels of a list are numbered.
type openStyle struct {
	hidden bool
	white  bool // which is hidden on the page of a text
	levels map[int]openLevel
}

// openLevel is a level of a list; a format of points is bullet.
type openLevel struct {
	format, before, after string
	shown, start          int // how many levels a number has
}

// openReader writes the text of an OpenDocument.
type openReader struct {
	prose
	body     string // the element that has the text
	hasBody  bool
	inBody   bool
	inStyles bool // of the part with the styles, the headers and footers of the pages are read
	depth    int  // of paragraphs: only their text is shown
	hidden   int  // depth of elements whose text is not part of the document
	unseen   int  // depth of elements whose text is not shown
	style    string
	styles   map[string]openStyle
	lists    []string // the styles of the lists that are open
	counters map[string][]int
	item     string // the number of the item, until its first paragraph
	cell     openCell

	interrupted []bool // of each text box, note or comment: whether it is within a paragraph
	pending     int    // empty rows, which are written before the next one that is not empty
}

// openCell is how often a cell of a spreadsheet and its row are repeated.
type openCell struct{ columns, rows, empty int }

func (r *openReader) visit(n node) error {
	switch {
	case n.start != nil && r.hidden > 0, n.opens("tracked-changes"), n.opens("settings"), n.opens("forms"),
		n.start != nil && strings.HasSuffix(n.start.Name.Space, "/dc/elements/1.1/"), // who commented, and when
		n.opens("covered-table-cell") && r.body != "spreadsheet":
		r.hidden++
	case n.end != "" && r.hidden > 0:
		r.hidden--
	case r.hidden > 0:
	case n.start != nil:
		return r.open(n)
	case n.end != "":
		return r.close(n.end)
	case r.depth > 0 && r.unseen > 0:
		r.hide(string(n.text))
	case r.depth > 0:
		r.line.WriteString(r.item)
		r.item = ""
		r.line.Write(collapse(n.text))
	}
	return nil
}

func (r *openReader) open(n node) error {
	name := n.start.Name.Local
	if !r.inBody {
		r.readStyle(n)
		isBody := !r.inStyles && name == r.body && strings.HasSuffix(n.start.Name.Space, ":office:1.0")
		if isBody {
			r.hasBody = true
		}
		r.inBody = isBody || r.inStyles && (name == "header" || name == "footer")
		return nil
	}
	if r.unseen > 0 {
		r.unseen++
	}
	switch name {
	case "h":
		r.depth++
		r.item += heading(n.attr("outline-level"))
	case "p":
		r.depth++
		r.isFlat = false
		r.hideBy(r.styles[n.attr("style-name")])
	case "span":
		r.hideBy(r.styles[n.attr("style-name")])
	case "hidden-text", "hidden-paragraph":
		r.hideIf(n.attr("is-hidden") != "false")
	case "tab":
		r.line.WriteByte('\t')
	case "line-break":
		r.line.WriteByte('\n')
	case "s":
		const most = 100 // spaces in a row
		r.line.WriteString(strings.Repeat(" ", max(1, min(atoi(n.attr("c")), most))))
	case "list":
		r.lists = append(r.lists, n.attr("style-name"))
		if len(r.lists) == 1 && n.attr("continue-numbering") != "true" && n.attr("continue-list") == "" {
			r.counters[r.lists[0]] = nil
		}
	case "list-item":
		r.item = r.numberOf()
	case "note-citation":
		r.line.WriteString("[^")
	case "ruby-text":
		r.line.WriteByte('(')
	case "section":
		r.hideIf(n.attr("display") == "none")
	case "text-box", "note-body", "annotation":
		inParagraph := r.depth > 0
		if !inParagraph && r.unseen == 0 && name == "annotation" && r.cells > 0 {
			r.line.WriteString("[Comment] ")
		}
		if r.interrupted = append(r.interrupted, inParagraph); inParagraph {
			r.box()
		}
	default:
		return r.openTable(n)
	}
	return nil
}

func (r *openReader) hideBy(style openStyle) { r.hideIf(style.hidden || style.white && r.cells == 0) }

// hideIf hides the text of an element, until it ends.
func (r *openReader) hideIf(isHidden bool) {
	if isHidden && r.unseen == 0 {
		r.unseen = 1
	}
}

// openTable opens a part of a table or a slide.
func (r *openReader) openTable(n node) error {
	switch n.start.Name.Local {
	case "page":
		return r.begin(protocol.BlockSlide, "")
	case "table":
		if r.body == "spreadsheet" && r.cells == 0 {
			r.pending = 0
			return r.begin(protocol.BlockSheet, n.attr("name"))
		}
	case "table-row":
		if r.cells == 0 {
			r.cell = openCell{rows: max(1, atoi(n.attr("number-rows-repeated")))}
		}
	case "table-cell", "covered-table-cell":
		if r.cells == 0 {
			r.cell.columns = max(1, atoi(n.attr("number-columns-repeated")))
		}
		r.prose.cell()
	}
	return nil
}

func (r *openReader) close(name string) error {
	if r.unseen > 0 {
		r.unseen--
	}
	switch name {
	case "p", "h":
		r.depth--
		if r.depth == 0 || len(r.around) > 0 {
			r.item = ""
			return r.paragraph()
		}
	case r.body:
		r.inBody = false
	case "header", "footer":
		r.inBody = r.inBody && !r.inStyles
	case "list":
		r.lists = r.lists[:max(0, len(r.lists)-1)]
	case "note-citation":
		r.line.WriteByte(']')
	case "ruby-text":
		r.line.WriteByte(')')
	case "text-box", "note-body", "annotation":
		last := len(r.interrupted) - 1
		if last >= 0 && r.interrupted[last] {
			r.closeBox(name)
		}
		r.interrupted = r.interrupted[:max(0, last)]
	case "table-cell", "covered-table-cell":
		r.closeCell()
	case "table-row":
		return r.closeRow()
	}
	return nil
}

// closeBox ends a text box, a note or a comment. A note gets the number before it: its citation is at the end of the paragraph.
func (r *openReader) closeBox(kind string) {
	before := len(r.around[len(r.around)-1].boxes)
	r.endBox()
	if before >= len(r.boxes) {
		return // it has no text
	}
	line := r.line.String()
	start := strings.LastIndex(line, "[^")
	switch {
	case kind == "annotation":
		r.boxes[before] = "[Comment] " + r.boxes[before]
	case kind == "note-body" && start >= 0 && strings.HasSuffix(line, "]"):
		r.boxes[before] = line[start:] + ": " + r.boxes[before]
	}
}

// closeCell ends a cell. In a spreadsheet, empty cells are written before the next one that is not empty, so that those at the end
// of a row are not written.
func (r *openReader) closeCell() {
	if r.body != "spreadsheet" || r.cells > 1 {
		r.endCell()
		return
	}
	r.cells--
	line := r.line.String()
	value := strings.TrimSpace(line[strings.LastIndexByte(line, '\t')+1:])
	if value == "" {
		r.cell.empty += r.cell.columns
		return
	}
	before := line[:strings.LastIndexByte(line, '\t')+1]
	r.line.Reset()
	r.line.WriteString(before)
	times := r.cell.columns
	if r.cell.empty+times > maxCells {
		r.truncated, times = true, 1
	}
	r.line.WriteString(strings.Repeat("\t", min(r.cell.empty, maxCells)))
	r.cell.empty = 0
	r.line.WriteString(strings.Repeat(value+"\t", times))
}

// closeRow ends a row of a table. In a spreadsheet it may be repeated, and empty rows at the end are not written.
func (r *openReader) closeRow() error {
	if r.body != "spreadsheet" || r.cells > 0 {
		return r.endRow()
	}
	line := strings.TrimRight(r.line.String(), "\t ")
	r.line.Reset()
	rows := min(r.cell.rows, maxCells)
	if line == "" {
		r.pending += rows
		return nil
	}
	blank := strings.Repeat("\n", min(r.pending, 1)) // a gap is shown, but not its size
	r.pending = 0
	return r.write(blank + strings.Repeat(line+"\n", rows))
}

// readStyle reads what styles say about hidden text and the numbers of lists.
func (r *openReader) readStyle(n node) {
	switch n.start.Name.Local {
	case "style", "list-style":
		r.style = n.attr("name")
	case "text-properties":
		color, background := strings.ToLower(n.attr("color")), strings.ToLower(n.attr("background-color"))
		isWhite := color == "#ffffff" && r.body == "text" && (background == "" || background == "transparent" || background == color)
		of := r.styles[r.style]
		of.hidden, of.white = n.attr("display") == "none", isWhite
		r.styles[r.style] = of
	case "list-level-style-number", "list-level-style-bullet":
		of := r.styles[r.style]
		if of.levels == nil {
			of.levels = map[int]openLevel{}
		}
		level := openLevel{n.attr("num-format"), n.attr("num-prefix"), n.attr("num-suffix"), max(1, atoi(n.attr("display-levels"))), 1}
		if start := atoi(n.attr("start-value")); start > 0 {
			level.start = start
		}
		if n.start.Name.Local == "list-level-style-bullet" {
			level.format = "bullet"
		}
		of.levels[atoi(n.attr("level"))] = level
		r.styles[r.style] = of
	}
}

// numberOf counts an item of a list, and returns its number.
func (r *openReader) numberOf() string {
	at := len(r.lists)
	if at == 0 || at > maxLevels {
		return ""
	}
	style := "" // of the list, or the one around it
	for i := at - 1; i >= 0 && style == ""; i-- {
		style = r.lists[i]
	}
	levels, counts := r.styles[style].levels, r.counters[style]
	for len(counts) < at {
		counts = append(counts, max(1, levels[len(counts)+1].start)-1)
	}
	counts[at-1]++
	r.counters[style] = counts[:at]
	of, known := levels[at]
	indent := strings.Repeat("  ", at-1)
	if !known || of.format == "bullet" {
		return indent + "- "
	}
	var numbers []string
	for i := max(0, at-of.shown); i < at; i++ {
		numbers = append(numbers, numeral(counts[i], levels[i+1].format))
	}
	return indent + of.before + strings.Join(numbers, ".") + of.after + " "
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
