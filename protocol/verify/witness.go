package verify

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

// Witness records the bytes of every event that any reader got. Its methods may be called from any goroutine.
type Witness struct {
	mu       sync.Mutex
	logs     map[string]map[int64]sighting // guarded by mu: by log and sequence
	reads    int                           // guarded by mu
	findings Findings                      // guarded by mu
}

type sighting struct {
	data string
	at   time.Time // when the first reader had it
}

// NewWitness returns a witness that has seen nothing.
func NewWitness() *Witness { return &Witness{logs: map[string]map[int64]sighting{}} }

// Saw records an event that a reader of a log got. It returns a Finding if another reader got other bytes, and keeps it
// for Findings.
func (w *Witness) Saw(log string, sequence int64, data string, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	events := w.logs[log]
	if events == nil {
		events = map[int64]sighting{}
		w.logs[log] = events
	}
	before, known := events[sequence]
	if known && before.data != data {
		changed := found(Changed, "event %d of %s was seen as\n%s\nand as\n%s", sequence, log, before.data, data)
		w.findings = append(w.findings, changed)
		return changed
	}
	if !known {
		events[sequence] = sighting{data, at}
	}
	return nil
}

// SawConflict records a response with status 409, which must have the current state.
func (w *Witness) SawConflict(request string, body []byte) {
	var problem struct {
		Current json.RawMessage `json:"current"`
	}
	if json.Unmarshal(body, &problem) == nil && len(problem.Current) > 0 && string(problem.Current) != "null" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, found(Malformed, "%s: the conflict %s has no current state", request, body))
}

// Findings returns the events that two readers got with different bytes, and the conflicts without a current state.
func (w *Witness) Findings() Findings {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.findings)
}

// CheckLog compares the stored log with what readers got before until; the zero time stands for all of it.
func (w *Witness) CheckLog(log string, stored []Event, until time.Time) (compared int, found Findings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.logs[log]
	for _, sequence := range slices.Sorted(maps.Keys(events)) {
		seen := events[sequence]
		if !until.IsZero() && !seen.at.Before(until) {
			continue
		}
		compared++
		switch {
		case sequence < 1 || sequence > int64(len(stored)):
			found.add(NotDurable, "event %d of %s was seen, the log has %d", sequence, log, len(stored))
		case stored[sequence-1].Data != seen.data:
			found.add(Changed, "event %d of %s was seen as\n%s\nand is stored as\n%s", sequence, log, seen.data, stored[sequence-1].Data)
		}
	}
	return compared, found
}

// CheckAll checks that readers of a log got every stored event, and nothing else.
func (w *Witness) CheckAll(log string, stored []Event) Findings {
	compared, found := w.CheckLog(log, stored, time.Time{})
	if compared != len(stored) {
		found.add(Lost, "readers of %s got %d events, the log has %d", log, compared, len(stored))
	}
	return found
}

// Logs returns the logs of which readers got events, sorted.
func (w *Witness) Logs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.logs))
}

// Count returns the number of events of a log that readers got.
func (w *Witness) Count(log string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.logs[log])
}

// CountSince returns the number of events of all logs that the first reader got after a time.
func (w *Witness) CountSince(at time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, events := range w.logs {
		for _, seen := range events {
			if seen.at.After(at) {
				n++
			}
		}
	}
	return n
}

// Reads returns how many events readers got, repeats included.
func (w *Witness) Reads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

// Forget removes all recorded events, which a long run does not need any more. Findings are kept.
func (w *Witness) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.logs)
}
