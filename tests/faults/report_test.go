package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// report collects the measurements of the rows for the output of go test -v.
type report struct {
	mu       sync.Mutex
	refusals map[string]refusal // guarded by mu; the slowest of each link and fault
	asked    int                // guarded by mu
	cells    int                // guarded by mu
}

type refusal struct {
	link, fault, request string
	took                 time.Duration
	count                int
	noticed, recovered   time.Duration // by /ready
}

func newReport() *report { return &report{refusals: map[string]refusal{}} }

func (r *report) update(link, fault string, change func(*refusal)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := link + "/" + fault
	one := r.refusals[key]
	one.link, one.fault = link, fault
	change(&one)
	r.refusals[key] = one
}

func (r *report) addResponse(link, fault, request string, refused bool, took time.Duration) {
	r.mu.Lock()
	r.asked++
	r.mu.Unlock()
	if !refused {
		return
	}
	r.update(link, fault, func(one *refusal) {
		if one.count++; took > one.took {
			one.took, one.request = took, request
		}
	})
}

func (r *report) cell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cells++
}

// print writes the table, and the slowest refusal of each link.
func (r *report) print(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := make([]refusal, 0, len(r.refusals))
	slowest := map[string]refusal{}
	for _, one := range r.refusals {
		rows = append(rows, one)
		if one.took > slowest[one.link].took {
			slowest[one.link] = one
		}
	}
	slices.SortFunc(rows, func(a, b refusal) int {
		return cmp.Or(cmp.Compare(a.link, b.link), cmp.Compare(a.fault, b.fault))
	})
	var text strings.Builder
	fmt.Fprintf(&text, "%d cells, %d requests\n", r.cells, r.asked)
	for _, one := range rows {
		fmt.Fprintf(&text, "%-9s %-10s %3d refused, slowest %8s %-38s  /ready: down after %8s, up after %8s\n", one.link, one.fault, one.count,
			round(one.took), one.request, round(one.noticed), round(one.recovered))
	}
	for _, name := range slices.Sorted(maps.Keys(slowest)) {
		fmt.Fprintf(&text, "slowest refusal, %s: %s (%s, %s)\n", name, round(slowest[name].took), slowest[name].fault, slowest[name].request)
	}
	t.Log("\n" + text.String())
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
