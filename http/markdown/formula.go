package markdown

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// A formula of a text, between $…$, $$…$$, \(…\) or \[…\]. The rules are those of the app (web/src/parts/math.ts): no formula in
// code, and none in prices such as $5.
type formula struct {
	tex     string
	raw     string // with its delimiters
	display bool
	shown   bool
}

// first reports whether a formula was not shown before. A text has one placeholder of each formula; its author may have written
// others as references to characters.
func (f *formula) first() bool {
	before := f.shown
	f.shown = true
	return !before
}

const (
	maxFormula  = 4_000 // bytes
	maxFormulas = 2_000 // of one text
)

var (
	fenceLine   = regexp.MustCompile("^[ \\t]*(?:>[ \\t]?)*(?:[-*+]|\\d+[.)])?[ \\t]*(`{3,}|~{3,})")
	emptyLine   = regexp.MustCompile(`\n[ \t]*\n`)
	placeholder = regexp.MustCompile("\uE000(\\d+)\uE001")
)

// A placeholder is the index of a formula between two characters of Unicode's private use area. It stands for the formula while
// Markdown is parsed, whose marks a formula may contain.
const (
	placeholderStart = "\uE000"
	placeholderEnd   = "\uE001"
)

// extractFormulas replaces the formulas of a text by placeholders. A text that has a placeholder character is unchanged.
func extractFormulas(source string) (string, []formula) {
	if !strings.Contains(source, "$") && !strings.Contains(source, `\(`) && !strings.Contains(source, `\[`) || strings.Contains(source, placeholderStart) {
		return source, nil
	}
	var (
		out      strings.Builder
		formulas []formula
		s        = scanner{source: source, unclosed: map[string]bool{}, next: map[string][2]int{}}
		from     int
	)
	for at := 0; at < len(source) && len(formulas) < maxFormulas; {
		if end := s.endOfCode(at); end > at {
			at = end
			continue
		}
		found := s.formulaAt(at)
		if found == nil {
			if source[at] == '\\' {
				at++
			}
			at++
			continue
		}
		out.WriteString(source[from:at] + placeholderStart + strconv.Itoa(len(formulas)) + placeholderEnd)
		formulas = append(formulas, *found)
		at += len(found.raw)
		from = at
	}
	out.WriteString(source[from:])
	return out.String(), formulas
}

// scanner finds code and formulas in a text, in time that is linear in its length: it remembers which runs of backticks have no
// other end, and where the next end of a formula is.
type scanner struct {
	source   string
	unclosed map[string]bool
	next     map[string][2]int // by closing delimiters, and "" for empty lines
}

// endOfCode returns the end of the code that starts at a position; the position itself if none starts there.
func (s *scanner) endOfCode(at int) int {
	source := s.source
	if at == 0 || source[at-1] == '\n' {
		line, _, _ := strings.Cut(source[at:], "\n")
		if found := fenceLine.FindStringSubmatch(line[:min(len(line), 200)]); found != nil {
			return s.endOfFence(at+len(line), found[1])
		}
	}
	if source[at] != '`' {
		return at
	}
	run := source[at : at+leading(source[at:], '`')]
	if s.unclosed[run] {
		return at + len(run)
	}
	for end := at + len(run); end < len(source); {
		next := strings.IndexByte(source[end:], '`')
		if next < 0 {
			break
		}
		length := leading(source[end+next:], '`')
		end += next + length
		if length == len(run) {
			return end
		}
	}
	s.unclosed[run] = true
	return at + len(run)
}

// endOfFence returns the end of the fenced code whose first line ends at a position.
func (s *scanner) endOfFence(at int, fence string) int {
	for at < len(s.source) {
		rest := s.source[at+1:]
		line, _, _ := strings.Cut(rest, "\n")
		at += 1 + len(line)
		line = strings.TrimRight(strings.TrimLeft(line, " \t>"), " \t")
		if len(line) >= len(fence) && leading(line, fence[0]) == len(line) {
			return min(at, len(s.source))
		}
	}
	return len(s.source)
}

// leading returns how many bytes at the start of a text are this one.
func leading(text string, mark byte) (count int) {
	for count < len(text) && text[count] == mark {
		count++
	}
	return count
}

func (s *scanner) formulaAt(at int) *formula {
	rest := s.source[at:]
	switch {
	case strings.HasPrefix(rest, "$$"):
		return s.delimited(at, "$$", "$$", true)
	case strings.HasPrefix(rest, `\[`):
		return s.delimited(at, `\[`, `\]`, true)
	case strings.HasPrefix(rest, `\(`):
		return s.delimited(at, `\(`, `\)`, false)
	case rest[0] == '$':
		return inDollars(rest)
	}
	return nil
}

func (s *scanner) delimited(at int, opening, closing string, display bool) *formula {
	start := at + len(opening)
	end := s.find(closing, start)
	if end[0] > start+maxFormula || s.find("", start)[1] <= end[0] {
		return nil
	}
	tex := s.source[start:end[0]]
	if strings.TrimSpace(tex) == "" {
		return nil
	}
	return &formula{tex: tex, raw: s.source[at:end[1]], display: display}
}

// find returns where the first closing delimiter, or empty line if it is "", at or after a position starts and ends; after the
// text: there is none.
func (s *scanner) find(closing string, from int) [2]int {
	known, searched := s.next[closing]
	if searched && known[0] >= from {
		return known
	}
	found := [2]int{math.MaxInt, math.MaxInt}
	if closing == "" {
		if line := emptyLine.FindStringIndex(s.source[from:]); line != nil {
			found = [2]int{from + line[0], from + line[1]}
		}
	} else if to := strings.Index(s.source[from:], closing); to >= 0 {
		found = [2]int{from + to, from + to + len(closing)}
	}
	s.next[closing] = found
	return found
}

// inDollars follows Pandoc's rule, which excludes prices: no space directly inside the dollars, no digit after the second one.
func inDollars(rest string) *formula {
	if len(rest) < 2 || strings.IndexByte(" \t\n\r$", rest[1]) >= 0 {
		return nil
	}
	for end := 1; end < len(rest) && end <= maxFormula; end++ {
		switch rest[end] {
		case '\\':
			end++
		case '`':
			return nil
		case '\n':
			if line, _, more := strings.Cut(rest[end+1:min(len(rest), end+81)], "\n"); more && strings.TrimSpace(line) == "" {
				return nil
			}
		case '$':
			if strings.IndexByte(" \t\n\r", rest[end-1]) >= 0 || end+1 < len(rest) && strings.IndexByte("0123456789$", rest[end+1]) >= 0 {
				return nil
			}
			return &formula{tex: rest[1:end], raw: rest[:end+1]}
		}
	}
	return nil
}

// replacePlaceholders replaces the placeholders of a text by what a function returns for their formulas.
func replacePlaceholders(text string, formulas []formula, by func(*formula) string) string {
	if len(formulas) == 0 || !strings.Contains(text, placeholderStart) {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		at, err := strconv.Atoi(found[utf8.RuneLen('\uE000') : len(found)-utf8.RuneLen('\uE001')])
		if err != nil || at >= len(formulas) {
			return ""
		}
		return by(&formulas[at])
	})
}

// restoreSource puts the sources of formulas back, for text without rendered formulas: code and addresses.
func restoreSource(text string, formulas []formula) string {
	return replacePlaceholders(text, formulas, func(f *formula) string { return f.raw })
}

// formulasOf returns the formulas of the document that a node belongs to.
func formulasOf(n ast.Node) []formula {
	formulas, _ := n.OwnerDocument().Meta()[metaFormulas].([]formula)
	return formulas
}
