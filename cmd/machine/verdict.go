package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Reporter is what a check needs of a test.
type Reporter interface {
	Helper()
	Name() string
	Errorf(format string, arguments ...any)
	Logf(format string, arguments ...any)
}

// Check fails a test when something took longer than its limit. When the machine itself was outside the bounds meanwhile,
// the check is inconclusive: it is reported by name with the measurement, and neither passes nor fails.
func (m *Meter) Check(t Reporter, what string, began time.Time, took, limit time.Duration) {
	t.Helper()
	if took <= limit {
		return
	}
	text := fmt.Sprintf("%s took %s, the limit is %s", what, took.Round(time.Millisecond), limit)
	m.Between(began, began.Add(took)).Judge(t, text)
}

// Judge reports a finding that only a machine within its bounds proves.
func (m Measurement) Judge(t Reporter, finding string) {
	t.Helper()
	if !m.Outside() {
		t.Errorf("%s; the machine: %s", finding, m)
		return
	}
	t.Logf("inconclusive: %s; the machine: %s", finding, m)
	if err := Notice(fmt.Sprintf("inconclusive: %s: %s; the machine: %s", t.Name(), finding, m)); err != nil {
		t.Errorf("noting what is inconclusive: %v", err)
	}
}

// noticeFile gets a line for each notice; `make test` prints it above its summary.
const noticeFile = "tmp/notices"

// Notice adds a line to what is printed above the summary of all tests.
func Notice(text string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			return fmt.Errorf("no go.mod above the working folder: %w", os.ErrNotExist)
		}
		root = filepath.Dir(root)
	}
	path := filepath.Join(root, noticeFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, text); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
