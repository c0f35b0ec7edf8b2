package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/settings"
	"turnstone/protocol"
	"turnstone/providers/embedded"
)

func TestADataFolderHasOneProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	folder, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, embedded.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the second process: %v", err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if folder, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnusableDataFolderIsReportedInOneLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "data")); err == nil || !strings.HasPrefix(err.Error(), "TURNSTONE_DATA_DIR: ") {
		t.Errorf("%v", err)
	}
}

func TestThePredecessorIsStoredAndATornFileMeansNone(t *testing.T) {
	folder := &Folder{path: t.TempDir()}
	if before, err := folder.Predecessor(); before != nil || err != nil {
		t.Errorf("at first: %v, %v", before, err)
	}
	node := protocol.NewNodeID()
	if err := folder.RecordNode(node); err != nil {
		t.Fatal(err)
	}
	if before, err := folder.Predecessor(); err != nil || before == nil || *before != node {
		t.Errorf("afterwards: %v, %v", before, err)
	}
	if err := os.WriteFile(folder.Join(nodeFile), []byte("0191"), 0o600); err != nil {
		t.Fatal(err)
	}
	if before, err := folder.Predecessor(); before != nil || err != nil {
		t.Errorf("torn: %v, %v", before, err)
	}
}

func TestASecretIsGeneratedOnceAndReadableByItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), settings.GeneratedSecret)
	value, made, err := LoadOrCreateSecret(path, SecretBytes)
	if err != nil || !made {
		t.Fatalf("%t, %v", made, err)
	}
	if again, made, err := LoadOrCreateSecret(path, SecretBytes); again != value || made || err != nil {
		t.Errorf("the second time: made %t, same %t, %v", made, again == value, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	var parsed settings.Secrets
	if err := parsed.UnmarshalText([]byte(value)); err != nil {
		t.Errorf("serve refuses the secret that dev generates: %v", err)
	}
}
