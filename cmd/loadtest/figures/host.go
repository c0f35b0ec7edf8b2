package figures

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"turnstone/providers/embedded"

	"golang.org/x/sys/unix"
)

// Host describes the host computer, the software and the commit that the figures were measured with.
type Host struct {
	begun              time.Time
	model, kernel      string
	Processors         int
	memory             uint64
	database, language string
	Commit             string
}

// ThisHost describes this host computer. What cannot be read stays unknown.
func ThisHost() Host {
	m := Host{begun: time.Now(), Processors: runtime.NumCPU(), language: runtime.Version(), model: "unknown", database: "unknown"}
	text, _ := os.ReadFile("/proc/cpuinfo") // without it the model stays unknown
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			m.model = strings.TrimSpace(value)
			break
		}
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.kernel = unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.memory = info.Totalram * uint64(info.Unit)
	}
	if postgres, err := embedded.PostgresProgram("postgres"); err == nil {
		if text, err := exec.Command(postgres, "--version").Output(); err == nil {
			m.database = strings.TrimSpace(string(text))
		}
	}
	if text, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output(); err == nil {
		m.Commit = strings.TrimSpace(string(text))
	}
	return m
}

// Since returns the time since the description was made.
func (m Host) Since() time.Duration { return time.Since(m.begun) }

// Markdown returns the sentence with the description for a document.
func (m Host) Markdown(took time.Duration) string {
	return fmt.Sprintf("Measured on %s at commit `%s`: %d processors (%s), %d GiB, Linux %s, %s, %s with fsync on. The run took %s.\n",
		m.begun.UTC().Format(time.DateOnly), m.Commit, m.Processors, m.model, m.memory>>30, m.kernel, m.language, m.database,
		took.Round(time.Minute))
}
