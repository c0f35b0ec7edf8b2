package extract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"turnstone/providers/child"
)

// Task is what a child process does with a content.
type Task string

// The tasks.
const (
	ReadText    Task = "text"             // the result is the text
	Inspect     Task = "encryption"       // the result says whether the content is encrypted; it has no text
	listMembers Task = "members"          // the result is a list of the files that are attached to a PDF
	drawPage    Task = "first page"       // the result is the first page of a PDF, as a picture
	drawLarge   Task = "large first page" // the same, for a model
	drawScan    Task = "scan"             // a page of a PDF, in which text is recognized; the argument is its number
	prepare     Task = "prepare"          // a picture as PNG, upright, in which text is recognized
	recognize   Task = "recognize"        // the words in a picture, as tesseract prints them; the argument names its data
	convert     Task = "convert"          // a document of an old format in another one; the argument is its path
	decodeHEIF  Task = "decode"           // a picture in HEIC or AVIF as PNG; the argument is the name of the output
)

// Child runs in the child process. It reads the content from a regular file, which is its standard input, and prints a
// protocol.Extraction as JSON. The argument is the media type, unless its task says otherwise. With the path of another program, it
// restricts the process and becomes a shell, which becomes that program, so that no process below this one has to be limited; that
// prints the text or the picture. The shell limits the address space,
// because a Go process must not: its runtime has reserved more already, and ends the process when it cannot have more.
func Child(stdin *os.File, stdout io.Writer, task Task, argument, reader string) error {
	if task == convert {
		return become(reader, argument)
	}
	if reader != "" {
		if err := child.Restrict(maxCPU, unix.RLIM_INFINITY); err != nil {
			return err
		}
		// A program that tries to write a file, as fontconfig does for its cache under root, must not be killed for it: with the
		// signal ignored, which exec keeps, the write fails, and the program continues.
		signal.Ignore(unix.SIGXFSZ)
		limited := []string{"sh", "-c", fmt.Sprintf(`ulimit -v %d || exit 4; OMP_THREAD_LIMIT=1 exec "$0" "$@"`, maxReaderSize>>10), reader}
		return syscall.Exec("/bin/sh", append(limited, programArguments(task, argument)...), nil) // Extractor names the program
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
	if task == prepare {
		return prepared(content{stdin, info.Size()}, argument, stdout)
	}
	do := Read
	if task == Inspect {
		do = inspect
	}
	if err := json.NewEncoder(stdout).Encode(do(stdin, info.Size(), argument)); err != nil {
		return fmt.Errorf("printing the text: %w", err)
	}
	return nil
}

// become restricts the process and becomes the program that converts a document, which writes files in the folder of the document.
func become(program, source string) error {
	if err := child.RestrictWriting(maxConversion, maxUnpacked); err != nil {
		return err
	}
	return syscall.Exec(program, append([]string{program}, convertArguments(source)...), []string{"HOME=" + filepath.Dir(source), "PATH=/usr/bin:/bin"}) // Extractor names the program
}
