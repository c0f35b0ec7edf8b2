package markdown

import (
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxTeX        = 2_000 // bytes; a longer formula is shown as its source, as in the app
	maxTeXNesting = 40
)

// MathML returns a formula in TeX as MathML; false: it has a command that is not known, or is not closed.
func mathML(tex string, display bool) (string, bool) {
	if len(tex) > maxTeX {
		return "", false
	}
	p := &texParser{rest: tex, display: display}
	body := p.row(endOfText)
	if p.failed || p.rest != "" {
		return "", false
	}
	mode := ""
	if display {
		mode = ` display="block"`
	}
	return "<math" + mode + "><mrow>" + body + "</mrow></math>", true
}

// formulaHTML returns a formula as MathML, or as its source.
func formulaHTML(f *formula) string {
	if math, ok := mathML(strings.TrimSpace(f.tex), f.display); ok {
		return math
	}
	return formulaSource(f)
}

func formulaSource(f *formula) string { return `<code>` + template.HTMLEscapeString(f.tex) + `</code>` }

// texParser reads TeX from left to right, each byte once. The elements that it writes have escaped text, and no attributes that
// come from the formula.
type texParser struct {
	rest    string
	display bool
	style   string // of letters: a key of alphabets
	depth   int
	failed  bool
}

// ending is where a row ends. Its token stays unread.
type ending int

const (
	endOfText ending = iota
	endOfGroup
	endOfCell
	endOfFence
	endOfOption
)

func (p *texParser) fail() string {
	p.failed, p.rest = true, ""
	return ""
}

func (p *texParser) skipSpace() {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t\r\n")
		if !strings.HasPrefix(p.rest, "%") {
			return
		}
		_, p.rest, _ = strings.Cut(p.rest, "\n")
	}
}

// ends reports whether a row ends here.
func (p *texParser) ends(at ending) bool {
	switch at {
	case endOfGroup:
		return strings.HasPrefix(p.rest, "}")
	case endOfCell:
		return strings.HasPrefix(p.rest, "&") || strings.HasPrefix(p.rest, `\\`) || p.sees(`\end`) || p.sees(`\cr`)
	case endOfFence:
		return p.sees(`\right`) || p.sees(`\middle`)
	case endOfOption:
		return strings.HasPrefix(p.rest, "]")
	case endOfText:
	}
	return false
}

// sees reports whether a command is next.
func (p *texParser) sees(command string) bool {
	if !strings.HasPrefix(p.rest, command) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(p.rest[len(command):])
	return !isLetter(next)
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// row reads elements with their indices up to an ending.
func (p *texParser) row(until ending) string {
	if p.depth++; p.depth > maxTeXNesting {
		return p.fail()
	}
	defer func(style string) { p.style = style; p.depth-- }(p.style)
	var out strings.Builder
	for p.skipSpace(); p.rest != "" && !p.ends(until); p.skipSpace() {
		if p.sees(`\over`) || p.sees(`\choose`) {
			return p.infix(out.String(), until)
		}
		out.WriteString(p.scripted())
	}
	return out.String()
}

// infix reads the rest of a fraction whose numerator precedes its command.
func (p *texParser) infix(numerator string, until ending) string {
	command := p.command()
	return fraction(command == "choose", numerator, p.row(until))
}

func fraction(binomial bool, over, under string) string {
	parts := "<mrow>" + over + "</mrow><mrow>" + under + "</mrow></mfrac>"
	if binomial {
		return `<mrow><mo>(</mo><mfrac linethickness="0">` + parts + "<mo>)</mo></mrow>"
	}
	return "<mfrac>" + parts
}

// scripted reads an element with its indices.
func (p *texParser) scripted() string {
	base, above := "", false
	if p.rest[0] != '^' && p.rest[0] != '_' && p.rest[0] != '\'' {
		base, above = p.atom()
	}
	var under, over string
	marks := 0 // in over
	for p.skipSpace(); p.rest != "" && !p.failed; p.skipSpace() {
		switch {
		case p.sees(`\limits`):
			p.command()
			above = true
		case p.sees(`\nolimits`):
			p.command()
			above = false
		case p.rest[0] == '\'':
			primes := leading(p.rest, '\'')
			p.rest = p.rest[primes:]
			over += "<mo>" + strings.Repeat("′", primes) + "</mo>"
			marks++
		case p.rest[0] == '^':
			p.rest = p.rest[1:]
			over += p.argument()
			marks++
		case p.rest[0] == '_' && under == "":
			p.rest = p.rest[1:]
			under = p.argument()
		case p.rest[0] == '_':
			return p.fail()
		default:
			return withScripts(base, under, oneOf(marks, over), above)
		}
	}
	return withScripts(base, under, oneOf(marks, over), above)
}

// oneOf returns elements as one.
func oneOf(count int, elements string) string {
	if count > 1 {
		return "<mrow>" + elements + "</mrow>"
	}
	return elements
}

func withScripts(base, under, over string, above bool) string {
	names := [3]string{"msub", "msup", "msubsup"}
	if above {
		names = [3]string{"munder", "mover", "munderover"}
	}
	if under == "" && over == "" {
		return base
	}
	base = mrow(base)
	switch {
	case under != "" && over != "":
		return "<" + names[2] + ">" + base + under + over + "</" + names[2] + ">"
	case under != "":
		return "<" + names[0] + ">" + base + under + "</" + names[0] + ">"
	}
	return "<" + names[1] + ">" + base + over + "</" + names[1] + ">"
}

// mrow returns exactly one element.
func mrow(content string) string {
	if strings.Count(content, "<") == 2 { // one element without children
		return content
	}
	return "<mrow>" + content + "</mrow>"
}

// argument reads a group, or one element.
func (p *texParser) argument() string {
	if p.depth++; p.depth > maxTeXNesting {
		return p.fail()
	}
	defer func() { p.depth-- }()
	p.skipSpace()
	if p.rest == "" {
		return p.fail()
	}
	if p.rest[0] == '}' || p.rest[0] == '&' || p.rest[0] == '^' || p.rest[0] == '_' {
		return p.fail()
	}
	if p.rest[0] >= '0' && p.rest[0] <= '9' {
		digit := p.rest[:1]
		p.rest = p.rest[1:]
		return "<mn>" + p.letters(digit) + "</mn>"
	}
	group := p.rest[0] == '{'
	content, _ := p.atom()
	if group {
		return content // it is one element
	}
	return mrow(content)
}

// verbatim reads the source of a group.
func (p *texParser) verbatim() string {
	p.skipSpace()
	if !strings.HasPrefix(p.rest, "{") {
		if p.rest == "" {
			return p.fail()
		}
		_, size := utf8.DecodeRuneInString(p.rest)
		text := p.rest[:size]
		p.rest = p.rest[size:]
		return text
	}
	depth := 0
	for at := 0; at < len(p.rest); at++ {
		switch p.rest[at] {
		case '\\':
			at++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				text := p.rest[1:at]
				p.rest = p.rest[at+1:]
				return text
			}
		}
	}
	return p.fail()
}

// option reads what is in brackets; "": there are none.
func (p *texParser) option() string {
	p.skipSpace()
	if !strings.HasPrefix(p.rest, "[") {
		return ""
	}
	p.rest = p.rest[1:]
	content := p.row(endOfOption)
	return p.close("]", content)
}

func (p *texParser) close(mark, content string) string {
	rest, found := strings.CutPrefix(p.rest, mark)
	if !found {
		return p.fail()
	}
	p.rest = rest
	return content
}

// atom reads one element; above: its indices are above and below it.
func (p *texParser) atom() (content string, above bool) {
	switch first := p.rest[0]; {
	case first == '{':
		p.rest = p.rest[1:]
		return p.close("}", "<mrow>"+p.row(endOfGroup)+"</mrow>"), false
	case first == '\\':
		return p.commanded()
	case first == '}' || first == '&' || first == '#' || first == '$':
		return p.fail(), false
	case first >= '0' && first <= '9' || first == '.' && len(p.rest) > 1 && p.rest[1] >= '0' && p.rest[1] <= '9':
		length := 0
		for length < len(p.rest) && (p.rest[length] >= '0' && p.rest[length] <= '9' || p.rest[length] == '.') {
			length++
		}
		number := p.rest[:length]
		p.rest = p.rest[length:]
		return "<mn>" + p.letters(number) + "</mn>", false
	}
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	switch {
	case r == '~':
		return `<mspace width="0.33em"></mspace>`, false
	case unicode.IsLetter(r):
		return p.identifier(string(r)), false
	case r == '-':
		return "<mo>−</mo>", false
	case r == '*':
		return "<mo>∗</mo>", false
	case strings.ContainsRune("()[]|/", r):
		return `<mo stretchy="false">` + string(r) + "</mo>", false
	}
	return "<mo>" + template.HTMLEscapeString(string(r)) + "</mo>", false
}

// identifier returns a letter in the current style.
func (p *texParser) identifier(letter string) string {
	if p.style == "normal" {
		return `<mi mathvariant="normal">` + letter + "</mi>"
	}
	return "<mi>" + p.letters(letter) + "</mi>"
}

// command reads the name of a command.
func (p *texParser) command() string {
	p.rest = p.rest[1:]
	length := 0
	for length < len(p.rest) && isLetter(rune(p.rest[length])) {
		length++
	}
	if length == 0 {
		_, length = utf8.DecodeRuneInString(p.rest)
	}
	name := p.rest[:length]
	p.rest = p.rest[length:]
	return name
}
