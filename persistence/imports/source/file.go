package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"turnstone/protocol"
)

// Handler receives what is read. Of an archive of this service, it gets the projects first, then their instructions, the
// prompts, the files, the conversations, and the artifacts. Every reading of the same file calls it in the same order.
type Handler struct {
	Conversation func(*Conversation) error
	Archive      func() error // the file is an archive of this service
	Project      func(*Project) error
	Instructions func(*Instructions) error
	File         func(*File) error
	// AccountInstructions receives the newest version of the instructions of the account, after the files.
	AccountInstructions func(*Instructions) error
	Prompt              func(*Prompt) error // of the account or of a project, after the instructions

	Artifact func(*Artifact) error
	// Problem receives a problem of the file that belongs to no conversation. name is that of a file in the archive, or
	// empty.
	Problem func(reason protocol.ImportReason, name string, detail string, count int) error
}

// Read reads a ZIP archive or a JSON file of size bytes. Problems of the file are passed to the handler; the error is
// one of the handler, or of reading from, which is not a property of the file.
func Read(ctx context.Context, from io.ReaderAt, size int64, now time.Time, to Handler) error {
	tracked := &readerAt{ctx: ctx, from: from}
	var magic [4]byte
	if _, err := tracked.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	whole := to.Conversation
	to.Conversation = func(c *Conversation) error {
		if tracked.err != nil { // the rest of the conversation could not be read
			return tracked.err
		}
		return whole(c)
	}
	var err error
	if string(magic[:2]) == "PK" {
		err = readArchive(tracked, size, maxUnpacked, now, to)
	} else {
		err = readText(bufio.NewReaderSize(io.NewSectionReader(tracked, 0, size), maxOtherSize), "", now, to)
	}
	if tracked.err != nil {
		return tracked.err
	}
	return err
}

// readerAt remembers the first failure of the source, so that it is not taken for a damaged file.
type readerAt struct {
	ctx   context.Context
	from  io.ReaderAt
	limit int64 // bytes that may still be read; 0: no limit
	err   error
}

var errDirectory = errors.New("the directory of the archive is too large")

func (r *readerAt) ReadAt(p []byte, at int64) (int, error) {
	if r.err == nil {
		r.err = r.ctx.Err()
	}
	if r.err != nil {
		return 0, r.err
	}
	if r.limit > 0 {
		if r.limit -= int64(len(p)); r.limit <= 0 {
			r.limit = 1
			return 0, errDirectory
		}
	}
	n, err := r.from.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// readText reads a file that is no archive.
func readText(from *bufio.Reader, name string, now time.Time, to Handler) error {
	if start, _ := from.Peek(maxOtherSize); isHTML(start) { // an error comes again when the text is read
		return readHTML(from, name, nil, now, to)
	}
	return readJSON(from, name, nil, now, to)
}

// isHTML reports whether a text is an HTML page, which the JSON of no export is.
func isHTML(start []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("<"))
}

func readJSON(from io.Reader, name string, files *assets, now time.Time, to Handler) error {
	d := newDecoder(from, now)
	d.assets = files
	g := &activities{now: now, files: files}
	yieldTo := func(c *Conversation) error { return deliver(c, to) }
	err := d.each(func(c *Conversation) error {
		if c.Kind != "" {
			return yieldTo(c)
		}
		if c.activity.is || c.activity.isGemini() {
			c.activity.title, c.activity.bad = c.Title, c.Notes[protocol.ImportTimesUnreadable]
			return g.add(c.activity, yieldTo)
		}
		if is, err := c.readExtras(to, now); is || err != nil {
			return err
		}
		return to.Problem(protocol.ImportUnreadable, name, "It is not a conversation.", 1)
	}, func(err error) error {
		return to.Problem(protocol.ImportUnreadable, name, "A line is damaged: "+brief(err), 1)
	})
	if failed := yielded(err); failed != nil {
		return failed
	}
	if err != nil {
		if err := to.Problem(protocol.ImportUnreadable, name, "The file is damaged: "+brief(err), 1); err != nil {
			return err
		}
	}
	if err := g.flush(yieldTo); err != nil {
		return err
	}
	if err := g.report(name, to); err != nil {
		return err
	}
	return d.reportChanged(name, to)
}

// deliver passes a conversation to the handler, after the files that its messages have.
func deliver(c *Conversation, to Handler) error {
	for _, f := range c.Files {
		if err := to.File(f); err != nil {
			return err
		}
	}
	if err := to.Conversation(c); err != nil {
		return err
	}
	for _, v := range c.Artifacts {
		if err := to.Artifact(v); err != nil {
			return err
		}
	}
	return nil
}

// reportChanged reports what was cut and replaced in parts of a file that are no conversation.
func (d *decoder) reportChanged(name string, to Handler) error {
	cut, replaced := d.changed()
	if cut > 0 {
		if err := to.Problem(protocol.ImportTextCut, name, "", cut); err != nil {
			return err
		}
	}
	if replaced > 0 {
		return to.Problem(protocol.ImportTextChanged, name, "", replaced)
	}
	return nil
}

// brief describes an error without the content of the file.
func brief(err error) string {
	switch {
	case errors.Is(err, errLiteral):
		return err.Error()
	case errors.Is(err, errUnpacked):
		return errUnpacked.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "it ends early"
	}
	return "it is not valid"
}
