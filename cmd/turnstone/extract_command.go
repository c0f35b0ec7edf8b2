package main

import (
	"os"

	"turnstone/providers/extract"
)

// extractCommand is the child process that reads a file; see package providers/extract. It has no environment, and uses
// neither the network nor the folders of the service.
type extractCommand struct {
	Task      extract.Task `arg:""`
	MediaType string       `arg:""`
	Reader    string       `arg:"" optional:""`
}

// Run reads the content on stdin, and prints its text.
func (c *extractCommand) Run(p *program) error {
	return extract.Child(os.Stdin, p.stdout, c.Task, c.MediaType, c.Reader)
}

// newExtractor returns an extractor whose children are processes of this program.
func newExtractor() (*extract.Extractor, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return extract.New(program, "extract", "--"), nil
}
