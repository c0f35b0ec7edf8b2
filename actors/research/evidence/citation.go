package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// citation is a reference to sources in a report: [1], [1, 2], [1-3], [^1], 【1】, 【1†text】, ¹, <sup>1</sup>, the same with
// escaped or wide brackets, and [1](address).
type citation struct {
	Span
	numbers []int
	lead    int // where the text before the citations that precede it ends, if these are removed
	follow  int // where the text continues after the citations that follow it, if these are removed
}

const (
	// maxCitation is the longest citation, in bytes, without an address.
	maxCitation = 64
	// maxRange is the largest range of numbers in a citation.
	maxRange = 20
)

// citationAt returns the citation at a position of a text. Its end is that of the position if there is none.
func citationAt(text string, at int) citation {
	c, size := utf8.DecodeRuneInString(text[at:])
	n, numbers := 0, []int(nil)
	switch {
	case c == '[' && (at == 0 || text[at-1] != '!'), c == '［':
		n, numbers = bracketed(text[at:], size)
	case c == '\\' && strings.HasPrefix(text[at:], `\[`):
		n, numbers = bracketed(text[at:], 2)
	case c == '【':
		n, numbers = lenticular(text[at:])
	case c == '<':
		n, numbers = htmlSuperscript(text[at:])
	case superscript(c) >= 0:
		n, numbers = superscripts(text, at)
	}
	return citation{Span{at, at + n}, numbers, at, at + n}
}

// bracketed reads a citation in brackets, of which the first has a length.
func bracketed(text string, size int) (int, []int) {
	at := size
	if at < len(text) && text[at] == '^' {
		at++
	}
	n, numbers := numberList(text[at:min(len(text), at+maxCitation)])
	if at += n; n == 0 {
		return 0, nil
	}
	at += len(text[at:]) - len(strings.TrimPrefix(text[at:], "^"))
	for _, end := range []string{"]", `\]`, "］"} {
		if strings.HasPrefix(text[at:], end) {
			at += len(end)
			return at + linkTarget(text, at), numbers
		}
	}
	return 0, nil
}

// lenticular reads a citation in 【】, which may have a text after its number.
func lenticular(text string) (int, []int) {
	at := len("【")
	n, numbers := numberList(text[at:min(len(text), at+maxCitation)])
	if n == 0 {
		return 0, nil
	}
	at += n
	end := strings.Index(text[at:min(len(text), at+maxCitation)], "】")
	if end < 0 || end > 0 && !strings.HasPrefix(text[at:], "†") && text[at] != ':' {
		return 0, nil
	}
	return at + end + len("】"), numbers
}

func htmlSuperscript(text string) (int, []int) {
	rest, is := strings.CutPrefix(text, "<sup>")
	if !is {
		return 0, nil
	}
	n, numbers := numberList(rest[:min(len(rest), maxCitation)])
	if n == 0 || !strings.HasPrefix(rest[n:], "</sup>") {
		return 0, nil
	}
	return len("<sup>") + n + len("</sup>"), numbers
}

// numberList reads numbers with separators, and ranges of numbers. Numbers of more than four digits, and years, are none.
func numberList(text string) (end int, numbers []int) {
	last, pending := 0, false // pending: a range has begun
	for at := 0; at < len(text); {
		value, digits, n := number(text[at:])
		if digits == 0 || digits > 4 || 1000 <= value && value < 3000 {
			break
		}
		if pending && value > last && value-last <= maxRange {
			for between := last + 1; between < value; between++ {
				numbers = append(numbers, between)
			}
		}
		numbers, last = append(numbers, value), value
		at += n
		end = at
		n, pending = listSeparator(text[at:])
		if n == 0 {
			return end, numbers
		}
		at += n
	}
	if end == 0 || pending {
		return 0, nil
	}
	return 0, nil // it ends with a separator, or with something else than a number
}

// number reads decimal digits of any script.
func number(text string) (value, digits, end int) {
	for end < len(text) && digits < 6 {
		c, size := utf8.DecodeRuneInString(text[end:])
		d := digitValue(c)
		if d < 0 {
			break
		}
		value, digits, end = value*10+d, digits+1, end+size
	}
	return value, digits, end
}

// digitValue returns the value of a decimal digit of any script, or -1. The digits of a script are adjacent, from zero.
func digitValue(c rune) int {
	if c < utf8.RuneSelf {
		if '0' <= c && c <= '9' {
			return int(c - '0')
		}
		return -1
	}
	if !unicode.IsDigit(c) {
		return -1
	}
	value := 0
	for value < 9 && unicode.IsDigit(c-1) {
		c, value = c-1, value+1
	}
	return value
}

// listSeparator reads a separator of two numbers. is reports that it is one of a range.
func listSeparator(text string) (n int, is bool) {
	for n < len(text) {
		c, size := utf8.DecodeRuneInString(text[n:])
		switch c {
		case ' ', ',', ';', '，', '、', '；', '\u00a0', '،', '^':
		case '-', '–', '—':
			is = true
		default:
			return n, is
		}
		n += size
	}
	return n, is
}

// superscript returns the value of a superscript digit, or -1.
func superscript(c rune) int {
	switch {
	case c == '¹':
		return 1
	case c == '²' || c == '³':
		return int(c-'²') + 2
	case c == '⁰' || '⁴' <= c && c <= '⁹':
		return int(c - '⁰')
	}
	return -1
}

// superscripts reads superscript digits. After a unit, a letter or a digit they are a power.
func superscripts(text string, at int) (n int, numbers []int) {
	value, digits := 0, 0
	for at+n < len(text) && digits <= 3 {
		c, size := utf8.DecodeRuneInString(text[at+n:])
		d := superscript(c)
		if d < 0 {
			break
		}
		value, digits, n = value*10+d, digits+1, n+size
	}
	if before, _ := utf8.DecodeLastRuneInString(text[:at]); digits > 3 || superscript(before) >= 0 || !mayCite(text[:at]) {
		return 0, nil
	}
	return n, []int{value}
}

// minCitedWord is the length of a word after which superscript digits are a citation. Units and variables are shorter.
const minCitedWord = 5

var lengthUnits = setOf("meter|meters|metre|metres|metros|metro|metri|kilometer|kilometers|kilometre|kilometres|kilometros|inches|miles|yards|quadratmeter|centimeter|zentimeter")

// mayCite reports whether superscript digits after a text are a citation.
func mayCite(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	if strings.ContainsRune(".,;:!?)]】］>”’»\"'。、，！？」』।؟،", last) {
		return true
	}
	if !unicode.IsLetter(last) {
		return false
	}
	tail := before[max(0, len(before)-maxCitation):]
	word := tail[strings.LastIndexFunc(tail, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsMark(c) })+1:]
	return utf8.RuneCountInString(word) >= minCitedWord && !lengthUnits[strings.ToLower(word)]
}
