package protocol

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files and generated pages")

// golden compares got with the file at path, or writes it there with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./protocol -update writes it)", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s does not match the code; go test ./protocol -update rewrites it (-file +code):\n%s", path, cmp.Diff(string(want), string(got)))
	}
}
