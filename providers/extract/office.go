package extract

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"turnstone/protocol"
)

// oldOffice maps the documents of Office before 2007 to the types as which LibreOffice converts them. It is optional.
var oldOffice = map[string]struct{ extension, to, mediaType string }{
	"application/msword":            {".doc", "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	"application/vnd.ms-excel":      {".xls", "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	"application/vnd.ms-powerpoint": {".ppt", "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
}

// officeProgram returns the program that converts documents; "" if there is none. The command soffice is a script that starts another
// program and waits; the limits are for that program.
func officeProgram() string {
	for _, name := range []string{"soffice", "libreoffice"} {
		found, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if script, err := filepath.EvalSymlinks(found); err == nil {
			if program := filepath.Join(filepath.Dir(script), "soffice.bin"); isThere(program) {
				return program
			}
		}
		return found
	}
	return ""
}

// readOldOffice reads a document of Office before 2007: a child converts it in a folder of its own, and another one reads the result
// like any other document.
func (e *Extractor) readOldOffice(ctx context.Context, of *os.File, mediaType string) (*protocol.Extraction, error) {
	program := officeProgram()
	if program == "" {
		return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextNoReader}, nil
	}
	as := oldOffice[mediaType]
	folder, err := os.MkdirTemp("", "turnstone-child-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // nothing of it is used afterwards
	source := filepath.Join(folder, "document"+as.extension)
	if err := copyTo(source, of); err != nil {
		return nil, err
	}
	const starts = 2 // LibreOffice ends when it has made its settings, and wants to be started again
	for range starts {
		if _, err := e.printed(ctx, of, convert, source, program, maxTable); err != nil {
			return nil, err
		}
		if isThere(filepath.Join(folder, "document."+as.to)) {
			break
		}
	}
	const notFollowed = syscall.O_NOFOLLOW | syscall.O_NONBLOCK // it may be a link or a pipe
	converted, err := os.OpenFile(filepath.Join(folder, "document."+as.to), os.O_RDONLY|notFollowed, 0)
	if err != nil {
		return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextUnreadable}, nil // it is the result
	}
	defer func() { _ = converted.Close() }() // it was only read
	if info, err := converted.Stat(); err != nil || !info.Mode().IsRegular() {
		return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextUnreadable}, nil // it is the result
	}
	return e.run(ctx, converted, ReadText, as.mediaType, "")
}

func copyTo(path string, of io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, of)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// convertArguments returns the arguments of LibreOffice, which converts a file in a folder, and stores its settings there.
func convertArguments(source string) []string {
	folder, extension := filepath.Dir(source), filepath.Ext(source)
	to := ""
	for _, as := range oldOffice {
		if as.extension == extension {
			to = as.to
		}
	}
	return []string{"--headless", "--norestore", "--nolockcheck", "--nodefault", "-env:UserInstallation=file://" + folder + "/settings", "--convert-to", to, "--outdir", folder, source}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
