package extract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"turnstone/protocol"
	"turnstone/providers/child"
)

// run starts a child and returns its result. It has ended, and is reaped, when run returns.
func (e *Extractor) run(ctx context.Context, spool *os.File, task Task, mediaType, reader string) (*protocol.Extraction, error) {
	started, err := e.program.Start(spool, string(task), mediaType, reader)
	if err != nil {
		return nil, err
	}
	c := reading{started}
	c.Watch(ctx, child.Limits{Time: e.lanes[task].timeout, Memory: maxMemory})
	var x *protocol.Extraction
	if reader == "" {
		x, err = c.result()
	} else {
		x, err = c.pages(task)
	}
	c.End() // it has nothing to do any more
	switch {
	case x != nil && err == nil:
		return x, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.Exceeded() != child.None || c.CPU() > (maxCPU-1)*time.Second: // at which the kernel ends it
		return failed(errComplex), nil
	}
	return nil, err
}

// printed starts a child and returns what it prints, at most most bytes, unchecked. Like run, it returns when the child has ended.
func (e *Extractor) printed(ctx context.Context, spool *os.File, task Task, argument, program string, most int64) ([]byte, error) {
	started, err := e.program.Start(spool, string(task), argument, program)
	if err != nil {
		return nil, err
	}
	c := reading{started}
	c.Watch(ctx, child.Limits{Time: e.lanes[task].timeout, Memory: maxMemory})
	printed, err := io.ReadAll(io.LimitReader(c.Output, most))
	c.End()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errChild, err)
	}
	return printed, nil
}

// reading is a child that reads a content.
type reading struct{ *child.Process }

var errChild = errors.New("the reader of a content failed")

// result reads what Child prints.
func (c reading) result() (*protocol.Extraction, error) {
	x := &protocol.Extraction{}
	if err := json.NewDecoder(io.LimitReader(c.Output, maxOutput)).Decode(x); err != nil {
		return nil, fmt.Errorf("%w: %w", errChild, err)
	}
	if !valid(x) {
		return nil, fmt.Errorf("%w: its result is not valid", errChild)
	}
	return x, nil
}

// pages reads what pdftotext prints. A PDF whose text must not be copied can be read without a password.
func (c reading) pages(task Task) (*protocol.Extraction, error) {
	const most = maxText + 1
	printed, err := io.ReadAll(io.LimitReader(c.Output, most))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChild, err)
	}
	if len(printed) == most { // it is enough
		return readPages(string(printed), true), nil
	}
	<-c.Done()
	status, _ := c.State().Sys().(syscall.WaitStatus)
	const badPDF, badPermission = 1, 3
	switch {
	case status.Exited() && status.ExitStatus() == 0 && len(printed) == 0: // no page was found
		return failed(errDamaged), nil
	case status.Exited() && status.ExitStatus() == 0:
		x := readPages(string(printed), false)
		noteReports(x, c.Errors())
		return x, nil
	case status.Exited() && status.ExitStatus() == badPermission && task == Inspect:
		return &protocol.Extraction{State: protocol.TextNone}, nil
	case status.Exited() && (status.ExitStatus() == badPDF || status.ExitStatus() == badPermission):
		return pdfFailure(c.Errors()), nil
	}
	return nil, fmt.Errorf("%w: %s", errChild, c.State())
}
