package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrLocked says that another living process holds the folder.
var ErrLocked = errors.New("folder is in use by another process")

const (
	lockFile = "lock"
	// privateMode is for files that only we read.
	privateMode = 0o600
)

// FolderLock is the exclusive hold of a folder. The kernel releases it when the process ends, so whoever gets it knows
// that the process before it is gone, whatever way it went.
type FolderLock struct {
	file *os.File
}

// LockFolder takes the folder's lock without waiting. It makes the folder when it is missing. While another process
// holds the lock the error is ErrLocked, with that process's id where it is known.
func LockFolder(dir string) (*FolderLock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, privateMode)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the folder: %w", err)
	}
	if err := flock(file); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w%s", dir, ErrLocked, holder(file))
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // only informs; the lock is the flock
	}
	return &FolderLock{file: file}, nil
}

// Unlock gives the folder back. The lock file stays: removing it would let two processes hold two files of one name.
func (l *FolderLock) Unlock() error {
	return l.file.Close()
}

func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func holder(file *os.File) string {
	text := make([]byte, 32)
	n, _ := file.ReadAt(text, 0)
	pid := strings.TrimSpace(string(text[:n]))
	if pid == "" {
		return ""
	}
	return " (process " + pid + ")"
}
