package extract

import (
	"fmt"
	"strconv"
	"strings"

	"turnstone/protocol"
)

// prose writes the paragraphs of a document. A text box, a frame or a note interrupts the paragraph that it is in; its own
// paragraphs are written after that.
type prose struct {
	*text
	line   strings.Builder
	cells  int // depth of table cells
	around []around
	boxes  []string // what is written after the paragraph
	isFlat bool     // the text of a hidden run was counted already
}

// around is what a box has interrupted.
type around struct {
	line  string
	cells int
	boxes []string
}

// box begins a text box.
func (p *prose) box() {
	p.around = append(p.around, around{p.line.String(), p.cells, p.boxes})
	p.line.Reset()
	p.cells, p.boxes = 0, nil
}

// endBox ends a text box.
func (p *prose) endBox() {
	if len(p.around) == 0 {
		return
	}
	p.closeLine()
	last := p.around[len(p.around)-1]
	p.around = p.around[:len(p.around)-1]
	inner := p.boxes
	p.line.WriteString(last.line)
	p.cells, p.boxes = last.cells, append(last.boxes, inner...)
}

// paragraph ends a paragraph: in a cell it ends with a space.
func (p *prose) paragraph() error {
	if p.cells > 0 {
		p.line.WriteByte(' ')
		return nil
	}
	return p.flush()
}

func (p *prose) cell() { p.cells++ }

func (p *prose) endCell() {
	p.cells--
	p.line.WriteByte('\t')
}

// endRow ends a row of a table, unless the table is in a cell.
func (p *prose) endRow() error {
	if p.cells > 0 {
		return nil
	}
	return p.flush()
}

// closeLine moves the line to the boxes.
func (p *prose) closeLine() {
	if line := strings.TrimRight(p.line.String(), " \t\n"); line != "" {
		p.boxes = append(p.boxes, line)
	}
	p.line.Reset()
}

// flush writes a paragraph, or a row of a table, and the boxes in it. Within a box, it only keeps it.
func (p *prose) flush() error {
	if len(p.around) > 0 {
		p.closeLine()
		return nil
	}
	line := strings.TrimRight(p.line.String(), " \t\n")
	p.line.Reset()
	boxes := p.boxes
	p.boxes = nil
	if line != "" || len(boxes) == 0 {
		if err := p.write(line + "\n"); err != nil {
			return err
		}
	}
	for _, one := range boxes {
		if err := p.write(one + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// hide counts a passage that is left out because it is not shown.
func (p *prose) hide(of string) {
	if strings.TrimSpace(of) != "" && !p.isFlat {
		p.isFlat = true
		p.note(protocol.NoteHidden, 1)
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

// numeral returns a number of a list in a format, of those of Word and OpenDocument; others are written in digits.
func numeral(n int, format string) string {
	switch format {
	case "lowerLetter", "a":
		return strings.ToLower(letters(n))
	case "upperLetter", "A":
		return letters(n)
	case "lowerRoman", "i":
		return strings.ToLower(roman(n))
	case "upperRoman", "I":
		return roman(n)
	case "decimalZero":
		return fmt.Sprintf("%02d", n)
	case "none", "":
		return ""
	}
	return strconv.Itoa(n)
}

// letters returns A to Z, then AA, BB and so on.
func letters(n int) string {
	const alphabet, most = 26, 20
	if n < 1 || n > alphabet*most {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(rune('A'+(n-1)%alphabet)), (n-1)/alphabet+1)
}

func roman(n int) string {
	const most = 4000
	if n < 1 || n >= most {
		return strconv.Itoa(n)
	}
	var b strings.Builder
	for _, one := range []struct {
		value int
		sign  string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for ; n >= one.value; n -= one.value {
			b.WriteString(one.sign)
		}
	}
	return b.String()
}

// atoi returns a number; 0 if it is none.
func atoi(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return 0
	}
	return n
}
