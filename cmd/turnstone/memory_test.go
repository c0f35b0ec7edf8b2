package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheSmallestLimitOfTheContainerCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		self  string
		want  int64
	}{
		"none":                 {map[string]string{"memory.max": "max"}, "0::/", 0},
		"version 2, container": {map[string]string{"memory.max": "1000000"}, "0::/", 1000000},
		"version 2, nested":    {map[string]string{"a/b/memory.max": "max", "a/memory.max": "500"}, "0::/a/b", 500},
		"version 1":            {map[string]string{"memory/memory.limit_in_bytes": "700\n"}, "5:memory:/x", 700},
		"version 1, none":      {map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, "5:memory:/x", 0},
	} {
		root := t.TempDir()
		for path, text := range c.files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		self := filepath.Join(root, "self")
		if err := os.WriteFile(self, []byte(c.self+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := containerLimit(root, self); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
