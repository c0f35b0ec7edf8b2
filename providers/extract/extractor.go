package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
	"turnstone/providers/child"
	"turnstone/providers/tokens"
)

// Extractor reads contents in child processes. Its methods may be called from any goroutine.
type Extractor struct {
	program *child.Program
	lanes   map[Task]lane

	// CheckSpace returns an error while the disk of the contents that are being read is nearly full; nil: never. It is set
	// before the first call.
	CheckSpace func() error
	// ShowPages: of documents of pictures, several pages are drawn for models. It is set before the first call, too.
	ShowPages bool
}

// lane limits the children of a task, so that those of one task do not wait for those of the other.
type lane struct {
	slots   chan struct{} // has a slot for each child
	timeout time.Duration // of a child
}

// New returns an extractor whose children are processes of a command, to which it adds the arguments of Child: the task, the
// media type and the path of a reader, which may be empty.
func New(command ...string) *Extractor {
	return &Extractor{program: child.New(command...), lanes: map[Task]lane{
		ReadText:    {make(chan struct{}, atOnce), maxTime},
		Inspect:     {make(chan struct{}, atOnce), maxInspection},
		drawPage:    {nil, maxInspection}, // in the slot of the text
		listMembers: {nil, maxInspection},
		drawLarge:   {nil, maxInspection},
		drawScan:    {nil, maxInspection},
		prepare:     {nil, maxInspection},
		recognize:   {nil, maxTime},
		decodeHEIF:  {nil, maxTime},
		convert:     {nil, maxTime},
	}}
}

// Extract is ExtractIn for a content of which no text is recognized in pictures.
func (e *Extractor) Extract(ctx context.Context, of io.Reader, mediaType string) (*protocol.Extraction, error) {
	return e.extract(ctx, of, mediaType, nil)
}

// ExtractIn reads a content of an account with a language, in which the text of pictures is recognized. It waits while too many others are read. A content that cannot be read is a result, too; an
// error means that another attempt may succeed.
func (e *Extractor) ExtractIn(ctx context.Context, of io.Reader, mediaType, language string) (*protocol.Extraction, error) {
	return e.extract(ctx, of, mediaType, func() *recognizer { return e.recognizer(ctx, language) })
}

func (e *Extractor) extract(ctx context.Context, of io.Reader, mediaType string, recognizing func() *recognizer) (*protocol.Extraction, error) {
	if !filetype.KindOf(mediaType).HasText() {
		return &protocol.Extraction{State: protocol.TextNone}, nil
	}
	x, err := e.read(ctx, ReadText, of, mediaType, recognizing)
	if err == nil && x.Text != "" {
		x.Tokens = tokens.Estimate(x.Text)
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
	switch x, err := e.read(ctx, Inspect, of, mediaType, nil); {
	case errors.Is(err, errChild) && ctx.Err() == nil:
		return false, nil
	case err != nil:
		return false, err
	default:
		return x.Reason == protocol.TextEncrypted, nil
	}
}

// read runs children for a content, in the lane of its task.
func (e *Extractor) read(ctx context.Context, task Task, of io.Reader, mediaType string, recognizing func() *recognizer) (*protocol.Extraction, error) {
	var reader string
	if mediaType == pdf {
		var err error
		if reader, err = exec.LookPath(pdftotext); err != nil {
			return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextNoReader}, nil // it is the result
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
	spool, err := child.Spool(of)
	if err != nil {
		return nil, err
	}
	defer func() { _ = spool.Close() }() // it has no name any more
	if slices.Contains(heif, mediaType) {
		return e.readHEIF(ctx, spool, recognizing)
	}
	if _, isOld := oldOffice[mediaType]; isOld {
		return e.readOldOffice(ctx, spool, mediaType)
	}
	x, err := e.run(ctx, spool, task, mediaType, reader)
	if err != nil || task == Inspect {
		return x, err
	}
	switch {
	case mediaType == pdf && (x.State == protocol.TextDone || x.State == protocol.TextNoText):
		return e.finishPDF(ctx, spool, x, recognizing), nil
	case x.Picture != nil:
		e.recognizePicture(ctx, spool, mediaType, x, recognizing)
	}
	return x, nil
}

// heif are the types of pictures that a program of libheif decodes.
var heif = []string{"image/heic", "image/avif"}

// readHEIF reads a picture that another program decodes. What that prints is read like any other picture.
func (e *Extractor) readHEIF(ctx context.Context, of *os.File, recognizing func() *recognizer) (*protocol.Extraction, error) {
	decoded, isInstalled, err := e.decodeHEIF(ctx, of)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !isInstalled:
		return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextNoReader}, nil
	case err != nil || len(decoded) == 0:
		return failed(errDamaged), nil // it is the result
	}
	const decodedType = "image/png"
	spool, err := child.Spool(bytes.NewReader(decoded))
	if err != nil {
		return nil, err
	}
	defer func() { _ = spool.Close() }() // it has no name any more
	x, err := e.run(ctx, spool, ReadText, decodedType, "")
	if err == nil && x.Picture != nil {
		e.recognizePicture(ctx, spool, decodedType, x, recognizing)
	}
	return x, err
}

// recognizePicture adds the text in a picture, if text is recognized.
func (e *Extractor) recognizePicture(ctx context.Context, of *os.File, mediaType string, x *protocol.Extraction, recognizing func() *recognizer) {
	if recognizing == nil {
		return
	}
	if r := recognizing(); r != nil {
		r.picture(ctx, of, mediaType, x)
	}
}

// finishPDF adds what is recognized in the pages without text, and pages as pictures.
func (e *Extractor) finishPDF(ctx context.Context, of *os.File, x *protocol.Extraction, recognizing func() *recognizer) *protocol.Extraction {
	if len(x.Blocks) < x.Pages && recognizing != nil {
		if r := recognizing(); r != nil {
			x = r.pages(ctx, of, x)
		} else if x.State == protocol.TextNoText {
			x.Reason = protocol.TextNoOCR
		}
	}
	if members := e.members(ctx, of); members > 0 {
		x.Notes = append(x.Notes, protocol.TextNote{Kind: protocol.NoteUnreadMembers, Count: members})
	}
	e.showPages(ctx, of, x)
	return x
}

// members returns how many files are attached to a PDF; 0 if that is not known.
func (e *Extractor) members(ctx context.Context, of *os.File) (count int) {
	program, err := exec.LookPath(pdfdetach)
	if err != nil {
		return 0
	}
	if _, err := of.Seek(0, io.SeekStart); err != nil {
		return 0
	}
	const most = 1 << 10 // the first line says it
	printed, err := e.printed(ctx, of, listMembers, "", program, most)
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscanf(string(printed), "%d embedded files", &count); err != nil {
		return 0
	}
	return count
}

// showPages adds a thumbnail of the first page of a PDF, and of one without text pictures for models. It adds none if the first page
// cannot be drawn.
func (e *Extractor) showPages(ctx context.Context, of *os.File, x *protocol.Extraction) {
	if x.State != protocol.TextNoText {
		if page := e.page(ctx, of, drawPage, 1); page != nil {
			x.Thumbnail = page.Thumbnail
		}
		return
	}
	first := e.page(ctx, of, drawLarge, 1)
	if first == nil {
		return
	}
	x.Thumbnail, x.Picture = first.Thumbnail, first.Picture
	var further [][]byte
	deadline := time.Now().Add(drawingTime)
	for n := 2; e.ShowPages && n <= min(x.Pages, maxShown) && time.Now().Before(deadline); n++ {
		page := e.page(ctx, of, drawLarge, n)
		if page == nil || page.Picture == nil {
			break // those that are shown have no gap
		}
		further = append(further, page.Picture)
	}
	x.ShowPages(further)
}

// page returns a page of a PDF as a picture; nil if it cannot be drawn. What pdftoppm prints is read like any other picture.
func (e *Extractor) page(ctx context.Context, of *os.File, task Task, number int) *protocol.Extraction {
	drawer, err := exec.LookPath(pdftoppm)
	if err != nil {
		return nil
	}
	if _, err := of.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	drawn, err := e.printed(ctx, of, task, strconv.Itoa(number), drawer, maxDrawn)
	if err != nil || len(drawn) == 0 {
		return nil
	}
	spool, err := child.Spool(bytes.NewReader(drawn))
	if err != nil {
		return nil
	}
	defer func() { _ = spool.Close() }() // it has no name any more
	read, err := e.run(ctx, spool, ReadText, "image/png", "")
	if err != nil {
		return nil
	}
	return read
}
