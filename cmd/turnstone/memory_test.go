package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestASmallHeapGrowsByTheFloor(t *testing.T) {
	for live, want := range map[uint64]int{0: 6400, 8 << 20: 800, 32 << 20: 200, 48 << 20: 125, 64 << 20: 100, 1 << 30: 100} {
		if got := heapGrowth(live, heapFloor); got != want {
			t.Errorf("a live heap of %d bytes grows by %d %%, want %d", live, got, want)
		}
	}
}

func TestTheFloorIsTheLeastGrowthOfTheHeap(t *testing.T) {
	runtime.GC()
	keepHeapFloor(map[string]string{"GOGC": "100"})
	if growth := goal() - liveHeap(); growth >= heapFloor {
		t.Fatalf("GOGC applies, but the heap grows by %d bytes", growth)
	}
	t.Cleanup(func() { debug.SetGCPercent(defaultGrowth) })
	t.Cleanup(keepHeapFloor(nil))
	if growth := goal() - liveHeap(); growth < heapFloor*3/4 {
		t.Errorf("the heap grows by %d bytes", growth)
	}
}

func TestTheFloorIsCheckedAfterEachCollection(t *testing.T) {
	calls := make(chan int)
	count := 0
	go afterEachCollection(func() bool {
		count++
		calls <- count
		return count < 3
	})
	for want := 1; want <= 3; want++ {
		if got := <-calls; got != want {
			t.Fatalf("call %d, want %d", got, want)
		}
		runtime.GC()
		runtime.GC() // the first one may have begun before the sentinel was allocated
	}
}

// goal is the size of the heap, in bytes, at which the next collection ends.
func goal() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestTheSmallestLimitOfTheContainerCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		self  string
		want  int64
	}{
		"none":                 {map[string]string{"memory.max": "max"}, "0::/", 0},
		"version 2, container": {map[string]string{"memory.max": "1000000"}, "0::/", 1000000},
		"version 2, nested":    {map[string]string{"a/b/memory.max": "max", "a/memory.max": "500"}, "0::/a/b", 500},
		"version 1":            {map[string]string{"memory/memory.limit_in_bytes": "700\n"}, "5:memory:/x", 700},
		"version 1, none":      {map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, "5:memory:/x", 0},
	} {
		root := t.TempDir()
		for path, text := range c.files {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		self := filepath.Join(root, "self")
		if err := os.WriteFile(self, []byte(c.self+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := containerLimit(root, self); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
