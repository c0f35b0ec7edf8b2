package source

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// lines is the state of a limiter for a file of JSON lines. The value of each line ends with the line, so that a damaged line
// is no part of the next one.
type lines struct {
	is     bool
	ended  bool   // the line that is read
	passed int    // ends of lines
	ahead  []byte // what was passed on before is was known
}

// findLines looks at the start of the text for a file of lines: its first line is a value, or it starts with the same name as the
// second one. In one value, a line that starts with an object follows a bracket or a comma.
func (l *limiter) findLines() {
	text, _ := l.from.Peek(peeked) // an error comes again when the text is read
	first, rest, more := bytes.Cut(bytes.TrimLeft(text, " \t\r\n"), []byte("\n"))
	if !more || !bytes.HasPrefix(first, []byte("{")) || opensLines(rest) {
		return
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	name := firstName(first)
	l.lines.is = jsontext.Value(first).IsValid(lenient) || bytes.HasSuffix(bytes.TrimSpace(first), []byte("}")) && bytes.HasPrefix(rest, []byte(`{"`)) ||
		name != "" && name == firstName(rest)
}

// opensLines reports whether a value continues after the line in which it starts, and nothing else is in that line.
func opensLines(text []byte) bool {
	line, _, more := bytes.Cut(bytes.TrimLeft(text, " \t\r\n"), []byte("\n"))
	line = bytes.TrimSpace(line)
	return more && len(line) == 1 && (line[0] == '{' || line[0] == '[')
}

// firstName returns the first name of an object.
func firstName(object []byte) string {
	const most = 100
	quoted, is := bytes.CutPrefix(object[:min(most, len(object))], []byte(`{"`))
	name, _, ends := bytes.Cut(quoted, []byte(`":`))
	if !is || !ends {
		return ""
	}
	return string(name)
}

// continueInLines makes the rest of the text lines, if a value that ended in its first line was too long to look at. unread was
// passed on.
func (l *limiter) continueInLines(unread []byte) {
	after := bytes.TrimLeft(unread, " \t\r")
	if l.lines.passed > bytes.Count(unread, []byte("\n")) || !bytes.HasPrefix(after, []byte("\n")) || opensLines(after) || len(bytes.TrimSpace(after)) < 2 {
		return
	}
	l.lines.is, l.lines.ahead = true, bytes.Clone(after)
}

// nextLine passes over the rest of a line, and reports whether the text has another one.
func (l *limiter) nextLine() (more bool, err error) {
	for !l.lines.ended && (l.err == nil || errors.Is(l.err, errLiteral)) {
		l.err = nil
		_, _ = l.next()
	}
	if l.lines.ended {
		l.lines.ended, l.err, l.position = false, nil, position{}
		return true, nil
	}
	if errors.Is(l.err, io.EOF) {
		return false, nil
	}
	return false, l.err
}
