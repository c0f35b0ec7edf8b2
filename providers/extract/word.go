package extract

import (
	"strconv"
	"strings"
)

// readWord reads a DOCX document: its paragraphs, tables and footnotes. Headings are marked as in Markdown.
func readWord(t *text, c content) error {
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	main, err := a.mainPart()
	if err != nil {
		return err
	}
	w := &wordReader{text: t}
	if err := a.walk(main, w.visit); err != nil {
		return err
	}
	if !w.hasBody {
		return errDamaged // another kind of Office document
	}
	notes, err := a.relations(main)
	if err != nil {
		return err
	}
	for _, one := range notes {
		if (one.kind == "footnotes" || one.kind == "endnotes") && a.has(one.target) {
			if err := a.walk(one.target, w.visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// wordReader writes the text of WordprocessingML.
type wordReader struct {
	*text
	hasBody bool
	inText  bool
	hidden  int // depth of elements whose text is not shown, or shown twice
	cells   int // depth of table cells
	line    strings.Builder
}

func (w *wordReader) visit(n node) error {
	switch {
	case n.start != nil && w.hidden > 0, n.opens("Fallback"):
		w.hidden++
	case n.end != "" && w.hidden > 0:
		w.hidden--
	case w.hidden > 0:
	case n.start != nil:
		w.open(n)
	case n.end != "":
		return w.close(n.end)
	case w.inText:
		w.line.Write(n.text)
	}
	return nil
}

func (w *wordReader) open(n node) {
	switch n.start.Name.Local {
	case "body":
		w.hasBody = true
	case "t":
		w.inText = true
	case "tab":
		w.line.WriteByte('\t')
	case "br", "cr":
		w.line.WriteByte('\n')
	case "noBreakHyphen":
		w.line.WriteByte('-')
	case "tc":
		w.cells++
	case "pStyle":
		w.line.WriteString(heading(strings.TrimPrefix(strings.ToLower(n.attr("val")), "heading")))
	}
}

// heading returns the mark of a heading of a level, which is a number; empty if it is none.
func heading(level string) string {
	n, err := strconv.Atoi(strings.TrimSpace(level))
	if err != nil || n < 1 || n > 9 {
		return ""
	}
	return strings.Repeat("#", min(n, 6)) + " "
}

func (w *wordReader) close(name string) error {
	switch name {
	case "t":
		w.inText = false
	case "p":
		if w.cells > 0 {
			w.line.WriteByte(' ')
			return nil
		}
		return w.flush()
	case "tc":
		w.cells--
		w.line.WriteByte('\t')
	case "tr":
		if w.cells == 0 {
			return w.flush()
		}
	}
	return nil
}

// flush writes a paragraph, or a row of a table.
func (w *wordReader) flush() error {
	line := strings.TrimRight(w.line.String(), " \t\n")
	w.line.Reset()
	return w.write(line + "\n")
}
