package code

import (
	"context"
	"slices"
	"time"

	"turnstone/protocol"
)

// Task is code with what it may read.
type Task struct {
	Code  string
	Files []File
	// Load returns further files. It is called once there is a slot, so that no text is in memory while the task waits. nil:
	// there are none.
	Load func(ctx context.Context) ([]File, error) `json:"-"`
	Now  time.Time                                 // what the code takes for the current time, from its start to its end
	Seed uint64                                    // of Math.random
}

// loaded returns a task with all of its files.
func (t Task) loaded(ctx context.Context) (Task, error) {
	if t.Load == nil {
		return t, nil
	}
	files, err := t.Load(ctx)
	t.Files = slices.Concat(t.Files, files)
	return t, err
}

// File is a text that code reads as files[Name], or as files[ID].
type File struct{ ID, Name, Text string }

// Artifact is a table or a chart that code has made.
type Artifact struct {
	Kind           protocol.ArtifactKind
	Title, Content string
}

// Result is what code has printed and made.
type Result struct {
	Output    string // the printed text, and the value of the last expression
	Cut       int    // bytes that were left out of Output
	Artifacts []Artifact
}

// request is what a child gets.
type request struct {
	Task
	Budget Budget
}

// report is what a child prints.
type report struct {
	Result
	Failure *failure
}

// failure is why the code of a task has ended early.
type failure struct {
	Code   protocol.ToolErrorCode
	Detail string // a sentence, or the text of an exception
}
