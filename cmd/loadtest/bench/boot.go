package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/site"
)

// boot measures P15: how long `turnstone serve` and `make run` take until they are ready.
func (b *bench) boot(ctx context.Context) error {
	var serve figures.Samples
	for range b.rounds {
		if err := b.site.Service.Stop(); err != nil {
			return err
		}
		took, err := b.site.StartService(ctx)
		if err != nil {
			return err
		}
		serve = append(serve, millis(took))
	}
	b.report.Add(goals.Figure{Goal: "P15 serve", Ours: serve, Unit: "ms", Score: serve})
	if _, err := os.Stat("Makefile"); err != nil {
		return fmt.Errorf("make run: %w", err)
	}
	folder := filepath.Join(b.site.Folder, "dev")
	if _, err := b.makeRun(ctx, folder); err != nil { // the first run creates the database
		return err
	}
	var again figures.Samples
	for range b.pickCount(3, 1) {
		took, err := b.makeRun(ctx, folder)
		if err != nil {
			return err
		}
		again = append(again, millis(took))
	}
	b.report.Add(goals.Figure{Goal: "P15 run", Ours: again, Unit: "ms", Score: again})
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// devReady is part of what `turnstone dev` prints once it serves.
const devReady = "Ctrl-C stops all of it"

// makeRun runs `make run` until it serves, then stops it. It returns the time from start to serving.
func (b *bench) makeRun(ctx context.Context, folder string) (time.Duration, error) {
	public, err := site.FreeAddress(ctx)
	if err != nil {
		return 0, err
	}
	internal, err := site.FreeAddress(ctx)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("make", "--no-print-directory", "run")
	cmd.Env = append(os.Environ(), "TURNSTONE_DATA_DIR="+folder, "TURNSTONE_LISTEN="+public, "TURNSTONE_INTERNAL_LISTEN="+internal, "TURNSTONE_CONTENT_LISTEN=off", "TURNSTONE_DOCS_LISTEN=off")
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer func() { _ = read.Close() }()
	cmd.Stdout, cmd.Stderr = write, write
	begun := time.Now()
	c, err := site.StartChild("make run", cmd)
	_ = write.Close() // the child has its own copy
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = read.Close() })
	defer stop()
	var took time.Duration
	var last string
	for lines := bufio.NewScanner(read); took == 0 && lines.Scan(); {
		if last = lines.Text(); strings.Contains(last, devReady) {
			took = time.Since(begun)
		}
	}
	go func() { _, _ = bufio.NewReader(read).WriteTo(devNull{}) }() // discards its output while it stops
	_ = syscall.Kill(-c.PID(), syscall.SIGINT)                      // like Ctrl-C: to the whole process group
	err = c.Stop()
	if took == 0 {
		return 0, errors.Join(fmt.Errorf("make run does not serve; its last line: %s", last), err)
	}
	return took, err
}

type devNull struct{}

func (devNull) Write(text []byte) (int, error) { return len(text), nil }
