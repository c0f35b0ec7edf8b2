package main

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
)

// boot is P15.
func (b *bench) boot(ctx context.Context) error {
	var serve samples
	for range b.rounds {
		if err := b.site.service.stop(); err != nil {
			return err
		}
		took, err := b.site.startService(ctx)
		if err != nil {
			return err
		}
		serve = append(serve, millis(took))
	}
	b.report.add(figure{Goal: "P15 serve", Ours: serve, Unit: "ms", Score: serve})
	if _, err := os.Stat("Makefile"); err != nil {
		return fmt.Errorf("make run: %w", err)
	}
	folder := filepath.Join(b.site.folder, "dev")
	if _, err := b.makeRun(ctx, folder); err != nil { // the first time makes the database
		return err
	}
	var again samples
	for range b.few(3, 1) {
		took, err := b.makeRun(ctx, folder)
		if err != nil {
			return err
		}
		again = append(again, millis(took))
	}
	b.report.add(figure{Goal: "P15 run", Ours: again, Unit: "ms", Score: again})
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// devReady is what `turnstone dev` says when it serves.
const devReady = "Ctrl-C stops all of it"

// makeRun runs `make run` until it serves, then stops it, and answers how long that took.
func (b *bench) makeRun(ctx context.Context, folder string) (time.Duration, error) {
	public, err := freeAddress(ctx)
	if err != nil {
		return 0, err
	}
	internal, err := freeAddress(ctx)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("make", "--no-print-directory", "run")
	cmd.Env = append(os.Environ(), "TURNSTONE_DATA_DIR="+folder, "TURNSTONE_LISTEN="+public, "TURNSTONE_INTERNAL_LISTEN="+internal)
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer func() { _ = read.Close() }()
	cmd.Stdout, cmd.Stderr = write, write
	begun := time.Now()
	c, err := startChild("make run", cmd)
	_ = write.Close() // the child has its own
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
	go func() { _, _ = bufio.NewReader(read).WriteTo(devNull{}) }() // what it says while it stops
	_ = syscall.Kill(-c.pid(), syscall.SIGINT)                      // as Ctrl-C: to all of the group
	err = c.stop()
	if took == 0 {
		return 0, errors.Join(fmt.Errorf("make run does not serve; it said last: %s", last), err)
	}
	return took, err
}

type devNull struct{}

func (devNull) Write(text []byte) (int, error) { return len(text), nil }
