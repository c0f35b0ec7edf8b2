package routing

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestSignsOfSoftwareWork(t *testing.T) {
	for input, want := range map[string]string{
		"What is the weather like in Lisbon?":                           "",
		"See:\n```\nx = 1\n```":                                         "The message contains a block of code.",
		"It says\n\n   panic: runtime error":                            "The message contains a stack trace.",
		"why\n  at java.lang.Thread.run(Thread.java:1)":                 "The message contains a stack trace.",
		"func a() {\n  return 1\n}\nvar b = 2":                          "The message contains lines of code.",
		"SELECT a FROM b\nSELECT c FROM d\nSELECT e FROM f":             "The message contains lines of code.",
		"There is a bug in cmd/main.go":                                 "The message is about source files.",
		"There is a bug in main.golf":                                   "",
		"Please REFACTOR the Python codebase":                           "The message is about software work.",
		"a pull request with a unit test and a git commit":              "The message is about software work.",
		"a pull  request with a unit\ttest and a git-commit":            "",
		"rust, rust, and more rust":                                     "",
		"The function of rustic debugging in my_bug's trusty pythonism": "",
	} {
		if got := codeSign(input); got != want {
			t.Errorf("%q: %q, want %q", input, got, want)
		}
	}
}

// The same signs as regular expressions, which take a hundred times as long.
var (
	sourceFileExpression = regexp.MustCompile(`(?i)\b[\w./-]+\.(go|py|js|jsx|ts|tsx|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|sql|sh|yaml|yml|toml|dockerfile|tf|css|html|vue)\b`)
	stackTraceExpression = regexp.MustCompile(`(?m)^\s*(at [\w.$<>]+\(|File "[^"]+", line \d+|goroutine \d+ \[|panic: |Traceback \(most recent call last\)|error\[E\d+\])`)
	codeLineExpression   = regexp.MustCompile(`(?m)^\s*(func |def |class |import |#include|package |public |private |const |let |var |SELECT .+ FROM |return |if \(|for \()`)
	codeWordsExpression  = regexp.MustCompile(`(?i)\b(refactor|debug|compil(e|er|es|ation)|unit tests?|stack ?trace|regex|segfault|null pointer|api endpoint|pull request|git (rebase|merge|commit)|sql query|typescript|javascript|python|golang|rust|kubernetes|docker(file)?|algorithm|function|implement|bug|codebase|repository|linter?)\b`)
)

func signsByExpressions(input string) (trace bool, code, words int, file bool) {
	distinct := map[string]bool{}
	for _, word := range codeWordsExpression.FindAllString(input, maxCodeWords) {
		distinct[strings.ToLower(word)] = true
	}
	return stackTraceExpression.MatchString(input), len(codeLineExpression.FindAllString(input, -1)), len(distinct), sourceFileExpression.MatchString(input)
}

func TestTheScannersMatchTheRegularExpressions(t *testing.T) {
	pieces := strings.Split(`refactor|debug|Compile|compiler|unit|test|tests|stack|trace|stacktrace|null|pointer|api|endpoint|pull|request|git|rebase|`+
		`sql|query|Docker|dockerfile|file|function|bug|_|rust|linter| | | |  |.|.|/|-|go|PY|main|x|é|func |def |SELECT |FROM | FROM |a|return |if (|for (|(|`+
		`#include|at |a.b<c>$|File "x", line 1|File "|", line |7|goroutine 12 [|goroutine |panic: |Traceback (most recent call last)|error[E1]|error[E|`+
		`tsx|c|html|vue`, "|")
	pieces = append(pieces, "\n", "\n", "\n", "\t", "\r", "\f", "\v", "\x00", "\xff")
	random := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		var text strings.Builder
		for range random.IntN(14) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		input := text.String()
		trace, code, words, file := signsByExpressions(input)
		gotTrace, gotCode := scanLines(input)
		if gotTrace != trace || !trace && gotCode != code {
			t.Fatalf("%q: stack trace %t, %d lines of code, want %t, %d", input, gotTrace, gotCode, trace, code)
		}
		if got := countCodeWords(input); got != words {
			t.Fatalf("%q: %d code words, want %d", input, got, words)
		}
		if got := namesSourceFile(input); got != file {
			t.Fatalf("%q: source file %t, want %t", input, got, file)
		}
	}
}

func BenchmarkSigns(b *testing.B) {
	const sentence = "Could you tell me what the weather is like in Lisbon in May? "
	for name, input := range map[string]string{"300 bytes": strings.Repeat(sentence, 5), "6 kB": strings.Repeat(sentence, 100)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				softwareSign(input, false)
			}
		})
	}
}
