package markdown

import (
	"html/template"
	"strings"
)

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

func function(name string) string {
	return `<mi mathvariant="normal">` + template.HTMLEscapeString(name) + `</mi><mspace width="0.17em"></mspace>`
}

func stretchOf(mark string) string {
	if strings.Contains("⏞→←↔‾", mark) {
		return ""
	}
	return ` stretchy="false"`
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

// plainTeX returns text mode as plain text.
func plainTeX(text string) string {
	text = strings.NewReplacer(`\ `, " ", `\%`, "%", `\$`, "$", `\&`, "&", `\_`, "_", `\#`, "#", `\{`, "{", `\}`, "}", "{", "", "}", "", "$", "", "~", " ").Replace(text)
	if strings.HasPrefix(text, " ") { // an element has no spaces at its ends
		text = "\u00a0" + text[1:]
	}
	if strings.HasSuffix(text, " ") {
		text = text[:len(text)-1] + "\u00a0"
	}
	return text
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

// delimiter reads a delimiter.
func (p *texParser) delimiter() string {
	if p.skipSpace(); p.rest == "" {
		return p.fail()
	}
	if p.rest[0] == '\\' {
		mark, found := delimiters[p.command()]
		if !found {
			return p.fail()
		}
		return mark
	}
	mark := p.rest[:1]
	p.rest = p.rest[1:]
	if mark == "." {
		return ""
	}
	if !strings.Contains("()[]|/<>", mark) {
		return p.fail()
	}
	return map[string]string{"<": "⟨", ">": "⟩"}[mark] + strings.Trim(mark, "<>")
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

func fence(mark, form string) string {
	if mark == "" {
		return ""
	}
	return `<mo fence="true" stretchy="true" form="` + form + `">` + mark + "</mo>"
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

// stylize returns letters and digits of a mathematical alphabet of Unicode.
func stylize(text, alphabet string) string {
	first, found := alphabetStarts[alphabet]
	if !found {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case exceptions[alphabet][r] != 0:
			return exceptions[alphabet][r]
		case r >= 'A' && r <= 'Z':
			return first[0] + r - 'A'
		case r >= 'a' && r <= 'z':
			return first[0] + 26 + r - 'a'
		case r >= '0' && r <= '9' && first[1] != 0:
			return first[1] + r - '0'
		case r >= 'α' && r <= 'ω' && first[2] != 0:
			return first[2] + r - 'α'
		}
		return r
	}, text)
}
