package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/cluster"
)

func TestConfigCheckReadsTheCertificatesOfTheCluster(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{folder, other} {
		if _, err := cluster.Issue(cluster.Request{Folder: dir, Node: "node", Days: 365}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(ca, cert, key string) (code int, output string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), []string{"config", "check"}, &stdout, &stderr, []string{
			"DATABASE_URL=postgres://turnstone@127.0.0.1/turnstone", "REDIS_URL=redis://127.0.0.1:6379", "TURNSTONE_SECRET=vG3x0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd",
			"TURNSTONE_FILES_DIR=" + folder, "TURNSTONE_CLUSTER_LISTEN=127.0.0.1:7946", "TURNSTONE_CLUSTER_CA_FILE=" + ca, "TURNSTONE_CLUSTER_CERT_FILE=" + cert, "TURNSTONE_CLUSTER_KEY_FILE=" + key,
		})
		return code, stdout.String() + stderr.String()
	}
	ca, cert, key := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "node.crt"), filepath.Join(folder, "node.key")
	if code, output := check(ca, cert, key); code != 0 || !strings.HasSuffix(output, "ok\n") {
		t.Errorf("%d %s", code, output)
	}
	if code, output := check(filepath.Join(other, "ca.crt"), cert, key); code != 1 || !strings.Contains(output, "unknown authority") {
		t.Errorf("a certificate of another authority: %d %s", code, output)
	}
	if code, output := check(ca, cert, filepath.Join(folder, "missing")); code != 1 || !strings.Contains(output, "TURNSTONE_CLUSTER_CA_FILE, _CERT_FILE, _KEY_FILE: ") {
		t.Errorf("without a key: %d %s", code, output)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, output := check(ca, cert, key); code != 1 || !strings.Contains(output, "chmod 600") {
		t.Errorf("with a key that others can read: %d %s", code, output)
	}
}
