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
