package main

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A goal that is missed ends a run with an error, unless its name is excused; one without a figure that counts is missed.
func TestAMissedGoalIsAnError(t *testing.T) {
	var r report
	r.add(figure{Goal: "P1 (a)", Score: samples{1.5}})
	r.add(figure{Goal: "P1 (b)"})                        // no round counted
	r.add(figure{Goal: "P9 queries", Score: samples{5}}) // only an aim
	r.add(figure{Goal: "P14 bytes", Score: samples{61}})
	missed := strings.Join(r.unmet(), "\n")
	if !strings.Contains(missed, "P1 (b): –") || !strings.Contains(missed, "P14 bytes: 61 B, must be ≤ 60 B") || strings.Count(missed, "\n") != 1 {
		t.Errorf("missed: %s", missed)
	}
	defer delete(excuses, "P14 bytes")
	excuses["P14 bytes"] = excuse{60.5, "the test says so"}
	if len(r.unmet()) != 2 || strings.Contains(r.list().markdown(), "the test says so") {
		t.Error("a score beyond the bound of its excuse is excused")
	}
	excuses["P14 bytes"] = excuse{61, "the test says so"}
	if missed := r.unmet(); len(missed) != 1 || !strings.Contains(r.list().markdown(), "not met, excused: the test says so") {
		t.Errorf("excused, missed: %v\n%s", missed, r.list().markdown())
	}
}

func TestEveryExcuseNamesAGoal(t *testing.T) {
	for id, e := range excuses {
		i := slices.IndexFunc(goals, func(g goal) bool { return g.id == id })
		if e.reason == "" || i < 0 || goals[i].must.met(e.bound) {
			t.Errorf("%q is excused up to %v because %q", id, e.bound, e.reason)
		}
	}
}

func TestARoundCountsOnlyAtItsLoad(t *testing.T) {
	of := func(tokens, events int64, p99 float64) (w window) {
		w.Tokens, w.Events, w.Delay.P99 = tokens, events, p99
		return w
	}
	for _, c := range []struct {
		load   relayLoad
		window window
		counts bool
	}{
		{relayLoads[0], of(110, 100, 500), true},
		{relayLoads[0], of(111, 100, 5), false},
		{relayLoads[1], of(300, 100, 100), true},
		{relayLoads[1], of(100, 100, 101), false},
	} {
		if got := c.load.counts(c.window); got != c.counts {
			t.Errorf("%s %+v counts: %t", c.load.part, c.window, got)
		}
	}
}

func TestTheCapacityIsFoundFromWhereverTheSearchBegins(t *testing.T) {
	for carried := -1; carried < 5; carried++ {
		for at := range 5 {
			tried := map[int]bool{}
			found, err := climb(5, at, func(level int) (bool, error) {
				if tried[level] {
					t.Errorf("level %d was tried twice", level)
				}
				tried[level] = true
				return level <= carried, nil
			})
			if err != nil || found != carried {
				t.Errorf("from %d: found %d, want %d (%v)", at, found, carried, err)
			}
		}
	}
}

// An answer in prose has no passage that it repeats, and no two answers are the same.
func TestProseDoesNotRepeatItself(t *testing.T) {
	prose := func(seed uint64) (text []byte) {
		for i := range 2000 {
			text = appendWord(text, seed, i)
		}
		return text
	}
	text, other, passage := prose(1), prose(2), 40
	if bytes.Equal(text, other) || !json.Valid([]byte(`"`+string(text)+`"`)) {
		t.Error("two answers are the same, or no JSON")
	}
	seen := map[string]bool{}
	for at := 0; at+passage <= len(text); at++ {
		part := string(text[at : at+passage])
		if seen[part] {
			t.Fatalf("%q stands there twice", part)
		}
		seen[part] = true
	}
}

// What is measured as live is live: neither what was dropped before counts, nor the garbage of asking.
func TestTheLiveHeapIsWhatACollectionLeaves(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/debug/pprof/heap", pprof.Handler("heap"))
	service := httptest.NewServer(mux)
	defer service.Close()
	asked := site{internal: strings.TrimPrefix(service.URL, "http://")}
	const held, tolerance = 32 << 20, 256 << 10
	kept := make([]byte, held)
	for _, holds := range []bool{true, false} {
		if !holds {
			kept = nil
		}
		for range 2 {
			measured, err := asked.liveHeap(t.Context())
			var left runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&left)
			if math.Abs(measured-float64(left.HeapAlloc)) > tolerance || err != nil || holds != (measured > held) {
				t.Errorf("measured %.0f, and a collection leaves %d, with %d MiB held: %t (%v)", measured, left.HeapAlloc, held>>20, holds, err)
			}
		}
		runtime.KeepAlive(kept)
	}
}
