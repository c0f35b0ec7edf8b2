package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
)

// memoryShare is the share of the container's memory limit that the Go runtime uses as its soft memory limit. Above the
// soft limit it collects garbage more often.
const memoryShare = 0.8

// limitMemory sets the Go runtime's soft memory limit below the memory limit of the container. If the operator sets
// GOMEMLIMIT, that value applies instead.
func limitMemory(environment map[string]string) {
	if environment["GOMEMLIMIT"] != "" {
		return
	}
	if limit := containerLimit("/sys/fs/cgroup", "/proc/self/cgroup"); limit > 0 {
		debug.SetMemoryLimit(int64(memoryShare * float64(limit)))
	}
}

// containerLimit returns the smallest memory limit, in bytes, between this process's control group and the root. It
// supports both versions of cgroups and returns 0 if there is no limit.
func containerLimit(root, self string) int64 {
	limit := int64(math.MaxInt64)
	for _, path := range limitFiles(root, self) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if value, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && value > 0 {
			limit = min(limit, value) // "max" is not a number
		}
	}
	const unlimited = math.MaxInt64 >> 12 << 12 // how version 1 represents "no limit"
	if limit >= unlimited {
		return 0
	}
	return limit
}

func limitFiles(root, self string) []string {
	files := []string{filepath.Join(root, "memory.max"), filepath.Join(root, "memory", "memory.limit_in_bytes")}
	text, err := os.ReadFile(self)
	if err != nil {
		return files
	}
	for line := range strings.Lines(string(text)) {
		_, group, found := strings.Cut(strings.TrimSpace(line), "::")
		for ; found && group != "/" && group != "." && group != ""; group = filepath.Dir(group) {
			files = append(files, filepath.Join(root, group, "memory.max"))
		}
	}
	return files
}

const (
	// heapFloor is the least number of bytes that the heap may grow by between two collections. By default Go collects when the heap
	// has doubled; a node whose live heap is 12 MB would collect several times a second under load.
	heapFloor = 64 << 20
	// heapFloorShare is the largest share of the soft memory limit that the floor may take.
	heapFloorShare = 0.1

	defaultGrowth = 100 // percent, the default of Go
)

// keepHeapFloor lets the heap grow by at least heapFloor between two collections, and by defaultGrowth percent if that is more. It
// returns at once: the percentage is adjusted after each collection, until the returned function is called. If the operator sets GOGC,
// that value applies instead.
func keepHeapFloor(environment map[string]string) (stop func()) {
	if environment["GOGC"] != "" {
		return func() {}
	}
	floor := uint64(heapFloor)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		floor = min(floor, uint64(heapFloorShare*float64(limit)))
	}
	growth := defaultGrowth
	var stopped atomic.Bool
	afterEachCollection(func() bool {
		if stopped.Load() {
			return false
		}
		if wanted := heapGrowth(liveHeap(), floor); wanted != growth {
			growth = wanted
			debug.SetGCPercent(growth)
		}
		return true
	})
	return func() { stopped.Store(true) }
}

// heapGrowth returns the percentage by which a live heap may grow.
func heapGrowth(live, floor uint64) int {
	const step = 25 // a change of the percentage stops the process briefly, so small changes are not made
	percent := 100 * floor / max(live, 1<<20)
	return max(defaultGrowth, int(percent/step*step))
}

// liveHeap returns the bytes that the last collection found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterEachCollection calls do now and after each collection, one call at a time, until it returns false.
func afterEachCollection(do func() bool) {
	type sentinel struct{ next *byte }
	if do() {
		runtime.SetFinalizer(&sentinel{new(byte)}, func(*sentinel) { afterEachCollection(do) })
	}
}
