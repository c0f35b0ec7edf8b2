package markdown

import (
	"strings"
	"unicode/utf8"
)

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

func (p *texParser) close(mark, content string) string {
	rest, found := strings.CutPrefix(p.rest, mark)
	if !found {
		return p.fail()
	}
	p.rest = rest
	return content
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
