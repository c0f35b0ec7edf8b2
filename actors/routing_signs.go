package actors

import (
	"bytes"
	"regexp"
	"strings"
)

// The signs of software work, looked for by walks over the bytes: a message may be long, and it is looked at within the
// transaction that begins its turn and others. Words are of letters, digits and underscores of ASCII, in any case.

// codeWords are words, and pairs of words with one space between them.
var codeWords = setOf(`refactor debug compile compiler compiles compilation stacktrace regex segfault typescript javascript python
	golang rust kubernetes docker dockerfile algorithm function implement bug codebase repository lint linter`,
	"unit test", "unit tests", "stack trace", "null pointer", "api endpoint", "pull request", "git rebase", "git merge", "git commit",
	"sql query")

// pairBegins are the first words of the pairs.
var pairBegins = setOf("unit stack null api pull git sql")

var sourceEndings = setOf(`go py js jsx ts tsx rs java kt c h cc cpp hpp cs rb php swift sql sh yaml yml toml dockerfile tf css html vue`)

var codeBegins = []string{
	"func ", "def ", "class ", "import ", "#include", "package ", "public ", "private ", "const ", "let ", "var ", "return ", "if (", "for (",
}

const (
	maxCodeWord  = 12 // the longest of codeWords
	maxCodeWords = 20 // looked at
	blanks       = " \t\n\f\r"
)

// traceLine is looked for where a line begins with one of traceBegins.
var (
	traceLine = regexp.MustCompile(
		`^(at [\w.$<>]+\(|File "[^"]+", line \d+|goroutine \d+ \[|panic: |Traceback \(most recent call last\)|error\[E\d+\])`)
	traceBegins = []string{"at ", `File "`, "goroutine ", "panic: ", "Traceback (", "error[E"}
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

// wordAt is the word that begins at i, empty where none does.
func wordAt(text string, i int) string {
	end := i
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	return text[i:end]
}

// holds looks a short text up in lower case.
func holds(set map[string]bool, text string) bool {
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

// countCodeWords is how many of codeWords there are, each counted once.
func countCodeWords(text string) int {
	var found [][]byte
	matches := 0
	pair := -1 // where a pair may have begun
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
		if pair >= 0 && holds(codeWords, text[pair:i+len(word)]) {
			whole = text[pair : i+len(word)]
		}
		if len(whole) > len(word) || holds(codeWords, word) {
			matches++
			found = addOnce(found, bytes.ToLower([]byte(whole)))
		}
		pair = -1
		if holds(pairBegins, word) {
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

// namesSourceFile says whether there is a name like main.go.
func namesSourceFile(text string) bool {
	named := false // what stands before i without a gap may be a name
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '.':
			if named && holds(sourceEndings, wordAt(text, i+1)) {
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

// lookAtLines says whether there is a stack trace, and how many lines of code there are.
func lookAtLines(text string) (trace bool, code int) {
	for rest := text; rest != ""; {
		rest = strings.TrimLeft(rest, blanks)
		if beginsWithAny(rest, traceBegins) && traceLine.MatchString(rest) {
			return true, code
		}
		line, after, _ := strings.Cut(rest, "\n")
		if beginsWithAny(line, codeBegins) || isQuery(line) {
			code++
		}
		rest = after
	}
	return false, code
}

func beginsWithAny(text string, prefixes []string) bool {
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
