package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryShare of what the container may use is what Go's heap may grow to before it collects harder.
const memoryShare = 0.8

// limitMemory keeps the process below the limit of its container. An operator's GOMEMLIMIT stands.
func limitMemory(environment map[string]string) {
	if environment["GOMEMLIMIT"] != "" {
		return
	}
	if limit := containerLimit("/sys/fs/cgroup", "/proc/self/cgroup"); limit > 0 {
		debug.SetMemoryLimit(int64(memoryShare * float64(limit)))
	}
}

// containerLimit is the smallest limit between our control group and its root, in both versions of cgroups; 0 without.
func containerLimit(root, self string) int64 {
	limit := int64(math.MaxInt64)
	for _, path := range limitFiles(root, self) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if value, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && value > 0 {
			limit = min(limit, value) // "max" is no number
		}
	}
	const unlimited = math.MaxInt64 >> 12 << 12 // how version 1 writes "none"
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
