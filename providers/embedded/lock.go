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

// ErrLocked means that another running process has locked the folder.
var ErrLocked = errors.New("folder is in use by another process")

const (
	lockFile = "lock"
	// privateMode is the mode of files that only our account reads.
	privateMode = 0o600
)

// FolderLock is an exclusive lock of a folder. The kernel releases it when the process ends, for whatever reason. So a
// process that gets the lock knows that the previous owner has ended.
type FolderLock struct {
	file *os.File
}

// LockFolder takes the folder's lock without waiting. It creates the folder if it is missing. While another process
// holds the lock, the error is ErrLocked, with that process's id if it is known.
func LockFolder(dir string) (*FolderLock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, privateMode)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the folder: %w", err)
	}
	if err := flock(file); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w%s", dir, ErrLocked, lockOwner(file))
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for information only; the lock is the flock
	}
	return &FolderLock{file: file}, nil
}

// Unlock releases the folder. The lock file stays: if it were removed, two processes could lock two different files of
// the same name.
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

func lockOwner(file *os.File) string {
	text := make([]byte, 32)
	n, _ := file.ReadAt(text, 0)
	pid := strings.TrimSpace(string(text[:n]))
	if pid == "" {
		return ""
	}
	return " (process " + pid + ")"
}
