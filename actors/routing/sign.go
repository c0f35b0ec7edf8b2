package routing

import (
	"bytes"
	"regexp"
	"strings"
)

// This file finds signs of software work by scanning bytes. Regular expressions take a hundred times as long; a message
// may be long, and it is scanned within the transaction that starts its turn and others. Words consist of ASCII
// letters, digits and underscores; case is ignored.

// codeWords are single words, and pairs of words with one space between them.
var codeWords = setOf(`refactor debug compile compiler compiles compilation stacktrace regex segfault typescript javascript python
	golang rust kubernetes docker dockerfile algorithm function implement bug codebase repository lint linter`,
	"unit test", "unit tests", "stack trace", "null pointer", "api endpoint", "pull request", "git rebase", "git merge", "git commit",
	"sql query")

// pairFirstWords are the first words of the pairs.
var pairFirstWords = setOf("unit stack null api pull git sql")

var sourceEndings = setOf(`go py js jsx ts tsx rs java kt c h cc cpp hpp cs rb php swift sql sh yaml yml toml dockerfile tf css html vue`)

var codeLinePrefixes = []string{
	"func ", "def ", "class ", "import ", "#include", "package ", "public ", "private ", "const ", "let ", "var ", "return ", "if (", "for (",
}

const (
	maxCodeWord  = 12 // length of the longest of codeWords
	maxCodeWords = 20 // matches after which the search stops
	blanks       = " \t\n\f\r"
)

// traceLine matches a line of a stack trace. It is tried only on lines that start with one of traceLinePrefixes.
var (
	traceLine = regexp.MustCompile(
		`^(at [\w.$<>]+\(|File "[^"]+", line \d+|goroutine \d+ \[|panic: |Traceback \(most recent call last\)|error\[E\d+\])`)
	traceLinePrefixes = []string{"at ", `File "`, "goroutine ", "panic: ", "Traceback (", "error[E"}
)

func setOf(words string, more ...string) map[string]bool {
	set := map[string]bool{}
	for _, word := range append(strings.Fields(words), more...) {
		set[word] = true
	}
	return set
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

// wordAt returns the word that starts at i; "" when none does.
func wordAt(text string, i int) string {
	end := i
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	return text[i:end]
}

// containsFold reports whether the set contains the text, ignoring the case of ASCII letters.
func containsFold(set map[string]bool, text string) bool {
	var lower [maxCodeWord]byte
	if len(text) > len(lower) {
		return false
	}
	n := copy(lower[:], text)
	for i, b := range lower[:n] {
		if b >= 'A' && b <= 'Z' {
			lower[i] = b + ('a' - 'A')
		}
	}
	return set[string(lower[:n])]
}

// countCodeWords returns the number of distinct codeWords in the text.
func countCodeWords(text string) int {
	var found [][]byte
	matches := 0
	pair := -1 // index at which a pair may have started; -1: none
	for i := 0; i < len(text) && matches < maxCodeWords; {
		word := wordAt(text, i)
		if word == "" {
			if pair >= 0 && (text[i] != ' ' || text[i-1] == ' ') {
				pair = -1
			}
			i++
			continue
		}
		whole := word
		if pair >= 0 && containsFold(codeWords, text[pair:i+len(word)]) {
			whole = text[pair : i+len(word)]
		}
		if len(whole) > len(word) || containsFold(codeWords, word) {
			matches++
			found = addOnce(found, bytes.ToLower([]byte(whole)))
		}
		pair = -1
		if containsFold(pairFirstWords, word) {
			pair = i
		}
		i += len(word)
	}
	return len(found)
}

func addOnce(to [][]byte, text []byte) [][]byte {
	for _, one := range to {
		if bytes.Equal(one, text) {
			return to
		}
	}
	return append(to, text)
}

// namesSourceFile reports whether the text contains a file name like main.go.
func namesSourceFile(text string) bool {
	named := false // the characters directly before i may be a file name
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '.':
			if named && containsFold(sourceEndings, wordAt(text, i+1)) {
				return true
			}
		case isWordByte(b):
			named = true
		case b != '/' && b != '-':
			named = false
		}
	}
	return false
}

// scanLines reports whether the text contains a stack trace, and the number of lines of code before it.
func scanLines(text string) (trace bool, code int) {
	for rest := text; rest != ""; {
		rest = strings.TrimLeft(rest, blanks)
		if hasAnyPrefix(rest, traceLinePrefixes) && traceLine.MatchString(rest) {
			return true, code
		}
		line, after, _ := strings.Cut(rest, "\n")
		if hasAnyPrefix(line, codeLinePrefixes) || isQuery(line) {
			code++
		}
		rest = after
	}
	return false, code
}

func hasAnyPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func isQuery(line string) bool {
	columns, is := strings.CutPrefix(line, "SELECT ")
	return is && strings.LastIndex(columns, " FROM ") > 0
}
