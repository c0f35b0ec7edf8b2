package extract

import (
	"errors"
	"maps"
	"strings"

	"turnstone/protocol"
)

// readWord reads a DOCX document: the headers of its pages, its paragraphs, tables and text boxes, the footers, the notes and the
// comments. Headings are marked as in Markdown, and lists have their numbers.
func readWord(t *text, c content) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	main, err := a.mainPart()
	if err != nil {
		return err
	}
	parts, err := a.relations(main)
	if err != nil {
		return err
	}
	w := &wordReader{prose: prose{text: t}, counters: map[string][]int{}}
	if err := w.readStyles(a, parts); err != nil {
		return err
	}
	if err := w.optional(a, partsOf(parts, "header")); err != nil {
		return err
	}
	if err := a.walk(main, w.visit); err != nil {
		return err
	}
	if !w.hasBody {
		return errDamaged // another kind of Office document
	}
	for _, kind := range []string{"diagramData", "chart"} {
		for _, name := range partsOf(parts, kind) {
			if err := readAside(t, a, name); err != nil {
				return err
			}
		}
	}
	for _, kind := range []string{"footer", "footnotes", "endnotes", "comments"} {
		if err := w.optional(a, partsOf(parts, kind)); err != nil {
			return err
		}
	}
	if others := len(partsOf(parts, "aFChunk")); others > 0 {
		t.note(protocol.NoteUnreadMembers, others)
	}
	return nil
}

// optional reads parts without which the document can be read, too. Several with the same text, such as the headers of the first
// and the other pages, are written once.
func (w *wordReader) optional(a *archive, parts []string) error {
	written := map[string]bool{}
	for _, name := range parts {
		start := w.b.Len()
		err := a.walk(name, w.visit)
		switch {
		case errors.Is(err, errFull), errors.Is(err, errComplex), errors.Is(err, errEncrypted):
			return err
		case err != nil:
			w.note(protocol.NoteMissingParts, 1)
		}
		w.line.Reset()
		w.prose = prose{text: w.text}
		w.hidden, w.tables, w.inText, w.inProperties, w.outer = 0, 0, false, false, nil
		if added := strings.TrimSpace(w.b.String()[start:]); added == "" || written[added] {
			before := w.b.String()[:start]
			w.b.Reset()
			w.b.WriteString(before)
		} else {
			written[added] = true
		}
	}
	return nil
}

// wordStyle is what a style of paragraphs or characters says about its text.
type wordStyle struct {
	level   string // of a heading
	number  wordNumber
	hidden  bool
	basedOn string
}

// wordNumber is the list and the level of a paragraph.
type wordNumber struct{ list, level string }

// wordLevel is a level of a list.
type wordLevel struct {
	format, pattern string
	start           int
}

// wordReader writes the text of WordprocessingML.
type wordReader struct {
	prose
	styles   map[string]wordStyle
	lists    map[string]map[string]wordLevel // by list and level
	abstract map[string]string               // the kind of list that a list is of, with which it shares its counters
	counters map[string][]int

	hasBody bool
	inText  bool
	hidden  int // depth of elements whose text is not shown, or shown twice
	tables  int // depth of tables and text boxes, which may have a background

	inProperties bool // of a paragraph
	wordParagraph
	outer []wordParagraph // those that text boxes have interrupted
	run   wordRun

	formula formula
	ruby    int    // where the reading of characters begins in the line
	reading string // of the characters that follow
}

// wordParagraph is the state of a paragraph.
type wordParagraph struct {
	level  string // of a heading
	number wordNumber
	begun  bool // the mark and the number were written
}

// wordRun is what the properties of a run say.
type wordRun struct{ hidden, white, shaded bool }

func (w *wordReader) visit(n node) error {
	switch {
	case n.start != nil && w.hidden > 0, n.opens("Fallback"), n.opens("moveFrom"), n.opens("del"), n.opens("footnote") && n.attr("type") != "", n.opens("endnote") && n.attr("type") != "":
		w.hidden++
	case n.end != "" && w.hidden > 0:
		w.hidden--
	case w.hidden > 0:
	case n.start != nil:
		return w.open(n)
	case n.end != "":
		return w.close(n.end)
	case w.inText:
		w.character(string(n.text))
	}
	return nil
}

// character writes a piece of text, after the number of its paragraph.
func (w *wordReader) character(piece string) {
	if w.run.hidden || w.run.white && !w.run.shaded && w.tables == 0 {
		w.hide(piece)
		return
	}
	w.begin()
	w.line.WriteString(piece)
}

// begin writes the mark of a heading and the number of a list before the first text of a paragraph.
func (w *wordReader) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.line.WriteString(heading(w.level))
	w.line.WriteString(w.numberOf(w.number))
}

func (w *wordReader) open(n node) error {
	if mark := w.formula.open(n); mark != "" {
		w.character(mark)
	}
	switch n.start.Name.Local {
	case "body":
		w.hasBody = true
	case "p":
		w.wordParagraph, w.run = wordParagraph{}, wordRun{}
	case "r":
		w.run, w.isFlat = wordRun{}, false
	case "pPr":
		w.inProperties = true
	case "t":
		w.inText = true
	case "tab", "ptab":
		if !w.inProperties { // there it is the position of one
			w.character("\t")
		}
	case "br", "cr":
		w.character("\n")
	case "noBreakHyphen":
		w.character("-")
	case "tbl":
		w.tables++
	case "tc":
		w.cell()
	case "txbxContent":
		w.box()
		w.tables++
		w.outer = append(w.outer, w.wordParagraph)
	case "sym":
		w.character(string(symbol(n.attr("font"), n.attr("char"))))
	case "ruby":
		w.begin()
	case "rt":
		w.ruby = w.line.Len()
	case "footnoteReference":
		w.character("[^" + n.attr("id") + "]")
	case "endnoteReference":
		w.character("[^" + endnote + n.attr("id") + "]")
	case "footnote":
		w.line.WriteString("[^" + n.attr("id") + "]: ")
	case "endnote":
		w.line.WriteString("[^" + endnote + n.attr("id") + "]: ")
	case "comment":
		w.line.WriteString("[Comment")
		if author := n.attr("author"); author != "" {
			w.line.WriteString(" by " + author)
		}
		w.line.WriteString("] ")
	default:
		w.property(n)
	}
	return nil
}

// endnote distinguishes the number of an endnote from that of a footnote.
const endnote = "e"

// property reads a property of a paragraph or a run.
func (w *wordReader) property(n node) {
	value := n.attr("val")
	isOn := value != "0" && value != "false" && value != "none"
	switch name := n.start.Name.Local; {
	case name == "pStyle":
		w.level, w.number = w.styles[value].level, w.styles[value].number
		if heading(w.level) == "" {
			w.level = strings.TrimPrefix(strings.ToLower(value), "heading")
		}
	case name == "ilvl" && w.inProperties:
		w.number.level = value
	case name == "numId" && w.inProperties:
		w.number.list = value
	case w.inProperties:
	case name == "rStyle":
		w.run.hidden = w.run.hidden || w.styles[value].hidden
	case name == "vanish", name == "webHidden":
		w.run.hidden = isOn
	case name == "sz" && (value == "1" || value == "2"): // half points
		w.run.hidden = true
	case name == "color":
		w.run.white = strings.EqualFold(value, "FFFFFF")
	case name == "shd":
		fill := n.attr("fill")
		w.run.shaded = fill != "" && fill != "auto" && !strings.EqualFold(fill, "FFFFFF")
	case name == "highlight":
		w.run.shaded = isOn && value != "white"
	}
}

func (w *wordReader) close(name string) error {
	if mark := w.formula.close(name); mark != "" {
		w.character(mark)
	}
	switch name {
	case "rt": // it precedes the characters that it is the reading of
		line := w.line.String()
		w.reading = line[min(w.ruby, len(line)):]
		w.line.Reset()
		w.line.WriteString(strings.TrimSuffix(line, w.reading))
	case "ruby":
		if w.reading != "" {
			w.line.WriteString("(" + w.reading + ")")
			w.reading = ""
		}
	case "t":
		w.inText = false
	case "pPr":
		w.inProperties = false
	case "p":
		return w.paragraph()
	case "tc":
		w.endCell()
	case "tbl":
		w.tables--
	case "tr":
		return w.endRow()
	case "txbxContent":
		w.endBox()
		w.tables--
		if last := len(w.outer) - 1; last >= 0 {
			w.wordParagraph, w.outer = w.outer[last], w.outer[:last]
		}
	}
	return nil
}

// readStyles reads the styles and the lists of a document.
func (w *wordReader) readStyles(a *archive, parts map[string]relation) error {
	w.styles, w.lists, w.abstract = map[string]wordStyle{}, map[string]map[string]wordLevel{}, map[string]string{}
	for kind, read := range map[string]func(node) error{"styles": styleVisitor(w.styles), "numbering": w.listVisitor()} {
		for _, name := range partsOf(parts, kind) {
			if err := a.walk(name, read); errors.Is(err, errComplex) {
				return err
			}
		}
	}
	for id := range w.styles {
		w.styles[id] = resolved(w.styles, id)
	}
	return nil
}

// styleVisitor collects styles. The names of the built-in ones are English in documents of all languages, unlike their identifiers.
func styleVisitor(styles map[string]wordStyle) func(node) error {
	var id string
	var of wordStyle
	return func(n node) error {
		if n.end == "style" {
			styles[id] = of
		}
		if n.start == nil {
			return nil
		}
		value := n.attr("val")
		switch n.start.Name.Local {
		case "style":
			id, of = n.attr("styleId"), wordStyle{}
		case "name":
			if name := strings.ToLower(value); name == "title" {
				of.level = "1"
			} else if level, is := strings.CutPrefix(name, "heading "); is {
				of.level = level
			}
		case "basedOn":
			of.basedOn = value
		case "outlineLvl":
			if of.level == "" && len(value) == 1 && value >= "0" && value < "9" {
				of.level = string(value[0] + 1)
			}
		case "numId":
			of.number.list = value
		case "ilvl":
			of.number.level = value
		case "vanish":
			of.hidden = value != "0" && value != "false"
		}
		return nil
	}
}

// resolved returns a style with what it has from those that it is based on.
func resolved(styles map[string]wordStyle, id string) wordStyle {
	of := styles[id]
	for base, steps := of.basedOn, 0; base != "" && steps < maxStyles; base, steps = styles[base].basedOn, steps+1 {
		from := styles[base]
		if of.level == "" {
			of.level = from.level
		}
		if of.number.list == "" {
			of.number.list = from.number.list
		}
		of.hidden = of.hidden || from.hidden
	}
	return of
}

// maxStyles limits how many styles a style is based on.
const maxStyles = 20

// listVisitor collects the lists: each has the levels of the kind of list that it is of.
func (w *wordReader) listVisitor() func(node) error {
	kinds := map[string]map[string]wordLevel{}
	var kind, list, level string
	return func(n node) error {
		if n.start == nil {
			return nil
		}
		value := n.attr("val")
		levels := kinds[kind]
		if list != "" {
			levels = w.lists[list]
		}
		set := func(change func(*wordLevel)) {
			if of := levels[level]; levels != nil {
				change(&of)
				levels[level] = of
			}
		}
		switch n.start.Name.Local {
		case "abstractNum":
			kind, list = n.attr("abstractNumId"), ""
			kinds[kind] = map[string]wordLevel{}
		case "num":
			list = n.attr("numId")
		case "abstractNumId":
			w.lists[list], w.abstract[list] = maps.Clone(kinds[value]), value
		case "lvl", "lvlOverride":
			level = n.attr("ilvl")
		case "startOverride":
			w.abstract[list] = "list " + list // it counts for itself
			set(func(of *wordLevel) { of.start = atoi(value) })
		case "start":
			set(func(of *wordLevel) { of.start = atoi(value) })
		case "numFmt":
			set(func(of *wordLevel) { of.format = value })
		case "lvlText":
			set(func(of *wordLevel) { of.pattern = value })
		}
		return nil
	}
}

// maxLevels is the number of levels that lists have in Word.
const maxLevels = 9

// numberOf counts a paragraph of a list, and returns its number.
func (w *wordReader) numberOf(n wordNumber) string {
	levels := w.lists[n.list]
	at := atoi(n.level)
	if levels == nil || at < 0 || at >= maxLevels {
		return ""
	}
	indent := strings.Repeat("  ", at)
	counts := w.counters[w.abstract[n.list]]
	for len(counts) <= at {
		counts = append(counts, levels[string(rune('0'+len(counts)))].start-1)
	}
	counts[at]++
	w.counters[w.abstract[n.list]] = counts[:at+1] // the deeper ones begin again
	of := levels[string(rune('0'+at))]
	if of.format == "bullet" {
		return indent + "- "
	}
	number := of.pattern
	for i := range at + 1 {
		number = strings.ReplaceAll(number, "%"+string(rune('1'+i)), numeral(counts[i], levels[string(rune('0'+i))].format))
	}
	if number == "" {
		return ""
	}
	return indent + number + " "
}
