// Package clamdtest gives tests a real ClamAV daemon, with the configuration that docs/files.md gives to operators and a
// database with one signature, that of the EICAR test file. Only tests import it.
package clamdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded/process"
)

const (
	program = "/usr/sbin/clamd" // of Debian's package clamav-daemon; not on the PATH of every user
	page    = "docs/files.md"

	pollEvery = 10 * time.Millisecond
)

// Daemon is a running daemon with a folder of its own. Its methods are for the goroutine of the test.
type Daemon struct {
	Address string // for clamd.New and TURNSTONE_CLAMD_ADDRESS

	t      testing.TB
	folder string
	server *process.Process
}

// Start starts a daemon, and ends it with the test. age is the age of its signatures.
func Start(t testing.TB, age time.Duration) *Daemon {
	t.Helper()
	folder, err := os.MkdirTemp("", "turnstone-clamd-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d := &Daemon{Address: filepath.Join(folder, "clamd.sock"), t: t, folder: folder}
	configuration := recommended(t) + fmt.Sprintf("LocalSocket %s\nDatabaseDirectory %s\nTemporaryDirectory %s\nForeground yes\n",
		d.Address, d.path("database"), d.path("temporary"))
	database, err := signatures(time.Now().Add(-age))
	if err = errors.Join(err, os.Mkdir(d.path("database"), 0o700), os.Mkdir(d.path("temporary"), 0o700),
		os.WriteFile(d.path("database/daily.cud"), database, 0o600), os.WriteFile(d.path("clamd.conf"), []byte(configuration), 0o600)); err != nil {
		t.Fatal(err)
	}
	d.Restart()
	t.Cleanup(d.Kill)
	return d
}

var (
	configurationBlock = regexp.MustCompile("(?s)```conf\n(.*?)```")
	localSocket        = regexp.MustCompile(`(?m)^LocalSocket .*\n`)
)

// recommended returns the configuration of docs/files.md without its address.
func recommended(t testing.TB) string {
	t.Helper()
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), page))
	if err != nil {
		t.Fatal(err)
	}
	block := configurationBlock.FindSubmatch(text)
	if block == nil {
		t.Fatalf("%s has no configuration of clamd", page)
	}
	return localSocket.ReplaceAllString(string(block[1]), "")
}

func (d *Daemon) path(name string) string { return filepath.Join(d.folder, name) }

// Restart starts the daemon again after Kill, at the same address, and returns when it responds.
func (d *Daemon) Restart() {
	d.t.Helper()
	var log bytes.Buffer
	command := exec.Command(program, "--config-file", d.path("clamd.conf"))
	command.Dir, command.Env = d.folder, []string{"TZ=" + os.Getenv("TZ")} // its replies have the local time
	command.Stdout, command.Stderr = &log, &log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if d.server, err = process.Start(command); err != nil {
		d.t.Fatalf("%v; Debian's package is clamav-daemon", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	switch waited := clocktest.Poll(ctx, pollEvery, func() bool { return d.responds() || d.server.Exited() }); {
	case waited != nil:
		d.Kill()
		d.t.Fatalf("clamd does not respond: %s", log.String())
	case d.server.Exited():
		d.t.Fatalf("clamd ended: %v: %s", d.server.Err(), log.String())
	}
}

func (d *Daemon) responds() bool {
	connection, err := net.Dial("unix", d.Address)
	if err != nil {
		return false
	}
	defer func() { _ = connection.Close() }()
	if _, err := connection.Write([]byte("zPING\x00")); err != nil {
		return false
	}
	reply := make([]byte, 5)
	n, _ := connection.Read(reply) // without a reply it is not ready
	return string(reply[:n]) == "PONG\x00"
}

// Kill ends the daemon with SIGKILL and waits until it has ended.
func (d *Daemon) Kill() {
	d.t.Helper()
	if err := d.server.Stop(context.Background()); err != nil {
		d.t.Fatal(err)
	}
}

// Pause suspends the daemon: connections hang. Resume, or Kill, ends that.
func (d *Daemon) Pause() { d.signal(syscall.SIGSTOP) }

// Resume continues a paused daemon.
func (d *Daemon) Resume() { d.signal(syscall.SIGCONT) }

func (d *Daemon) signal(signal syscall.Signal) {
	d.t.Helper()
	if err := syscall.Kill(d.server.PID(), signal); err != nil {
		d.t.Fatal(err)
	}
}
