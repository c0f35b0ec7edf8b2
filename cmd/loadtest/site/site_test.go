package site

import (
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestStatFieldsAreParsedAfterTheProcessName(t *testing.T) {
	line := `4711 (a ) name (x) S 17 4711 4711 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 9 0 100 1 1`
	stat, err := parseStat([]byte(line))
	if err != nil || stat.parent != 17 || stat.own != 2*time.Second || stat.reaped != 100*time.Millisecond {
		t.Errorf("%+v %v", stat, err)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 1 2 3", "1 (x) S p 1 1 0 -1 4 1 2 3 4 150 50 7 3"} {
		if stat, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q is parsed as %+v", bad, stat)
		}
	}
}

func TestTheMachineIsBusyWithWhatIsNotIdle(t *testing.T) {
	total, err := parseBusy([]byte("cpu  100 10 50 9999 999 5 6 7 1000 1000\ncpu0 1 1 1 1\n"))
	if want := (100 + 10 + 50 + 5 + 6 + 7) * tick; err != nil || total != want {
		t.Errorf("%s, want %s: %v", total, want, err)
	}
	if _, err := parseBusy([]byte("intr 1 2 3")); err == nil {
		t.Error("a line without processor times was accepted")
	}
}

func TestMemoryIsReadByItsName(t *testing.T) {
	text := []byte("0-1 ---p 0 00:00 0 [rollup]\nRss:   900 kB\nPss:   321 kB\nPss_Dirty: 5 kB\n")
	if n, err := ParseMemory(text, "Pss:"); err != nil || n != 321<<10 {
		t.Errorf("%d %v", n, err)
	}
	if _, err := ParseMemory(text, "Swap:"); err == nil {
		t.Error("a missing field was accepted")
	}
}

// The process table of this host computer has the fields that we read from it.
func TestOurOwnProcessIsMeasured(t *testing.T) {
	own, err := CPUOf(os.Getpid())
	family, errs := CPUOfFamily(os.Getpid())
	if err != nil || errs != nil || own > family {
		t.Errorf("%s of %s: %v %v", own, family, err, errs)
	}
	if n, err := MemoryOf(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("%d bytes: %v", n, err)
	}
}

// LiveHeap counts reachable memory only: no memory that was released before, and no garbage of the measurement itself.
func TestTheLiveHeapIsWhatACollectionLeaves(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/debug/pprof/heap", pprof.Handler("heap"))
	service := httptest.NewServer(mux)
	defer service.Close()
	site := Site{Internal: strings.TrimPrefix(service.URL, "http://")}
	const size, tolerance = 32 << 20, 256 << 10
	buffer := make([]byte, size)
	for _, reachable := range []bool{true, false} {
		if !reachable {
			buffer = nil
		}
		for range 2 {
			measured, err := site.LiveHeap(t.Context())
			var left runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&left)
			if math.Abs(measured-float64(left.HeapAlloc)) > tolerance || err != nil || reachable != (measured > size) {
				t.Errorf("measured %.0f, a collection leaves %d, %d MiB reachable: %t (%v)", measured, left.HeapAlloc, size>>20, reachable, err)
			}
		}
		runtime.KeepAlive(buffer)
	}
}
