package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
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
