package markdown

import (
	"html/template"
	"strings"
)

func function(name string) string {
	return `<mi mathvariant="normal">` + template.HTMLEscapeString(name) + `</mi><mspace width="0.17em"></mspace>`
}

func stretchOf(mark string) string {
	if strings.Contains("⏞→←↔‾", mark) {
		return ""
	}
	return ` stretchy="false"`
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

func fence(mark, form string) string {
	if mark == "" {
		return ""
	}
	return `<mo fence="true" stretchy="true" form="` + form + `">` + mark + "</mo>"
}

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

func fraction(binomial bool, over, under string) string {
	parts := "<mrow>" + over + "</mrow><mrow>" + under + "</mrow></mfrac>"
	if binomial {
		return `<mrow><mo>(</mo><mfrac linethickness="0">` + parts + "<mo>)</mo></mrow>"
	}
	return "<mfrac>" + parts
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
