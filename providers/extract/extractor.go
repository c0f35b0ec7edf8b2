package extract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
	"turnstone/providers/embedded/process"
	"turnstone/providers/model"
)

// Extractor reads contents in child processes. Its methods may be called from any goroutine.
type Extractor struct {
	command []string
	lanes   map[Task]lane
	shared  atomic.Bool // this system allows no namespaces of its own for children

	// CheckSpace returns an error while the disk of the contents that are being read is nearly full; nil: never. It is set
	// before the first call.
	CheckSpace func() error
}

// lane limits the children of a task, so that those of one task do not wait for those of the other.
type lane struct {
	slots   chan struct{} // has a slot for each child
	timeout time.Duration // of a child
}

// New returns an extractor whose children are processes of a command, to which it adds the arguments of Child: the task, the
// media type and the path of a reader, which may be empty.
func New(command ...string) *Extractor {
	return &Extractor{command: command, lanes: map[Task]lane{
		ReadText: {make(chan struct{}, atOnce), maxTime},
		Inspect:  {make(chan struct{}, atOnce), maxInspection},
		drawPage: {nil, maxInspection}, // in the slot of the text
	}}
}

// Extract reads a content. It waits while too many others are read. A content that cannot be read is a result, too; an
// error means that another attempt may succeed.
func (e *Extractor) Extract(ctx context.Context, of io.Reader, mediaType string) (*protocol.Extraction, error) {
	if !filetype.KindOf(mediaType).HasText() {
		return &protocol.Extraction{State: protocol.TextNone}, nil
	}
	x, err := e.read(ctx, ReadText, of, mediaType)
	if err == nil && x.Text != "" {
		x.Tokens = model.Estimate(x.Text)
	}
	return x, err
}

// Encrypted reports whether a content cannot be read without a password. It opens the content only if its media type allows
// that, and waits while too many others are inspected. A content that cannot be inspected is not encrypted; an error means
// that another attempt may succeed.
func (e *Extractor) Encrypted(ctx context.Context, open func() (io.ReadCloser, error), mediaType string) (bool, error) {
	if !canBeEncrypted(mediaType) {
		return false, nil
	}
	of, err := open()
	if err != nil {
		return false, err
	}
	defer func() { _ = of.Close() }() // it was only read
	switch x, err := e.read(ctx, Inspect, of, mediaType); {
	case errors.Is(err, errChild) && ctx.Err() == nil:
		return false, nil
	case err != nil:
		return false, err
	default:
		return x.Reason == protocol.TextEncrypted, nil
	}
}

// read runs a child for a content, in the lane of its task.
func (e *Extractor) read(ctx context.Context, task Task, of io.Reader, mediaType string) (*protocol.Extraction, error) {
	var reader string
	if mediaType == pdf {
		var err error
		if reader, err = exec.LookPath(pdftotext); err != nil {
			return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextNoReader}, nil //nolint:nilerr // it is the result
		}
	}
	slots := e.lanes[task].slots
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-slots }()
	if e.CheckSpace != nil {
		if err := e.CheckSpace(); err != nil {
			return nil, err
		}
	}
	spool, err := spooled(of)
	if err != nil {
		return nil, err
	}
	defer func() { _ = spool.Close() }() // it has no name any more
	x, err := e.run(ctx, spool, task, mediaType, reader)
	if err == nil && task == ReadText && mediaType == pdf && x.State == protocol.TextDone {
		x.Thumbnail = e.firstPage(ctx, spool)
	}
	return x, err
}

// firstPage returns a thumbnail of the first page of a PDF; nil if it cannot be drawn. What pdftoppm prints is read like any
// other picture.
func (e *Extractor) firstPage(ctx context.Context, of *os.File) []byte {
	drawer, err := exec.LookPath(pdftoppm)
	if err != nil {
		return nil
	}
	if _, err := of.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	drawn, err := e.run(ctx, of, drawPage, pdf, drawer)
	if err != nil || drawn.Picture == nil {
		return nil
	}
	spool, err := spooled(bytes.NewReader(drawn.Picture))
	if err != nil {
		return nil
	}
	defer func() { _ = spool.Close() }() // it has no name any more
	read, err := e.run(ctx, spool, ReadText, "image/png", "")
	if err != nil {
		return nil
	}
	return read.Thumbnail
}

// spooled copies a content into a file without a name, which a child can read at any position.
func spooled(of io.Reader) (*os.File, error) {
	spool, err := os.CreateTemp("", "turnstone-extract-*")
	if err != nil {
		return nil, fmt.Errorf("storing a content for its reader: %w", err)
	}
	err = os.Remove(spool.Name())
	if err == nil {
		_, err = io.Copy(spool, of)
	}
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = spool.Close()
		return nil, fmt.Errorf("storing a content for its reader: %w", err)
	}
	return spool, nil
}

// run starts a child and returns its result. It has ended, and is reaped, when run returns.
func (e *Extractor) run(ctx context.Context, spool *os.File, task Task, mediaType, reader string) (*protocol.Extraction, error) {
	c, err := e.start(spool, task, mediaType, reader)
	if err != nil {
		return nil, err
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watch(ctx, e.lanes[task].timeout)
	}()
	var x *protocol.Extraction
	switch {
	case reader == "":
		x, err = c.result()
	case task == drawPage:
		x, err = c.page()
	default:
		x, err = c.pages(task)
	}
	c.kill() // it has nothing to do any more
	<-watched
	<-c.Done()
	_ = c.output.Close() // it was only read
	switch {
	case x != nil && err == nil:
		return x, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.exceeded.Load() || c.outOfTime():
		return failed(errComplex), nil
	}
	return nil, err
}

// child is a started child process.
type child struct {
	*process.Process
	cmd      *exec.Cmd
	output   *os.File
	errors   prefix
	exceeded atomic.Bool
}

// start starts a child in a process group and, if the system allows it, in a network namespace of its own, in which there
// is no network.
func (e *Extractor) start(spool *os.File, task Task, mediaType, reader string) (*child, error) {
	const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	if !e.shared.Load() {
		c, err := e.startIn(namespaces, spool, task, mediaType, reader)
		if err == nil || !refusesNamespaces(err) {
			return c, err
		}
		e.shared.Store(true)
	}
	return e.startIn(0, spool, task, mediaType, reader)
}

func refusesNamespaces(err error) bool {
	for _, one := range []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EINVAL, syscall.ENOSYS, syscall.EUSERS} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func (e *Extractor) startIn(namespaces uintptr, spool *os.File, task Task, mediaType, reader string) (*child, error) {
	output, print, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting a reader: %w", err)
	}
	c := &child{output: output}
	c.cmd = exec.Command(e.command[0], append(append([]string{}, e.command[1:]...), string(task), mediaType, reader)...) //nolint:gosec,noctx // watch ends it
	c.cmd.Env = []string{}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = spool, print, &c.errors
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	c.Process, err = process.Start(c.cmd)
	_ = print.Close() // the child has a copy
	if err != nil {
		_ = output.Close()
		return nil, err
	}
	return c, nil
}

// kill ends the process group of the child.
func (c *child) kill() { _ = syscall.Kill(-c.PID(), syscall.SIGKILL) } // it may have ended

// watch kills the child when it exceeds its memory or its time, or when ctx ends.
func (c *child) watch(ctx context.Context, timeout time.Duration) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	ticks := time.NewTicker(memoryInterval)
	defer ticks.Stop()
	for {
		select {
		case <-c.Done():
			return
		case <-ctx.Done():
			c.kill()
			return
		case <-deadline.C:
			c.exceeded.Store(true)
			c.kill()
			return
		case <-ticks.C:
			if resident(c.PID()) > maxMemory {
				c.exceeded.Store(true)
				c.kill()
				return
			}
		}
	}
}

// resident returns the resident memory of a process in bytes; 0 if it has ended.
func resident(pid int) int64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// outOfTime reports whether the child has used its processor time, at which the kernel ends it.
func (c *child) outOfTime() bool {
	used := c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
	return used > (maxCPU-1)*time.Second
}

var errChild = errors.New("the reader of a content failed")

// result reads what Child prints.
func (c *child) result() (*protocol.Extraction, error) {
	x := &protocol.Extraction{}
	if err := json.NewDecoder(io.LimitReader(c.output, maxOutput)).Decode(x); err != nil {
		return nil, fmt.Errorf("%w: %w", errChild, err)
	}
	if !valid(x) {
		return nil, fmt.Errorf("%w: its result is not valid", errChild)
	}
	return x, nil
}

// pages reads what pdftotext prints. A PDF whose text must not be copied can be read without a password.
func (c *child) pages(task Task) (*protocol.Extraction, error) {
	const most = maxText + 1
	printed, err := io.ReadAll(io.LimitReader(c.output, most))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChild, err)
	}
	if len(printed) == most { // it is enough
		return readPages(string(printed), true), nil
	}
	<-c.Done()
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	const badPDF, badPermission = 1, 3
	switch {
	case status.Exited() && status.ExitStatus() == 0 && len(printed) == 0: // no page was found
		return failed(errDamaged), nil
	case status.Exited() && status.ExitStatus() == 0:
		return readPages(string(printed), false), nil
	case status.Exited() && status.ExitStatus() == badPermission && task == Inspect:
		return &protocol.Extraction{State: protocol.TextNone}, nil
	case status.Exited() && (status.ExitStatus() == badPDF || status.ExitStatus() == badPermission):
		return pdfFailure(string(c.errors.text)), nil
	}
	return nil, fmt.Errorf("%w: %s", errChild, c.cmd.ProcessState)
}

// page reads what pdftoppm prints: a picture, which nobody has checked.
func (c *child) page() (*protocol.Extraction, error) {
	printed, err := io.ReadAll(io.LimitReader(c.output, maxDrawn))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChild, err)
	}
	return &protocol.Extraction{Picture: printed}, nil
}

// prefix stores the beginning of what is written to it.
type prefix struct{ text []byte }

// Write implements io.Writer.
func (p *prefix) Write(piece []byte) (int, error) {
	p.text = append(p.text, piece[:min(len(piece), maxErrors-len(p.text))]...)
	return len(piece), nil
}
