package scripted

import (
	"regexp"
	"strings"
)

// defaultLanguage is the language of an example if the request names none.
const defaultLanguage = "go"

var languageNamed = regexp.MustCompile(`(?i)\b(go|golang|python|javascript|typescript|rust|sql|bash|shell|html)\b`)

var languageNames = map[string]string{"golang": "go", "shell": "bash"}

// snippets are complete examples by language.
var snippets = map[string]string{
	"go": `package main

import "fmt"

// Greet returns a greeting for name.
func Greet(name string) string {
	return fmt.Sprintf("Hello, %s!", name)
}

func main() {
	fmt.Println(Greet("turnstone"))
}`,
	"python": `def greet(name: str) -> str:
    """Return a greeting for name."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    print(greet("turnstone"))`,
	"javascript": `/** Returns a greeting for name. */
function greet(name) {
  return "Hello, " + name + "!";
}

console.log(greet("turnstone"));`,
	"typescript": `/** Returns a greeting for name. */
function greet(name: string): string {
  return "Hello, " + name + "!";
}

console.log(greet("turnstone"));`,
	"rust": `/// Returns a greeting for name.
fn greet(name: &str) -> String {
    format!("Hello, {name}!")
}

fn main() {
    println!("{}", greet("turnstone"));
}`,
	"sql": `-- The ten conversations that moved last.
SELECT id, title, last_activity_at
FROM conversations
ORDER BY last_activity_at DESC
LIMIT 10;`,
	"bash": `#!/usr/bin/env bash
set -euo pipefail

greet() {
  printf 'Hello, %s!\n' "$1"
}

greet "turnstone"`,
	"html": `<!doctype html>
<html lang="en">
  <head><title>Turnstone</title></head>
  <body><h1>Hello, turnstone!</h1></body>
</html>`,
}

// languageOf returns the language that a request names, or defaultLanguage.
func languageOf(about string) string {
	named := strings.ToLower(languageNamed.FindString(about))
	if known, found := languageNames[named]; found {
		return known
	}
	if named == "" {
		return defaultLanguage
	}
	return named
}

// fence returns a fenced code block in language. A language without an example gets three simple lines.
func fence(language string) string {
	code, known := snippets[language]
	if !known {
		code = "first = 1\nsecond = 2\nsum = first + second"
	}
	return "```" + language + "\n" + code + "\n```"
}

// block matches a fenced block of JavaScript, or of a language that is not named.
var block = regexp.MustCompile("(?s)```(?:js|javascript)?[ \\t]*\\n(.*?)\\n?```")

// The examples of code that the model runs: about numbers, and about the files of the message.
const (
	runExample = `const squares = Array.from({ length: 10 }, (_, i) => ({ n: i + 1, square: (i + 1) ** 2 }));
print("The sum of the squares is", squares.reduce((sum, row) => sum + row.square, 0));
table(squares, "Squares");
plot({ type: "bar", title: "Squares", xLabel: "n", yLabel: "n²", x: squares.map((row) => row.n), y: squares.map((row) => row.square) });`
	runFilesExample = `const rows = Object.entries(files).map(([name, text]) => ({ name, lines: text.trim().split("\\n").length, characters: text.length }));
for (const row of rows) print(row.name + ":", row.lines, "lines,", row.characters, "characters");
table(rows, "Files");`
)

// runInput returns the input of a call that runs the code in a message, or else an example.
func runInput(about string, files []file) map[string]any {
	input := map[string]any{"code": runExample}
	var ids []string
	for _, one := range files {
		if one.id != "" {
			ids = append(ids, one.id)
		}
	}
	if len(ids) > 0 {
		input = map[string]any{"code": runFilesExample, "file_ids": ids}
	}
	if found := block.FindStringSubmatch(about); found != nil {
		input["code"] = found[1]
	}
	return input
}
