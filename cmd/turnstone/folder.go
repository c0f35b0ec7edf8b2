package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"turnstone/protocol"
	"turnstone/providers/embedded"
)

// What the data folder holds. Everything in it is ours alone but the way through to the private servers' folders, whose
// processes run under other accounts when we are root.
const (
	secretFile   = "secret"
	passwordFile = "demo-password"
	nodeFile     = "node"

	folderMode    = 0o711
	ownFileMode   = 0o600
	secretBytes   = 48
	passwordBytes = 15
)

// dataFolder is the data folder of a running node.
type dataFolder struct {
	path     string
	lock     *embedded.FolderLock
	database string // where a private Postgres of ours has its files; empty when there is none
}

// openFolder takes the data folder for this process.
func openFolder(path string) (*dataFolder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_DATA_DIR: %w", err)
	}
	if err := os.MkdirAll(path, folderMode); err != nil {
		return nil, fmt.Errorf("TURNSTONE_DATA_DIR: %w", err)
	}
	lock, err := embedded.LockFolder(path)
	if errors.Is(err, embedded.ErrLocked) {
		return nil, fmt.Errorf("another turnstone runs on the data folder: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_DATA_DIR: %w", err)
	}
	return &dataFolder{path: path, lock: lock}, nil
}

func (f *dataFolder) close() error { return f.lock.Unlock() }

func (f *dataFolder) join(name string) string { return filepath.Join(f.path, name) }

// predecessor is the node that ran here before. We hold the folder's lock, so it surely does not any more.
func (f *dataFolder) predecessor() (*protocol.NodeID, error) {
	text, err := os.ReadFile(f.join(nodeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which node ran here before: %w", err)
	}
	id, err := uuid.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, nil //nolint:nilerr // a torn file: the lease's own time tells that it is gone
	}
	node := protocol.NodeID(id)
	return &node, nil
}

// recordNode makes node the predecessor of the next one.
func (f *dataFolder) recordNode(node protocol.NodeID) error {
	return writeFile(f.join(nodeFile), node.String()+"\n")
}

// keptSecret reads a secret of the folder, or makes it of so many random bytes the first time.
func keptSecret(path string, bytes int) (value string, made bool, err error) {
	value, err = readSecret(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return value, false, err
	}
	value = randomText(bytes)
	return value, true, writeFile(path, value+"\n")
}

func randomText(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// writeFile puts a file whole into its place, readable by us alone.
func writeFile(path, text string) error {
	unfinished := path + ".new"
	if err := os.WriteFile(unfinished, []byte(text), ownFileMode); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
