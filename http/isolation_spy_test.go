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

// The checker of the isolation walk. It is told every request and every answer of three sides that know nothing of each
// other, and every line that the service logs, and finds what one side was shown of another.
//
// It knows a side's things in two ways. Whatever a side writes carries its marker, followed by a number, so a text is
// recognised wherever it turns up: in a body, a header, an event, spelled in capitals, in hexadecimal. And whatever the
// service makes for a side and tells it first is that side's from then on: identifiers (as TypeID or as UUID), tokens,
// cursors. A thing that the request itself brought may be in the answer: it tells the asker nothing.

// side is one of the three who ask.
type side int

const (
	amber side = iota
	cobalt
	nobody // asks without a session, and guesses
	sides
)

// markers begin every text that a side writes. They are letters only, so that no encoding of JSON or of an address
// changes them.
var markers = [sides]string{"amberfinch", "cobaltheron", "ivorylark"}

func (s side) String() string { return markers[s] }

// canary is a text of a side that occurs nowhere else.
func (s side) canary(n int64) string { return fmt.Sprintf("%s%dq", markers[s], n) }

// longRun is how long a run of characters is that is taken for a token or a cursor when the service makes it.
const longRun = 40

// maxLeaks is how many are told: one is enough to look for, hundreds only hide it.
const maxLeaks = 10

// question is a request as the checker sees it.
type question struct {
	by      side
	line    string // method and address
	offered string // everything that the client sent, in small letters
}

// spy finds what crosses from one side to another.
type spy struct {
	mu        sync.Mutex
	owners    map[string]side        // guarded by mu: of identifiers, tokens, cursors
	chosen    map[string][sides]bool // guarded by mu: identifiers that a side chose itself for what it makes
	leaks     []string               // guarded by mu
	found     int                    // guarded by mu
	responses int                    // guarded by mu
	lines     int                    // guarded by mu: of the log
	bytes     int                    // guarded by mu: of responses
	statuses  map[int]int            // guarded by mu
	routes    map[string][6]int      // guarded by mu: answers of each route, by class of status
}

func newSpy() *spy {
	return &spy{owners: map[string]side{}, chosen: map[string][sides]bool{}, statuses: map[int]int{}, routes: map[string][6]int{}}
}

// leak notes a finding.
func (s *spy) leak(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found++; len(s.leaks) < maxLeaks {
		s.leaks = append(s.leaks, fmt.Sprintf(format, args...))
	}
}

// foreign says whether an identifier is another's and no name that the side chose as well.
func (s *spy) foreign(by side, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, known := s.owners[id]
	return known && owner != by && !s.chosen[id][by]
}

func (s *spy) clean() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found == 0
}

// report fails the test with what was found.
func (s *spy) report(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, leak := range s.leaks {
		t.Error(leak)
	}
	if s.found > len(s.leaks) {
		t.Errorf("and %d more", s.found-len(s.leaks))
	}
}

// chose is told before a request that makes something under a name of the client's choice, which may be another's as
// well: two accounts may have a conversation of one name, and neither learns of the other's.
func (s *spy) chose(by side, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := s.chosen[id]
	who[by] = true
	s.chosen[id] = who
}

// response searches one whole answer: status line, headers, body.
func (s *spy) response(q question, route string, status int, header stdhttp.Header, body []byte) {
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

func (s *spy) search(q question, status int, where string, text []byte) {
	small := bytes.ToLower(text)
	for other := range sides {
		if other == q.by {
			continue
		}
		for word := range words(small, markers[other]) {
			if !strings.Contains(q.offered, word) {
				s.leak("%s was shown %q of %s in the %s of %d %s\n%s", q.by, word, other, where, status, q.line, clipped(text))
			}
		}
		if bytes.Contains(small, hexMarkers[other]) {
			s.leak("%s was shown a text of %s in hexadecimal in the %s of %d %s\n%s", q.by, other, where, status, q.line, clipped(text))
		}
	}
	for run := range runs(text) {
		s.claim(q, status, where, run, text)
	}
}

// claim takes a run of characters for the asker's, or finds that it is another's.
func (s *spy) claim(q question, status int, where, run string, text []byte) {
	id := isTypeID(run)
	if !id && len(run) < longRun && !isUUID(run) {
		return
	}
	if strings.HasPrefix(run, "req_") { // made for this answer
		return
	}
	s.mu.Lock()
	owner, known := s.owners[run]
	offered := strings.Contains(q.offered, strings.ToLower(run))
	switch {
	case !known && offered && status >= stdhttp.StatusMultipleChoices: // a guess that names nothing
	case !known && !isUUID(run):
		s.owners[run] = q.by
		if id {
			s.owners[uuidOf(run)] = q.by
		}
	case known && owner != q.by && !offered && !s.chosen[run][q.by]:
		s.mu.Unlock()
		s.leak("%s was shown %s of %s in the %s of %d %s\n%s", q.by, run, owner, where, status, q.line, clipped(text))
		return
	}
	s.mu.Unlock()
}

// searched counts what was looked at so far.
func (s *spy) searched() (responses, lines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.responses, s.lines
}

// log searches one line of the log: it may hold no text and no secret of anybody, and name no account.
func (s *spy) log(line []byte) {
	s.mu.Lock()
	s.lines++
	s.mu.Unlock()
	small := bytes.ToLower(line)
	for _, forbidden := range forbiddenInLogs {
		if bytes.Contains(small, forbidden) {
			s.leak("the log holds %q: %s", forbidden, clipped(line))
		}
	}
	for run := range runs(line) {
		s.mu.Lock()
		owner, known := s.owners[run]
		s.mu.Unlock()
		if known && len(run) >= longRun {
			s.leak("the log holds a token or cursor of %s: %s", owner, clipped(line))
		}
	}
}

var hexMarkers, forbiddenInLogs = func() (inHex [sides][]byte, forbidden [][]byte) {
	for s := range sides {
		inHex[s] = []byte(hex.EncodeToString([]byte(markers[s])))
		forbidden = append(forbidden, []byte(markers[s]), inHex[s])
	}
	for _, secret := range []string{tokenPrefix, "sh1_", "__host-", "set-cookie", "acct_", "argon2id"} {
		forbidden = append(forbidden, []byte(secret))
	}
	return inHex, forbidden
}()

// spyCore makes the spy a log.
type spyCore struct {
	zapcore.Encoder
	spy *spy
}

func newSpyCore(s *spy) spyCore {
	return spyCore{zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "m", NameKey: "n"}), s}
}

func (spyCore) Enabled(zapcore.Level) bool { return true }
func (spyCore) Sync() error                { return nil }

func (c spyCore) With(fields []zapcore.Field) zapcore.Core {
	encoder := c.Encoder.Clone()
	for _, field := range fields {
		field.AddTo(encoder)
	}
	return spyCore{encoder, c.spy}
}

func (c spyCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, c)
}

func (c spyCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	line, err := c.EncodeEntry(entry, fields)
	if err != nil {
		return err
	}
	c.spy.log(line.Bytes())
	line.Free()
	return nil
}

// words are the texts that begin with a marker.
func words(text []byte, marker string) iter.Seq[string] {
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

const typeIDDigits = 26

var inRun = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	return table
}()

// runs are the longest stretches of what identifiers, tokens and cursors are spelled with.
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

// parseTypeID reads an identifier of any kind.
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

// joinedDeltas puts the pieces of a stream's texts together: a text that is cut into events is a text all the same.
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
