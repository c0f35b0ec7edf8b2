// Package folder is the data folder of a node: its lock, its secrets and the node that used it before. The commands use it. It
// opens nothing outside of the folder.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"turnstone/cmd/turnstone/settings"
	"turnstone/protocol"
	"turnstone/providers/embedded"
)

// The contents of the data folder. Only our account can read them. Other accounts may pass through the folder, because
// the private servers run under other accounts if we are root, and their folders are in it.
const (
	nodeFile = "node"

	Mode        = 0o711
	ownFileMode = 0o600
	// SecretBytes is the number of random bytes of a generated signing secret.
	SecretBytes = 48
)

// Folder is the locked data folder of a running node.
type Folder struct {
	path     string
	lock     *embedded.FolderLock
	Database string // folder of the private Postgres that this process started; "" if there is none
}

// Open creates and locks the data folder for this process. If another process holds the lock, the error is
// embedded.ErrLocked.
func Open(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_DATA_DIR: %w", err)
	}
	if err := os.MkdirAll(path, Mode); err != nil {
		return nil, fmt.Errorf("TURNSTONE_DATA_DIR: %w", err)
	}
	lock, err := embedded.LockFolder(path)
	if errors.Is(err, embedded.ErrLocked) {
		return nil, fmt.Errorf("another turnstone uses the data folder: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_DATA_DIR: %w", err)
	}
	return &Folder{path: path, lock: lock}, nil
}

// Close releases the lock.
func (f *Folder) Close() error { return f.lock.Unlock() }

// Join returns the path of a file in the folder.
func (f *Folder) Join(name string) string { return filepath.Join(f.path, name) }

// Predecessor returns the node that used the folder before, or nil if none is recorded. This process holds the folder's
// lock, so that node has surely ended.
func (f *Folder) Predecessor() (*protocol.NodeID, error) {
	text, err := os.ReadFile(f.Join(nodeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the previous node of the data folder: %w", err)
	}
	id, err := uuid.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, nil // an incomplete file: other nodes detect the end of that node by its expired lease
	}
	node := protocol.NodeID(id)
	return &node, nil
}

// RecordNode stores node as the predecessor of the next node that uses the folder.
func (f *Folder) RecordNode(node protocol.NodeID) error {
	return WriteFile(f.Join(nodeFile), node.String()+"\n")
}

// LoadOrCreateSecret returns the secret stored at path. If there is none, it generates one from the given number of
// random bytes and stores it; made reports whether it did.
func LoadOrCreateSecret(path string, bytes int) (value string, made bool, err error) {
	value, err = settings.ReadSecret(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return value, false, err
	}
	value = settings.RandomText(bytes)
	return value, true, WriteFile(path, value+"\n")
}

// WriteFile replaces a file atomically. Only our account can read it.
func WriteFile(path, text string) error {
	unfinished := path + ".new"
	if err := os.WriteFile(unfinished, []byte(text), ownFileMode); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
