package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"turnstone/cmd/turnstone/settings"
)

// TestTheCommandsOfTheOperationsPageExist parses the commands in the shell blocks of docs/operations.md without running
// them, and checks the names of its settings.
func TestTheCommandsOfTheOperationsPageExist(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, " #")
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "turnstone" {
				continue
			}
			commands++
			parser, err := kong.New(&cli{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(words[1:]); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
			}
		}
	}
	if commands < 20 {
		t.Errorf("only %d commands were found", commands)
	}
	var reference bytes.Buffer
	if err := settings.Document(&reference); err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`TURNSTONE_[A-Z0-9_]+`).FindAllString(string(text), -1) {
		// A secret can be read from a file, whose path is in the setting with the suffix _FILE.
		if !strings.Contains(reference.String(), "`"+name+"`") && !strings.Contains(reference.String(), "`"+strings.TrimSuffix(name, "_FILE")+"`") {
			t.Errorf("there is no setting %s", name)
		}
	}
}
