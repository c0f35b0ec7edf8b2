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

// commanded reads a command with its arguments.
func (p *texParser) commanded() (content string, above bool) {
	name := p.command()
	if symbol, found := bigOperators[name]; found {
		return "<mo>" + symbol + "</mo>", p.display && !strings.HasSuffix(name, "int")
	}
	if limit, found := functions[name]; found {
		shown := name
		if words := namedOperators[name]; words != "" {
			shown = words
		}
		return function(shown), limit && p.display
	}
	if letter, found := letters[name]; found {
		return p.identifier(letter), false
	}
	if symbol, found := symbols[name]; found {
		return "<mo>" + template.HTMLEscapeString(symbol) + "</mo>", false
	}
	if width, found := spaces[name]; found {
		return `<mspace width="` + width + `"></mspace>`, false
	}
	if alphabet, found := alphabets[name]; found {
		return p.styled(alphabet), false
	}
	if mark, found := accents[name]; found {
		return `<mover accent="true">` + p.argument() + "<mo" + stretchOf(mark) + ">" + mark + "</mo></mover>", name == "overbrace"
	}
	if mark, found := accentsBelow[name]; found {
		return "<munder>" + p.argument() + "<mo>" + mark + "</mo></munder>", name == "underbrace"
	}
	if size, found := delimiterSizes[name]; found {
		mark := p.delimiter()
		return `<mo stretchy="true" minsize="` + size + `" maxsize="` + size + `">` + mark + "</mo>", false
	}
	return p.structured(name)
}

// styled reads an argument whose letters are of an alphabet.
func (p *texParser) styled(alphabet string) string {
	before := p.style
	p.style = alphabet
	content := p.argument()
	p.style = before
	return content
}

// structured reads a command that composes elements.
func (p *texParser) structured(name string) (content string, above bool) {
	switch name {
	case "frac", "dfrac", "tfrac", "cfrac", "binom", "dbinom", "tbinom":
		over := p.argument()
		content = fraction(strings.HasSuffix(name, "binom"), over, p.argument())
		if name == "dfrac" || name == "cfrac" || name == "dbinom" {
			content = `<mstyle displaystyle="true">` + content + "</mstyle>"
		}
	case "sqrt":
		if root := p.option(); root != "" {
			content = "<mroot>" + p.argument() + mrow(root) + "</mroot>"
		} else {
			content = "<msqrt>" + p.argument() + "</msqrt>"
		}
	case "left":
		content = p.fenced()
	case "begin":
		content = p.environment(p.verbatim())
	case "text", "textrm", "textnormal", "mbox", "textsf", "hbox":
		content = "<mtext>" + template.HTMLEscapeString(plainTeX(p.verbatim())) + "</mtext>"
	case "textbf", "textit", "texttt":
		content = "<mtext>" + template.HTMLEscapeString(stylize(plainTeX(p.verbatim()), alphabets[strings.Replace(name, "text", "math", 1)])) + "</mtext>"
	case "operatorname":
		rest, limits := strings.CutPrefix(p.rest, "*")
		p.rest = rest
		content, above = function(plainTeX(p.verbatim())), limits && p.display
	case "overset", "stackrel", "underset":
		mark := p.argument()
		if name == "underset" {
			return "<munder>" + p.argument() + mark + "</munder>", false
		}
		content = "<mover>" + p.argument() + mark + "</mover>"
	case "xrightarrow", "xleftarrow":
		under := p.option()
		arrow := map[string]string{"xrightarrow": "<mo>→</mo>", "xleftarrow": "<mo>←</mo>"}[name]
		content = withScripts(arrow, under, p.argument(), true)
	case "substack":
		p.skipSpace()
		content = p.close("{", "") + p.table(endOfGroup, "")
		content = p.close("}", content)
	case "boxed":
		content = `<menclose notation="box">` + p.argument() + "</menclose>"
	case "phantom", "hphantom", "vphantom":
		content = "<mphantom>" + p.argument() + "</mphantom>"
	case "bmod":
		content = `<mspace width="0.22em"></mspace><mi mathvariant="normal">mod</mi><mspace width="0.22em"></mspace>`
	case "pmod":
		content = `<mspace width="0.44em"></mspace><mo>(</mo><mi mathvariant="normal">mod</mi><mspace width="0.33em"></mspace>` + p.argument() + "<mo>)</mo>"
	case "not":
		content = p.negated()
	case "tag":
		content = `<mspace width="2em"></mspace><mtext>(` + template.HTMLEscapeString(plainTeX(strings.TrimPrefix(p.verbatim(), "*"))) + ")</mtext>"
	case "label":
		p.verbatim()
	case "color", "textcolor":
		p.verbatim()
		if name == "textcolor" {
			content = p.argument()
		}
	case "displaystyle", "textstyle", "scriptstyle", "nonumber", "notag", "hline", "middle":
		if name == "middle" {
			content = `<mo stretchy="true" fence="true">` + p.delimiter() + "</mo>"
		}
	default:
		content = p.fail()
	}
	return content, above
}

func (p *texParser) negated() string {
	content, _ := p.atomAfterSpace()
	if before, found := strings.CutSuffix(content, "</mo>"); found {
		return before + "\u0338</mo>"
	}
	return p.fail()
}

func (p *texParser) atomAfterSpace() (content string, above bool) {
	if p.skipSpace(); p.rest == "" {
		return p.fail(), false
	}
	return p.atom()
}

// fenced reads what is between \left and \right.
func (p *texParser) fenced() string {
	var out strings.Builder
	out.WriteString("<mrow>" + fence(p.delimiter(), "prefix"))
	for {
		out.WriteString(p.row(endOfFence))
		if p.rest == "" {
			return p.fail()
		}
		if p.command() == "right" {
			out.WriteString(fence(p.delimiter(), "postfix") + "</mrow>")
			return out.String()
		}
		out.WriteString(fence(p.delimiter(), "infix"))
	}
}

// environment reads what is between \begin and \end.
func (p *texParser) environment(name string) string {
	plain := strings.TrimSuffix(name, "*")
	layout, found := environments[plain]
	if !found {
		return p.fail()
	}
	if plain == "array" || plain == "alignedat" || plain == "alignat" {
		columns := p.verbatim()
		if plain == "array" && strings.HasPrefix(strings.Trim(columns, "|"), "l") {
			layout.align = "left"
		}
	}
	content := p.table(endOfCell, layout.align)
	if p.rest == "" || !p.sees(`\end`) {
		return p.fail()
	}
	p.command()
	if p.verbatim() != name {
		return p.fail()
	}
	if layout.open == "" && layout.closing == "" {
		return content
	}
	return "<mrow>" + fence(layout.open, "prefix") + content + fence(layout.closing, "postfix") + "</mrow>"
}

// table reads rows of cells. The style of a page aligns the cells by the class of the table.
func (p *texParser) table(until ending, align string) string {
	var out strings.Builder
	out.WriteString("<mtable")
	if align != "" {
		out.WriteString(` class="` + align + `"`)
	}
	if align == "aligned" {
		out.WriteString(` displaystyle="true"`)
	}
	out.WriteString("><mtr><mtd>")
	for {
		out.WriteString(p.cell(until))
		switch {
		case strings.HasPrefix(p.rest, "&"):
			p.rest = p.rest[1:]
			out.WriteString("</mtd><mtd>")
		case strings.HasPrefix(p.rest, `\\`) || p.sees(`\cr`):
			p.command()
			if strings.HasPrefix(p.rest, "[") {
				_, p.rest, _ = strings.Cut(p.rest, "]")
			}
			if p.skipSpace(); p.sees(`\hline`) {
				p.command()
				p.skipSpace()
			}
			if !p.sees(`\end`) {
				out.WriteString("</mtd></mtr><mtr><mtd>")
			}
		default:
			out.WriteString("</mtd></mtr></mtable>")
			return out.String()
		}
	}
}

// cell reads a cell. In a group, cells end with the group too.
func (p *texParser) cell(until ending) string {
	if until != endOfGroup {
		return p.row(endOfCell)
	}
	var out strings.Builder
	for p.skipSpace(); p.rest != "" && !p.ends(endOfGroup) && !p.ends(endOfCell); p.skipSpace() {
		out.WriteString(p.scripted())
	}
	return out.String()
}

// letters returns letters and digits in the current style.
func (p *texParser) letters(text string) string { return stylize(text, p.style) }
