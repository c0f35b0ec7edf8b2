package http

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"iter"
	stdhttp "net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap/zapcore"

	"turnstone/protocol"
)

// This file contains the checker of the isolation walk. The checker sees every request and every response of three
// sides, none of which may see data of another, and every line that the service logs. It finds data of one side that
// another side receives.
//
// The checker recognizes the data of a side in two ways. Every text that a side writes consists of the side's marker
// and a number, so the checker finds it anywhere: in a body, a header or an event, in upper case or in hexadecimal.
// Identifiers (as TypeID or UUID), tokens and cursors that the service creates belong to the side that receives them
// first. A value that the request contains may also be in the response: it discloses nothing to the requester.

// side is one of the three parties that send requests.
type side int

const (
	amber side = iota
	cobalt
	anonymous // has no session and guesses identifiers and tokens
	sides
)

// markers holds the beginning of every text that a side writes. A marker consists of letters only, so that the
// encodings of JSON and of URLs do not change it.
var markers = [sides]string{"amberfinch", "cobaltheron", "ivorylark"}

func (s side) String() string { return markers[s] }

// canary returns the n-th text of a side. No other text contains it.
func (s side) canary(n int64) string { return fmt.Sprintf("%s%dq", markers[s], n) }

// longRun is the minimum length of a run of characters in a response that counts as a token or a cursor.
const longRun = 40

// maxLeaks limits the leaks that are reported in full. The others are only counted.
const maxLeaks = 10

// sentRequest is a request as the checker sees it.
type sentRequest struct {
	by      side
	line    string // method and URI
	offered string // everything that the client sent except cookies, in lower case
}

// leakChecker finds data of one side that another side receives.
type leakChecker struct {
	// Guarded by mu.
	mu        sync.Mutex
	owners    map[string]side        // the side that received an identifier, a token or a cursor first
	chosen    map[string][sides]bool // the sides that chose an identifier for an object that they create
	stored    map[string][sides]bool // the sides that stored an identifier of any side in an object of their own
	leaks     []string               // the reports of the first maxLeaks leaks
	failures  []string               // the first maxLeaks log lines of requests that failed as unavailable
	found     int                    // the number of leaks
	responses int                    // the number of responses searched
	lines     int                    // the number of log lines searched
	bytes     int                    // the size of the responses searched
	statuses  map[int]int            // the number of responses with a status
	routes    map[string][6]int      // the numbers of responses of a route, by the first digit of the status
}

func newLeakChecker() *leakChecker {
	return &leakChecker{owners: map[string]side{}, chosen: map[string][sides]bool{}, stored: map[string][sides]bool{}, statuses: map[int]int{}, routes: map[string][6]int{}}
}

// leak records a leak.
func (s *leakChecker) leak(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found++; len(s.leaks) < maxLeaks {
		s.leaks = append(s.leaks, fmt.Sprintf(format, args...))
	}
}

// foreign reports whether an identifier belongs to another side and the side did not choose the same one itself.
func (s *leakChecker) foreign(by side, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, known := s.owners[id]
	return known && owner != by && !s.chosen[id][by]
}

// clean reports whether no leak was found.
func (s *leakChecker) clean() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found == 0
}

// report fails the test with the recorded leaks.
func (s *leakChecker) report(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, leak := range s.leaks {
		t.Error(leak)
	}
	if s.found > len(s.leaks) {
		t.Errorf("and %d more leaks", s.found-len(s.leaks))
	}
	if s.found > 0 && len(s.failures) > 0 {
		t.Logf("logged:\n%s", strings.Join(s.failures, ""))
	}
}

// recordChosen records that a side is about to create an object under an identifier that it chose itself. Another side
// may choose the same identifier: two accounts may each have a conversation with it, and neither learns of the other.
func (s *leakChecker) recordChosen(by side, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	choosers := s.chosen[id]
	choosers[by] = true
	s.chosen[id] = choosers
}

// recordStored records that a side is about to store an identifier in an object of its own, which it can read again.
func (s *leakChecker) recordStored(by side, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	storers := s.stored[id]
	storers[by] = true
	s.stored[id] = storers
}

// response searches a whole response: status line, headers and body.
func (s *leakChecker) response(q sentRequest, route string, status int, header stdhttp.Header, body []byte) {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", status, stdhttp.StatusText(status))
	_ = header.Write(&head)
	s.mu.Lock()
	s.responses++
	s.bytes += head.Len() + len(body)
	s.statuses[status]++
	classes := s.routes[route]
	classes[status/100]++
	s.routes[route] = classes
	s.mu.Unlock()
	s.search(q, status, "head", head.Bytes())
	s.search(q, status, "body", body)
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		s.search(q, status, "joined deltas", joinedDeltas(body))
	}
}

func (s *leakChecker) search(q sentRequest, status int, where string, text []byte) {
	lower := bytes.ToLower(text)
	for other := range sides {
		if other == q.by {
			continue
		}
		for canary := range canariesIn(lower, markers[other]) {
			if !strings.Contains(q.offered, canary) {
				s.leak("%s received %q of %s in the %s of %d %s\n%s", q.by, canary, other, where, status, q.line, clipped(text))
			}
		}
		if bytes.Contains(lower, hexMarkers[other]) {
			s.leak("%s received a text of %s in hexadecimal, in the %s of %d %s\n%s", q.by, other, where, status, q.line, clipped(text))
		}
	}
	for run := range runs(text) {
		s.claim(q, status, where, run, text)
	}
}

// claim records the requester as the owner of a run of characters that has no owner yet, and records a leak if the run
// belongs to another side.
func (s *leakChecker) claim(q sentRequest, status int, where, run string, text []byte) {
	id := isTypeID(run)
	if !id && len(run) < longRun && !isUUID(run) {
		return
	}
	if strings.HasPrefix(run, "req_") { // the identifier of this request
		return
	}
	s.mu.Lock()
	owner, known := s.owners[run]
	offered := strings.Contains(q.offered, strings.ToLower(run))
	switch {
	case !known && offered && status >= stdhttp.StatusMultipleChoices: // a guessed value that names nothing
	case !known && !isUUID(run):
		s.owners[run] = q.by
		if id {
			s.owners[uuidOf(run)] = q.by
		}
	case known && owner != q.by && !offered && !s.chosen[run][q.by] && !s.stored[run][q.by]:
		s.mu.Unlock()
		s.leak("%s received %s of %s in the %s of %d %s\n%s", q.by, run, owner, where, status, q.line, clipped(text))
		return
	}
	s.mu.Unlock()
}

// searched returns the numbers of responses and of log lines searched so far.
func (s *leakChecker) searched() (responses, lines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.responses, s.lines
}

// log searches one line of the log. It must not contain a text or a secret of any side, or the identifier of an
// account.
func (s *leakChecker) log(line []byte) {
	s.mu.Lock()
	s.lines++
	if len(s.failures) < maxLeaks && bytes.Contains(line, []byte(`"code":"unavailable"`)) {
		s.failures = append(s.failures, string(clipped(line)))
	}
	s.mu.Unlock()
	lower := bytes.ToLower(line)
	for _, forbidden := range forbiddenInLogs {
		if bytes.Contains(lower, forbidden) {
			s.leak("the log contains %q: %s", forbidden, clipped(line))
		}
	}
	for run := range runs(line) {
		s.mu.Lock()
		owner, known := s.owners[run]
		s.mu.Unlock()
		if known && len(run) >= longRun {
			s.leak("the log contains a token or cursor of %s: %s", owner, clipped(line))
		}
	}
}

var hexMarkers, forbiddenInLogs = func() (inHex [sides][]byte, forbidden [][]byte) {
	for s := range sides {
		inHex[s] = []byte(hex.EncodeToString([]byte(markers[s])))
		forbidden = append(forbidden, []byte(markers[s]), inHex[s])
	}
	for _, secret := range []string{tokenPrefix, "sh1_", protocol.MailTokenPrefix, "__host-", "set-cookie", "acct_", "argon2id"} {
		forbidden = append(forbidden, []byte(secret))
	}
	return inHex, forbidden
}()

// leakCheckerCore is a zapcore.Core that passes each line to the checker.
type leakCheckerCore struct {
	zapcore.Encoder
	checker *leakChecker
}

func newLeakCheckerCore(s *leakChecker) leakCheckerCore {
	return leakCheckerCore{zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "m", NameKey: "n"}), s}
}

func (leakCheckerCore) Enabled(zapcore.Level) bool { return true }
func (leakCheckerCore) Sync() error                { return nil }

func (c leakCheckerCore) With(fields []zapcore.Field) zapcore.Core {
	encoder := c.Encoder.Clone()
	for _, field := range fields {
		field.AddTo(encoder)
	}
	return leakCheckerCore{encoder, c.checker}
}

func (c leakCheckerCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, c)
}

func (c leakCheckerCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	line, err := c.EncodeEntry(entry, fields)
	if err != nil {
		return err
	}
	c.checker.log(line.Bytes())
	line.Free()
	return nil
}

// canariesIn yields each occurrence of a marker in a text, with the number that follows it.
func canariesIn(text []byte, marker string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			i := bytes.Index(text, []byte(marker))
			if i < 0 {
				return
			}
			end := i + len(marker)
			for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == 'q') {
				end++
			}
			if !yield(string(text[i:end])) {
				return
			}
			text = text[end:]
		}
	}
}

// shortestRun is the length of the shortest identifier.
const shortestRun = len("br_") + typeIDDigits

// typeIDDigits is the length of a TypeID without its prefix and the underscore.
const typeIDDigits = 26

// inRun reports for each byte whether identifiers, tokens and cursors may contain it.
var inRun = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	return table
}()

// runs yields the maximal runs of at least shortestRun characters of which identifiers, tokens and cursors consist.
func runs(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < len(text); i++ {
			begin := i
			for i < len(text) && inRun[text[i]] {
				i++
			}
			if i-begin >= shortestRun && !yield(string(text[begin:i])) {
				return
			}
		}
	}
}

func isTypeID(run string) bool {
	at := len(run) - typeIDDigits - 1
	if at < 2 || at > 4 || run[at] != '_' {
		return false
	}
	_, known := parseTypeID(run)
	return known
}

// parseTypeID parses a TypeID with any prefix.
func parseTypeID(text string) (uuid [16]byte, ok bool) {
	prefix, digits, _ := strings.Cut(text, "_")
	if prefix == "" {
		return uuid, false
	}
	var id protocol.AccountID
	err := id.UnmarshalText([]byte("acct_" + digits))
	return [16]byte(id), err == nil
}

func uuidOf(id string) string {
	raw, _ := parseTypeID(id)
	return protocol.NodeID(raw).String()
}

func isUUID(run string) bool {
	return len(run) == 36 && run[8] == '-' && run[13] == '-' && run[18] == '-' && run[23] == '-'
}

// joinedDeltas concatenates the deltas of a stream, so that a text that is split over several events is found too.
func joinedDeltas(body []byte) []byte {
	var joined []byte
	for line := range bytes.SplitSeq(body, []byte{'\n'}) {
		data, isData := bytes.CutPrefix(line, []byte("data: "))
		if !isData || !bytes.Contains(data, []byte(`.delta"`)) {
			continue
		}
		_, payload, err := protocol.DecodeEvent(data)
		if err != nil {
			continue
		}
		switch delta := payload.(type) {
		case *protocol.AnswerDelta:
			joined = append(joined, delta.Delta...)
		case *protocol.CodeDelta:
			joined = append(joined, delta.Delta...)
		case *protocol.ReasoningDelta:
			joined = append(joined, delta.Delta...)
		}
	}
	return joined
}

func clipped(text []byte) []byte {
	const enough = 2000
	if len(text) > enough {
		return append(bytes.Clone(text[:enough]), "…"...)
	}
	return text
}
