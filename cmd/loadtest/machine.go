package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine is what the figures were measured on.
type machine struct {
	begun              time.Time
	model, kernel      string
	processors         int
	memory             uint64
	database, language string
	commit             string
}

func describeMachine() machine {
	m := machine{begun: time.Now(), processors: runtime.NumCPU(), language: runtime.Version(), model: "unknown", database: "unknown"}
	text, _ := os.ReadFile("/proc/cpuinfo") // only described
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
	if postgres, err := tool("postgres"); err == nil {
		if text, err := exec.Command(postgres, "--version").Output(); err == nil {
			m.database = strings.TrimSpace(string(text))
		}
	}
	if text, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output(); err == nil {
		m.commit = strings.TrimSpace(string(text))
	}
	return m
}

func (m machine) since() time.Duration { return time.Since(m.begun) }

func (m machine) markdown(took time.Duration) string {
	return fmt.Sprintf("Measured on %s at commit `%s`: %d processors (%s), %d GiB, Linux %s, %s, %s with fsync on. It took %s.\n",
		m.begun.UTC().Format(time.DateOnly), m.commit, m.processors, m.model, m.memory>>30, m.kernel, m.language, m.database,
		took.Round(time.Minute))
}

// howMeasured explains the figures.
const howMeasured = `
## How it is measured

The service is the program as it is shipped, with everything that protects it on: sessions, CSRF tokens, limits (raised,
but at work), an idempotency key on every start. Its Postgres writes to this machine's own disk with fsync on. The model
is a stand-in that streams OpenAI's format at a fixed pace; every token says when it was due, and its delay counts from
then until the client has read it. Load is open-loop, except where "in flight" says that it is closed.

* **CPU** is user and system time from the process table, over a window in which the load stands: no sign-ups, no starts.
  Postgres' is that of all its processes. The column "others' CPUs" tells how many processors were busy with what is no
  part of the measurement (Redis and the kernel's own threads included): a round with much of it is noise.
* **Tokens an event** above one show a service that gathers: the busier it is, the more tokens share an event, a row and
  a write, so the CPU of a token falls while its delay grows. The two are to be read together.
* **Memory** is the proportional set size, the difference between load and rest.
* **P3** compares percentiles: that of the service minus that of asking the model directly, under the same load on it.
* **P4** counts a start when the head of the answer has come, which is after its commit; the turn's call of the model
  falls into the same time, its end does not. The baseline is one prepared statement that writes the same rows, run by
  pgbench as superuser (no row-level security), with the number of clients that is best.
* **P5** is ` + "`BenchmarkJournal`" + ` of the package persistence.
* **P7** compares events a second of the server's CPU, at 30 events a second to each reader.
* **P9** drops every connection, waits a second, in which each log goes on, and brings all readers back in one moment; a
  reader has resumed when the first event after its cursor has come.
* **P1** and **P2** are measured at two loads. A round counts at (a) only if an event carries at most 1.1 tokens, at (b) only
  if the p99 of the token delay is at most 100 ms; up to twice as many rounds are measured as have to count. A goal without a
  round that counts is missed.
* **P8** is the median of the measurements. Each searches from where the one before it ended, up or down, for the highest load
  whose token delay has a p99 of at most 100 ms.
* **P10** runs a million turns of one token each; the goal compares the live heap after 10,000 and after all of them.
* **P14** counts what is kept of a finished turn: its one row, compressed. While it runs a turn has one row an append. The
  text is drawn word by word with the frequencies of a language, so that no passage occurs twice and two turns differ.

` + "`make bench`" + ` ends with an error when a "must" is missed whose goal is not excused by name (` + "`excuses`" + ` in ` + "`cmd/loadtest/report.go`" + `).
A run with ` + "`--quick`" + ` has short windows and small crowds (P10: 1,000 turns against 100); it judges no goal and writes no document.
`
