package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
)

// readBundle returns the files of a support bundle by their names.
func readBundle(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "turnstone-support/")] = string(text)
	}
}

func TestASupportBundleHasNoSecretsAndNothingThatUsersWrote(t *testing.T) {
	t.Parallel()
	const databasePassword, apiKey, header = "canary-of-the-database", "canary-of-the-model", "canary-of-a-header"
	s := sitetest.NewSite(t)
	login, err := url.Parse(s.Login)
	if err != nil {
		t.Fatal(err)
	}
	login.User = url.UserPassword(login.User.Username(), databasePassword)
	s.Environment = append(s.Environment, "DATABASE_URL="+login.String(), "TURNSTONE_MODEL_API_KEY="+apiKey, "TURNSTONE_MODEL_HEADERS=X-Gateway: "+header,
		"TURNSTONE_MODEL_BASE_URL=https://me:"+apiKey+"@models.example.org")
	p := s.Start()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t) // with the canary in its title
	live := u.Live(t, conversation, endlessTurn+" "+sitetest.Canary)
	folder := t.TempDir()
	path := filepath.Join(folder, "bundle.tar.gz")
	code, stdout, stderr := sitetest.Finish(t, s.Environment, "doctor", "--bundle", path)
	if code != 0 || !strings.Contains(stdout, "The support bundle is "+path) {
		t.Fatalf("doctor --bundle: %d %s%s", code, stdout, stderr)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	files := readBundle(t, path)
	for name, want := range map[string]string{
		"version.txt": "turnstone ", "doctor.txt": "ok    nodes: 1 running", "config.txt": "TURNSTONE_SECRET=[set]", "nodes.json": `"live_turns":`,
		"metrics.txt": "turnstone_turns_live 1", "goroutines.txt": "goroutine profile: total", "postgres.json": `"public.turns"`, "contents.txt": "postgres.json\n",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not contain %q: %.2000s", name, want, files[name])
		}
	}
	if len(files) != 8 || strings.Contains(files["contents.txt"], "missing") {
		t.Errorf("%d files: %s", len(files), files["contents.txt"])
	}
	for name, text := range files {
		for _, canary := range []string{
			sitetest.GivenSecret, databasePassword, apiKey, header, sitetest.Canary, u.Email, conversation, live.Turn,
		} {
			if at := strings.Index(text, canary); at >= 0 {
				t.Errorf("%s contains %q: …%s", name, canary, text[max(0, at-100):at])
			}
		}
	}
	if code, _, stderr := sitetest.Finish(t, s.Environment, "doctor", "--bundle", path); code != 1 || !strings.Contains(stderr, "file exists") {
		t.Errorf("a second bundle in the same file: %d %s", code, stderr)
	}
	u.Cancel(t, live)
	p.Kill()
	later := filepath.Join(folder, "later.tar.gz")
	if code, stdout, stderr := sitetest.Finish(t, s.Environment, "doctor", "--bundle", later); code != 0 {
		t.Errorf("without a service: %d %s%s", code, stdout, stderr)
	}
	if files := readBundle(t, later); !strings.Contains(files["contents.txt"], "nodes.json is missing: no turnstone responds") || files["postgres.json"] == "" {
		t.Errorf("%s", files["contents.txt"])
	}
	invalid := filepath.Join(folder, "invalid.tar.gz")
	if code, _, stderr := sitetest.Finish(t, append(s.Environment, "TURNSTONE_LISTEN=nowhere"), "doctor", "--bundle", invalid); code != 1 {
		t.Errorf("with an invalid configuration: %d %s", code, stderr)
	}
	if files := readBundle(t, invalid); len(files) != 3 || !strings.Contains(files["doctor.txt"], "TURNSTONE_LISTEN") {
		t.Errorf("%v", files)
	}
}
