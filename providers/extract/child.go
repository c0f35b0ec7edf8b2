package extract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"turnstone/providers/child"
)

// Task is what a child process does with a content.
type Task string

// The tasks.
const (
	ReadText  Task = "text"             // the result is the text
	Inspect   Task = "encryption"       // the result says whether the content is encrypted; it has no text
	drawPage  Task = "first page"       // the result is the first page of a PDF, as a picture
	drawLarge Task = "large first page" // the same, for a model
)

// Child runs in the child process. It reads the content from a regular file, which is its standard input, and prints a
// protocol.Extraction as JSON. With the path of pdftotext or pdftoppm, it restricts the process and becomes a shell, which
// becomes that program, so that no process below this one has to be limited; that prints the text or the picture. The shell limits the address space,
// because a Go process must not: its runtime has reserved more already, and ends the process when it cannot have more.
func Child(stdin *os.File, stdout io.Writer, task Task, mediaType, reader string) error {
	if reader != "" {
		if err := child.Restrict(maxCPU, unix.RLIM_INFINITY); err != nil {
			return err
		}
		// A program that tries to write a file, as fontconfig does for its cache under root, must not be killed for it: with the
		// signal ignored, which exec keeps, the write fails, and the program continues.
		signal.Ignore(unix.SIGXFSZ)
		limited := []string{"sh", "-c", fmt.Sprintf(`ulimit -v %d || exit 4; exec "$0" "$@"`, maxReaderSize>>10), reader}
		return syscall.Exec("/bin/sh", append(limited, pdfArguments(task)...), nil) //nolint:gosec // Extractor names the program
	}
	if err := child.Restrict(maxCPU, child.MaxAddresses); err != nil {
		return err
	}
	debug.SetMemoryLimit(maxHeap)
	info, err := stdin.Stat()
	if err != nil {
		return fmt.Errorf("reading the content: %w", err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("the content must be a regular file")
	}
	do := Read
	if task == Inspect {
		do = inspect
	}
	if err := json.NewEncoder(stdout).Encode(do(stdin, info.Size(), mediaType)); err != nil {
		return fmt.Errorf("printing the text: %w", err)
	}
	return nil
}
