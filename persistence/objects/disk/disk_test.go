package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/persistence/objects"
	"turnstone/persistence/objects/objectstest"
	"turnstone/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, folder string) *Store {
	t.Helper()
	s, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDiskIsAStore(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objects.Store { return open(t, t.TempDir()) })
}

func TestALinkOutOfTheFolderIsNotFollowed(t *testing.T) {
	folder, secret := t.TempDir(), t.TempDir()
	s := open(t, folder)
	if err := os.WriteFile(filepath.Join(secret, "=secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(folder, objectsFolder, "out")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "out/secret", 0, objects.ToEnd); err == nil {
		t.Error("Get follows a link out of the store")
	}
	if _, err := s.Put(t.Context(), "out/new", strings.NewReader("x"), 1); err == nil {
		t.Error("Put follows a link out of the store")
	}
}

func TestOpenRemovesIncompleteObjectsOfEndedWriters(t *testing.T) {
	folder := t.TempDir()
	open(t, folder)
	old, fresh := filepath.Join(folder, tempFolder, "old"), filepath.Join(folder, tempFolder, "fresh")
	for _, name := range []string{old, fresh} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * leftoverAge)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	open(t, folder)
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old file was not removed (%v)", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a fresh file, which may still be written, was removed (%v)", err)
	}
}

func TestALostFolderIsNotReady(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "store")
	s := open(t, folder)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("without its folder, Ready returns %v", err)
	}
}
