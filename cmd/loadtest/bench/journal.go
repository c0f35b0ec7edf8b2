package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
)

// journal measures P5. It runs BenchmarkJournal of persistence/journal, which alternates between grouped appends and
// appends one by one; only that package can append one by one.
func (b *bench) journal(ctx context.Context) error {
	folder, err := filepath.Abs(filepath.Dir(b.site.Folder))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkJournal$", "-benchtime="+b.journalTime(),
		"-count="+strconv.Itoa(b.rounds), "./persistence/journal")
	cmd.Env = append(os.Environ(), "TMPDIR="+folder) // on this host computer's own disk
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test -bench: %w: %.1000s", err, output)
	}
	rows := parseBenchmark(string(output))
	if len(rows) == 0 {
		return errors.New("BenchmarkJournal printed no figures")
	}
	var grouped, alone, ratio, p99 figures.Samples
	table := figures.NewTable("round", "grouped/s", "one by one/s", "ratio", "p50 ms", "p99", "appends per statement")
	for i, row := range rows {
		grouped, alone = append(grouped, row["grouped/s"]), append(alone, row["alone/s"])
		ratio, p99 = append(ratio, row["ratio"]), append(p99, row["p99-ms"])
		table.Add(i+1, row["grouped/s"], row["alone/s"], row["ratio"], row["p50-ms"], row["p99-ms"], row["appends/statement"])
	}
	b.report.Add(goals.Figure{Goal: "P5", Ours: grouped, Baseline: alone, Unit: "/s", Score: ratio})
	b.report.Add(goals.Figure{Goal: "P5 p99", Ours: p99, Unit: "ms", Score: p99})
	b.report.Detail("P5", "fenced appends of 128 turns, each of which waits for its append", table)
	return nil
}

func (b *bench) journalTime() string {
	if b.quick {
		return "2x"
	}
	return "8x"
}

// parseBenchmark returns the figures of each line that a Go benchmark printed, keyed by their units.
func parseBenchmark(output string) []map[string]float64 {
	var rows []map[string]float64
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		row := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				row[fields[i+1]] = value
			}
		}
		rows = append(rows, row)
	}
	return rows
}
