package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Reporter is the part of testing.TB that a check needs.
type Reporter interface {
	Helper()
	Name() string
	Errorf(format string, arguments ...any)
	Logf(format string, arguments ...any)
}

// Check fails the test if something took longer than its limit. If the machine was outside its bounds in the meantime,
// the check is inconclusive: it is reported by name with the measurement, and neither passes nor fails.
func (m *Meter) Check(t Reporter, what string, began time.Time, took, limit time.Duration) {
	t.Helper()
	if took <= limit {
		return
	}
	text := fmt.Sprintf("%s took %s, the limit is %s", what, took.Round(time.Millisecond), limit)
	m.Between(began, began.Add(took)).Report(t, text)
}

// Report fails the test with a finding that is valid only if the machine was within its bounds. Otherwise it reports
// the finding as inconclusive.
func (m Measurement) Report(t Reporter, finding string) {
	t.Helper()
	if !m.OutOfBounds() {
		t.Errorf("%s; the machine: %s", finding, m)
		return
	}
	t.Logf("inconclusive: %s; the machine: %s", finding, m)
	if err := AddNotice(fmt.Sprintf("inconclusive: %s: %s; the machine: %s", t.Name(), finding, m)); err != nil {
		t.Errorf("writing the notice of an inconclusive check: %v", err)
	}
}

// noticeFile receives a line for each notice; `make test` prints it above its summary.
const noticeFile = "tmp/notices"

// AddNotice appends a line to the notices that `make test` prints above its summary.
func AddNotice(text string) error {
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
