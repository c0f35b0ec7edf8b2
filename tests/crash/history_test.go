package crash

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// The kinds of operations.
const (
	opStart   = "start"  // POST /chat
	opCreate  = "create" // POST /conversations
	opSteer   = "steer"
	opApply   = "apply" // apply_now for the input with the same key
	opCancel  = "cancel"
	opDecide  = "decide"  // the approval with the key; the text is the decision
	opEnqueue = "enqueue" // POST …/follow-ups
	opRelease = "release" // PATCH of a held follow-up
	opDraft   = "draft"
	opTitle   = "title"
	opLook    = "look" // GET of a conversation's page
	opPage    = "page" // GET of its messages
	opFlood   = "flood"
	opTask    = "research"    // POST …/research-tasks
	opStop    = "cancel task" // the task is in Turn
	opShare   = "share"
	opRevoke  = "revoke" // of the share with the same text
	opUpload  = "upload" // POST /files/uploads
	opFile    = "file"   // the content of the upload with the same text

	opImport   = "import"   // of an export; the text is in the titles of its conversations
	opImported = "imported" // a conversation of an import that has ended, by its title
	opBranch   = "branch"   // the text is its name
	opFork     = "fork"     // the text is its title, the sequence its number of messages
	opErase    = "erase"    // the account in the text
)

// operation is one request of a client and its outcome. Times count from the start of the run.
type operation struct {
	Kind         string        `json:"kind"`
	Client       string        `json:"client"`
	Began        time.Duration `json:"began"`
	Ended        time.Duration `json:"ended"`
	Conversation string        `json:"conversation,omitempty"`
	Turn         string        `json:"turn,omitempty"`
	Key          string        `json:"key,omitempty"`  // Idempotency-Key or client_steering_id
	Text         string        `json:"text,omitempty"` // what was written
	IfMatch      *int64        `json:"if_match,omitempty"`
	Queue        bool          `json:"queue,omitempty"` // start: queue behind a live turn

	Status   int    `json:"status"` // 0: no response
	Code     string `json:"code,omitempty"`
	Unknown  bool   `json:"unknown,omitempty"` // the response says that the outcome is unknown
	ID       string `json:"id,omitempty"`      // identifier of what was created or found
	Replayed bool   `json:"replayed,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
	SHA256   string `json:"sha256,omitempty"` // of what was sent

	Draft, Title               string `json:",omitempty"` // the current values, as the response reports them
	DraftVersion, TitleVersion int64  `json:",omitempty"`
}

func (o *operation) acknowledged() bool { return o.Status >= 200 && o.Status < 300 }

func (o *operation) reads() bool { return o.Kind == opLook || o.Kind == opPage || o.Kind == opImported }

// open reports whether the operation may have happened although no response confirms it.
func (o *operation) open() bool { return o.Status == 0 || o.Status == 503 && o.Unknown }

// outcome is what the client knows about the effect of the operation.
func (o *operation) outcome() verify.Outcome {
	switch {
	case o.acknowledged():
		return verify.Acknowledged
	case o.open():
		return verify.Unknown
	case o.Code == string(protocol.CodeSteeringClosed), o.Code == string(protocol.CodeApprovalDecided):
		return verify.Closed
	}
	return verify.Refused
}

// repeatable reports whether a client repeats a request with a key: its outcome is unknown, or it had no effect yet.
func (o *operation) repeatable() bool {
	return o.Status == 0 || o.Status == http.StatusServiceUnavailable || o.Code == string(protocol.CodeIdempotencyBusy)
}

// history records what the clients of a round did and saw.
type history struct {
	mu         sync.Mutex
	operations []operation // guarded by mu
	views      []view      // guarded by mu: messages of turns, in pages and snapshots
	file       *os.File
	lines      *bufio.Writer // guarded by mu
}

func newHistory(path string) (*history, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &history{file: file, lines: bufio.NewWriter(file)}, nil
}

func (h *history) add(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
	h.write(o)
}

// all returns the operations so far.
func (h *history) all() []operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.operations)
}

// acknowledgedWrites returns the number of acknowledged writes so far.
func (h *history) acknowledgedWrites() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.operations {
		if o := &h.operations[i]; o.acknowledged() && !o.reads() {
			n++
		}
	}
	return n
}

// write adds a line to the file. The caller holds mu.
func (h *history) write(line any) {
	if h.lines == nil {
		return
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	_, _ = h.lines.Write(append(text, '\n')) // close reports a full disk
}

// readEvent is a line of the history file about an event that was read.
type readEvent struct {
	Kind     string `json:"kind"`
	Turn     string `json:"turn"`
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash"`
}

// saw writes that a reader received an event; the witness of the users compares it.
func (h *history) saw(turn string, sequence int64, data string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.write(readEvent{"event", turn, sequence, fmt.Sprintf("%x", sha256.Sum256([]byte(data)))[:16]})
}

// view is a message as a page or a snapshot showed it.
type view struct {
	Turn   string `json:"turn"`
	Where  string `json:"where"`
	Covers int64  `json:"covers"` // the parts contain the events up to this one; 0: all events of an ended turn
	Status string `json:"status"`
	Parts  string `json:"parts"`
}

// showed records a message that a client got. Of a user's message it records only the text.
func (h *history) showed(where string, m *protocol.Message) error {
	if m.TurnID == nil {
		return fmt.Errorf("message %s of %s has no turn", m.MessageID, where)
	}
	text, err := json.Marshal(append([]protocol.Part{}, m.Parts...))
	if err != nil {
		return err
	}
	v := view{Turn: m.TurnID.String(), Where: where, Covers: m.CoversSequence, Status: string(m.Status), Parts: string(text)}
	if m.Role == protocol.RoleUser {
		v.Status = asQuestion
		if len(m.Parts) > 0 {
			v.Parts = m.Parts[0].Text
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.views = append(h.views, v)
	h.write(v)
	return nil
}

// asQuestion is the status of a view of a user's message.
const asQuestion = "question"

// close closes the file and returns the operations, sorted by their start.
func (h *history) close() ([]operation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.lines.Flush()
	if closed := h.file.Close(); err == nil {
		err = closed
	}
	slices.SortStableFunc(h.operations, func(a, b operation) int { return int(a.Began - b.Began) })
	return h.operations, err
}

// The kinds of violations. A run must find none.
const (
	lost              = string(verify.Lost)
	gaps              = string(verify.Gaps)
	changedBytes      = string(verify.Changed)
	doubleTerminal    = string(verify.Ends)
	notDurable        = string(verify.NotDurable)
	doubledEffects    = string(verify.Doubled)
	brokenOrder       = string(verify.Order)         // I6, I7, I8: events in a wrong order
	notWhole          = string(verify.NotWhole)      // I2: an effect that is stored partially
	notIdempotent     = string(verify.NotIdempotent) // I12
	limiterOpen       = "limiter open"               // I13
	notAtRest         = string(verify.NotAtRest)     // I4, I15
	untruthful        = "untruthful"                 // an unknown commit that was resolved wrongly
	illegalHistory    = "illegal history"            // found by porcupine
	badResponse       = string(verify.Malformed)     // a response that no contract allows: a 500, a malformed stream
	badLog            = "bad log"                    // user text, a data race or a panic
	endedUnexpectedly = "ended by itself"            // a process that ended without a fault
	undecided         = "undecided"                  // a history that porcupine could not decide
	wrongPage         = string(verify.WrongMessage)  // a page or a snapshot that differs from the log
	untruthful503     = string(verify.Untruthful)    // a refused command that had an effect
	stillReadable     = "still readable"             // I10
	tooFew            = "too few"                    // a run in which too little happened to prove anything
)

// findings collects the findings of a run.
//
// Concurrency: its methods may be called from any goroutine.
type findings struct {
	queries sync.WaitGroup // of the actual status of transactions

	mu         sync.Mutex
	violations map[string][]string // guarded by mu
	claims     []claim             // guarded by mu: what the service logged about transactions
	appends    []storedAppend      // guarded by mu: appends that the service found stored
	unresolved int                 // guarded by mu
	histories  verdict             // guarded by mu
	takeovers  []time.Duration     // guarded by mu: from a fault to the first turn that was taken over
	adopted    map[string]bool     // guarded by mu: turns of the round that were taken over, as far as they were logged
}

func newFindings() *findings {
	return &findings{violations: map[string][]string{}, adopted: map[string]bool{}}
}

func (n *findings) violation(kind, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.violations[kind] = append(n.violations[kind], fmt.Sprintf(format, args...))
}

// claim is the status that the service logged for a transaction, and the one that the database reported right after.
type claim struct {
	XID, Status string
	At          time.Time
	Truth       string
	Asked       time.Time // when the database reported Truth; zero: the query failed
}

func (n *findings) commit(c claim) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claims = append(n.claims, c)
}

// storedAppend is an append that the service found stored: its events and the hash of their frames.
type storedAppend struct {
	Turn        string
	First, Last int64
	Hash        string
}

func (n *findings) append(one storedAppend) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.appends = append(n.appends, one)
}

func (n *findings) linear(v verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.histories.operations += v.operations
	n.histories.histories += v.histories
	n.histories.undecided += v.undecided
}

func (n *findings) takeover(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takeovers = append(n.takeovers, took)
}

// adopt records that a turn was taken over.
func (n *findings) adopt(turn string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.adopted[turn] = true
}

func (n *findings) adoptedTurns() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.adopted)
}

// beginRound resets what is counted for each round.
func (n *findings) beginRound() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.adopted)
}

func (n *findings) undecided() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unresolved++
}

func (n *findings) count(kind string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.violations[kind])
}

func (n *findings) kinds() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.violations))
}

func (n *findings) clean() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.violations) == 0
}
