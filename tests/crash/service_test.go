package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/proxytest"
)

const (
	// startTimeout and endTimeout are how long a process may take to serve and to end; after that the test fails.
	startTimeout = clocktest.HangGuard
	endTimeout   = clocktest.HangGuard
	// slots is the number of data folders. With two, a successor can start while its predecessor still runs.
	slots = 2
	// maxDead is more than the number of nodes that one process can declare dead, because each slot runs one process at
	// a time.
	maxDead = 64
)

// fleet manages the processes of the service behind one address.
type fleet struct {
	t         *testing.T
	site      *sitetest.Site
	front     *proxytest.Proxy
	addresses [slots]slotAddresses
	folder    string // of the logs
	notes     *findings
	starter   chan func()
	truth     func(claim) claim // queries the database about a transaction

	mu     sync.Mutex
	active *process // guarded by mu; nil while no process serves clients
	count  int      // guarded by mu
}

type slotAddresses struct{ data, public, internal string }

// process is one run of the service.
type process struct {
	cmd   *exec.Cmd
	slot  int
	log   string
	ready chan struct{} // closed when it serves
	dead  chan string   // receives the identifier of each node that the process declares dead
	node  atomic.Value  // its own identifier (string), once it serves
	done  chan struct{} // closed when it has ended
	since atomic.Int64  // time of the fault that the process was started after, in Unix nanoseconds
	truth func(claim) claim

	tookOver bool // whether it has taken over a turn; owned by follow
}

func newFleet(t *testing.T, site *sitetest.Site, front *proxytest.Proxy, folder string, found *findings) *fleet {
	t.Helper()
	f := &fleet{t: t, site: site, front: front, folder: folder, notes: found, starter: make(chan func())}
	for i := range f.addresses {
		f.addresses[i] = slotAddresses{data: filepath.Join(site.Folder, fmt.Sprint(i)), public: sitetest.FreeAddress(t), internal: sitetest.FreeAddress(t)}
	}
	go func() { // the parent-death signal is sent when the thread that started the process ends
		runtime.LockOSThread()
		for start := range f.starter {
			start()
		}
	}()
	t.Cleanup(func() { close(f.starter) })
	return f
}

// start starts the service in a slot; ready is closed when it serves.
func (f *fleet) start(slot int) (*process, error) {
	f.mu.Lock()
	f.count++
	number := f.count
	f.mu.Unlock()
	at := f.addresses[slot]
	cmd := sitetest.Failpoints.Command(f.t, append(f.site.Environment,
		"TURNSTONE_DATA_DIR="+at.data, "TURNSTONE_LISTEN="+at.public, "TURNSTONE_INTERNAL_LISTEN="+at.internal, "TURNSTONE_CONTENT_LISTEN=off"), "serve")
	p := &process{
		cmd: cmd, slot: slot, log: filepath.Join(f.folder, fmt.Sprintf("service-%04d.log", number)),
		ready: make(chan struct{}), dead: make(chan string, maxDead), done: make(chan struct{}),
		truth: f.truth,
	}
	output, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	f.starter <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	go func() {
		p.follow(bufio.NewReader(output), log, f.notes)
		_ = log.Close()
		_ = cmd.Wait() // the exit code is in ProcessState
		close(p.done)
	}()
	return p, nil
}

// logLine contains the fields of the service's log that the tester reads.
type logLine struct {
	Message string    `json:"msg"`
	At      time.Time `json:"at"`
	XID     string    `json:"xid"`
	Status  string    `json:"status"`
	Turn    string    `json:"turn_id"`
	Adopted string    `json:"turn"`
	First   int64     `json:"first"`
	Last    int64     `json:"last"`
	Hash    string    `json:"frames_sha256"`
	Node    string    `json:"node"`
	Dead    string    `json:"dead"`
}

// follow stores the log and records what the tester needs from it.
func (p *process) follow(from *bufio.Reader, log *os.File, found *findings) {
	for {
		line, err := from.ReadBytes('\n')
		_, _ = log.Write(line) // a full disk causes other errors
		p.read(line, found)
		if err != nil {
			return
		}
	}
}

func (p *process) read(line []byte, found *findings) {
	for _, forbidden := range []string{sitetest.Canary, "DATA RACE", "panic", `"msg":"a turn's log cannot be read"`} {
		if bytes.Contains(line, []byte(forbidden)) {
			found.violation(badLog, "%s: %s", filepath.Base(p.log), line)
		}
	}
	var entry logLine
	if json.Unmarshal(line, &entry) != nil {
		return
	}
	switch entry.Message {
	case "turnstone serves":
		p.node.Store(entry.Node)
		close(p.ready)
	case "declared a silent node dead":
		select {
		case p.dead <- entry.Dead:
		default:
		}
	case "turn adopted":
		found.adopt(entry.Adopted)
		if !p.tookOver { // only the first takeover counts
			p.tookOver = true
			found.takeover(time.Since(time.Unix(0, p.since.Load())))
		}
	case "the outcome of a commit was determined":
		found.queries.Go(func() { found.commit(p.truth(claim{XID: entry.XID, Status: entry.Status, At: entry.At})) })
	case "journal: an append whose reply was lost is stored":
		found.append(storedAppend{entry.Turn, entry.First, entry.Last, entry.Hash})
	case "the outcome of a commit is unknown":
		found.undecided()
	}
}

var errEnded = errors.New("the process ended before it served")

// awaitReady waits until the process serves.
func (p *process) awaitReady() error {
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return errEnded
	case <-time.After(startTimeout):
		return fmt.Errorf("the process does not serve within %s", startTimeout)
	}
}

func (p *process) awaitEnd() error {
	select {
	case <-p.done:
		return nil
	case <-time.After(endTimeout):
		return fmt.Errorf("the process does not end within %s", endTimeout)
	}
}

func (p *process) signal(signal syscall.Signal) { _ = p.cmd.Process.Signal(signal) } // it may have ended

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// serve waits until a process is ready, then directs clients to it.
func (f *fleet) serve(p *process) error {
	if err := p.awaitReady(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(p.log), err)
	}
	f.front.Point(f.addresses[p.slot].public)
	f.mu.Lock()
	f.active = p
	f.mu.Unlock()
	return nil
}

// startIn starts a process after a fault and directs clients to it. If the process ends early because a store is down,
// it starts another one, as a supervisor does.
func (f *fleet) startIn(slot int, since time.Time) (*process, error) {
	deadline := time.Now().Add(startTimeout)
	for {
		p, err := f.start(slot)
		if err != nil {
			return nil, err
		}
		p.since.Store(since.UnixNano())
		err = f.serve(p)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errEnded) || time.Now().After(deadline) {
			return nil, err
		}
	}
}

// deactivate takes the active process out of service and returns it.
func (f *fleet) deactivate() *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.active
	f.active = nil
	return p
}

// serving returns the active process, or nil if there is none.
func (f *fleet) serving() *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}

// metrics reads the metrics of the active process.
func (f *fleet) metrics() (map[string]float64, error) {
	p := f.serving()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + f.addresses[p.slot].internal + "/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		var value float64
		if _, err := fmt.Sscan(text, &value); err == nil {
			values[name] = value
		}
	}
	return values, lines.Err()
}

// stop kills the active process.
func (f *fleet) stop() {
	if p := f.deactivate(); p != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}
