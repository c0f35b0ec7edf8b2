package code

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/providers/child"
)

// Engine executes code in child processes. Its methods may be called from any goroutine.
type Engine struct {
	program *child.Program
	queue   *queue
	budget  Budget
	time    time.Duration // of a child, on the clock
	wait    time.Duration // for a slot

	// CheckSpace returns an error while the disk of the tasks is nearly full; nil: never. It is set before the first call.
	CheckSpace func() error
}

// New returns an engine whose children are processes of a command that calls Child.
func New(command ...string) *Engine {
	return &Engine{program: child.New(command...), queue: newQueue(), budget: budget, time: maxTime, wait: maxWait}
}

// Run executes the code of a task for an account. progress reports each step, and the seconds of the run. used is the
// processor time of the child. An error that users may see is a *toolbox.Failure. The child has ended when Run returns.
func (e *Engine) Run(ctx context.Context, account protocol.AccountID, task *Task, progress func(label string)) (result *Result, used time.Duration, err error) {
	progress("Starting")
	waiting, cancel := context.WithTimeout(ctx, e.wait)
	defer cancel()
	leave, own, err := e.queue.enter(waiting, account)
	if err != nil {
		return nil, 0, busy(ctx, own)
	}
	defer leave()
	if e.CheckSpace != nil {
		if err := e.CheckSpace(); err != nil {
			return nil, 0, &toolbox.Failure{Code: "unavailable", Detail: "Code cannot be run at the moment, because a disk of the server is nearly full. Try again later."}
		}
	}
	loaded, err := task.loaded(ctx)
	if err != nil {
		return nil, 0, err
	}
	encoded, err := json.Marshal(request{loaded, e.budget})
	if err != nil {
		return nil, 0, fmt.Errorf("storing code for its child: %w", err)
	}
	spool, err := child.Spool(bytes.NewReader(encoded))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = spool.Close() }() // it has no name any more
	c, err := e.program.Start(spool)
	if err != nil {
		return nil, 0, err
	}
	c.Watch(ctx, child.Limits{Time: e.time, Memory: e.budget.Memory + spareMemory})
	stop := count(progress)
	var made report
	read := json.NewDecoder(io.LimitReader(c.Output, maxReport)).Decode(&made)
	c.End()
	stop()
	used = c.CPU()
	switch {
	case ctx.Err() != nil:
		return nil, used, ctx.Err()
	case read != nil:
		return nil, used, e.lost(c, read)
	case made.Failure != nil:
		return nil, used, made.Failure.after(made.Output)
	case !valid(&made.Result):
		return nil, used, errors.New("the result of a child is not valid")
	}
	return &made.Result, used, nil
}

// busy returns why a task got no slot.
func busy(ctx context.Context, own bool) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case own:
		return &toolbox.Failure{Code: "busy", Detail: fmt.Sprintf("The account runs %d programs already, and they did not end in time. Try again later.", perAccount)}
	}
	return &toolbox.Failure{Code: "busy", Detail: "Other accounts run code at the moment, and no slot became free in time. Try again later."}
}

// count reports the seconds of a run until stop is called.
func count(progress func(string)) (stop func()) {
	progress("Running")
	ended, counted := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(counted)
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-ticks.C:
				progress(fmt.Sprintf("Running for %d s", seconds))
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-counted
	}
}

// lost returns why a child has ended without a report.
func (e *Engine) lost(c *child.Process, read error) error {
	errs := c.Errors()
	found := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(errs, text) })
	}
	switch {
	case c.Exceeded() == child.Memory, found("out of memory", "cannot allocate memory"):
		return overMemory(e.budget.Memory).after("")
	case found("stack overflow", "stack exceeds"):
		return tooDeep().after("")
	case c.Exceeded() == child.Time:
		return &toolbox.Failure{Code: "time_limit", Detail: fmt.Sprintf("The code took longer than %g s, and was ended.", e.time.Seconds())}
	case c.CPU() > e.budget.CPU:
		return overCPU(e.budget.CPU).after("")
	}
	return fmt.Errorf("a child that executes code has ended without a result: %s: %w", c.State(), read)
}

// maxBefore limits how much of the output a failure shows, in bytes: its end.
const maxBefore = 500

// after returns the failure of a call whose code has printed something before.
func (f *failure) after(output string) *toolbox.Failure {
	detail := f.Detail
	if output != "" {
		if cut := len(output) - maxBefore; cut > 0 {
			output = "…" + strings.ToValidUTF8(output[cut:], "")
		}
		detail += "\nBefore, it printed:\n" + output
	}
	return &toolbox.Failure{Code: f.Code, Detail: foreign.Escape(foreign.Clean(foreign.Storable(detail)))}
}

// valid reports whether a result is one that Child makes.
func valid(r *Result) bool {
	if len(r.Output) > maxOutput || r.Cut < 0 || len(r.Artifacts) > MaxArtifacts {
		return false
	}
	return !slices.ContainsFunc(r.Artifacts, func(a Artifact) bool {
		return a.Kind != protocol.ArtifactTable && a.Kind != protocol.ArtifactSVG || a.Title == "" || len([]rune(a.Title)) > protocol.MaxTitle || len(a.Content) > protocol.MaxArtifactBytes
	})
}
