package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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
)

const (
	// startPatience and endPatience are how long a process may take to serve and to end; the test fails after that.
	startPatience = 60 * time.Second
	endPatience   = 60 * time.Second
	// slots are data folders: a successor may start in the other one while its predecessor still lives.
	slots = 2
	// maxDead is more nodes than one process can declare dead: each slot runs one process at a time.
	maxDead = 64
)

// program has, beside the service, a tool with an effect.
var program = sitetest.NewBuild("turnstone-failpoint", "-tags=failpoint")

// fleet is the processes of the service behind one address.
type fleet struct {
	t       *testing.T
	site    *sitetest.Site
	front   *relay
	places  [slots]place
	folder  string // of the logs
	notes   *notes
	starter chan func()
	truth   func(claim) claim // asks the database about a transaction

	mu     sync.Mutex
	active *process // guarded by mu; nil while none serves
	count  int      // guarded by mu
}

type place struct{ data, public, internal string }

// process is one run of the service.
type process struct {
	cmd   *exec.Cmd
	slot  int
	log   string
	ready chan struct{} // closed when it serves
	dead  chan string   // gets the identifier of each node that it declares dead
	node  atomic.Value  // its own identifier (string), once it serves
	done  chan struct{} // closed when it has ended
	since atomic.Int64  // when the fault came that it follows
	truth func(claim) claim

	tookOver bool // a turn; owned by follow
}

func newFleet(t *testing.T, site *sitetest.Site, front *relay, folder string, found *notes) *fleet {
	t.Helper()
	f := &fleet{t: t, site: site, front: front, folder: folder, notes: found, starter: make(chan func())}
	for i := range f.places {
		f.places[i] = place{data: filepath.Join(site.Folder, fmt.Sprint(i)), public: freeAddress(t), internal: freeAddress(t)}
	}
	go func() { // the parent-death signal belongs to the thread that starts a process
		runtime.LockOSThread()
		for start := range f.starter {
			start()
		}
	}()
	t.Cleanup(func() { close(f.starter) })
	return f
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// start runs the service in a slot; ready tells when it serves.
func (f *fleet) start(slot int) (*process, error) {
	f.mu.Lock()
	f.count++
	number := f.count
	f.mu.Unlock()
	at := f.places[slot]
	cmd := program.Command(f.t, append(f.site.Environment,
		"TURNSTONE_DATA_DIR="+at.data, "TURNSTONE_LISTEN="+at.public, "TURNSTONE_INTERNAL_LISTEN="+at.internal), "serve")
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
		_ = cmd.Wait() // the exit code stands in ProcessState
		close(p.done)
	}()
	return p, nil
}

// logLine is what the tester reads of the service's log.
type logLine struct {
	Message string    `json:"msg"`
	At      time.Time `json:"at"`
	XID     string    `json:"xid"`
	Status  string    `json:"status"`
	Turn    string    `json:"turn_id"`
	First   int64     `json:"first"`
	Last    int64     `json:"last"`
	Hash    string    `json:"frames_sha256"`
	Node    string    `json:"node"`
	Dead    string    `json:"dead"`
}

// follow keeps the log and notes what it tells.
func (p *process) follow(from *bufio.Reader, log *os.File, found *notes) {
	for {
		line, err := from.ReadBytes('\n')
		_, _ = log.Write(line) // a full disk shows elsewhere
		p.read(line, found)
		if err != nil {
			return
		}
	}
}

func (p *process) read(line []byte, found *notes) {
	for _, forbidden := range []string{sitetest.Canary, "DATA RACE", "panic", `"msg":"a turn's log cannot be read"`} {
		if bytes.Contains(line, []byte(forbidden)) {
			found.violation(badLog, "%s: %s", filepath.Base(p.log), line)
		}
	}
	var said logLine
	if json.Unmarshal(line, &said) != nil {
		return
	}
	switch said.Message {
	case "turnstone serves":
		p.node.Store(said.Node)
		close(p.ready)
	case "declared a silent node dead":
		select {
		case p.dead <- said.Dead:
		default:
		}
	case "turn adopted":
		if !p.tookOver { // the first one counts
			p.tookOver = true
			found.takeover(time.Since(time.Unix(0, p.since.Load())))
		}
	case "the outcome of a commit was found out":
		found.asking.Go(func() { found.commit(p.truth(claim{XID: said.XID, Status: said.Status, At: said.At})) })
	case "journal: an append without an answer is stored":
		found.append(storedAppend{said.Turn, said.First, said.Last, said.Hash})
	case "outcome of a commit unknown":
		found.undecided()
	}
}

var errEnded = errors.New("it ended before it served")

// awaitReady waits until the process serves.
func (p *process) awaitReady() error {
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return errEnded
	case <-time.After(startPatience):
		return fmt.Errorf("it does not serve within %s", startPatience)
	}
}

func (p *process) awaitEnd() error {
	select {
	case <-p.done:
		return nil
	case <-time.After(endPatience):
		return fmt.Errorf("it does not end within %s", endPatience)
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

// serve makes a process the one that clients reach, when it is ready.
func (f *fleet) serve(p *process) error {
	if err := p.awaitReady(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(p.log), err)
	}
	f.front.point(f.places[p.slot].public)
	f.mu.Lock()
	f.active = p
	f.mu.Unlock()
	return nil
}

// startIn starts a process that clients reach, after a fault. A start that meets a fault of the stores is tried again, as
// a supervisor does.
func (f *fleet) startIn(slot int, since time.Time) (*process, error) {
	deadline := time.Now().Add(startPatience)
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

// leave takes the active process out of service and answers it.
func (f *fleet) leave() *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.active
	f.active = nil
	return p
}

// serving is the active process, nil when there is none.
func (f *fleet) serving() *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}

// metrics reads the active process's own counters.
func (f *fleet) metrics() (map[string]float64, error) {
	p := f.serving()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + f.places[p.slot].internal + "/metrics")
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

// stop ends everything.
func (f *fleet) stop() {
	if p := f.leave(); p != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}
