package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the process table's times; Linux has shown hundredths of a second to programs for ever.
const tick = 10 * time.Millisecond

// procStat is what we read of /proc/<pid>/stat.
type procStat struct {
	parent      int
	own, reaped time.Duration // user and system time; reaped is that of children that have ended
}

var errStat = errors.New("/proc: a line that is no stat")

// parseStat reads a stat line. The name in brackets may hold anything, so fields count from the last bracket.
func parseStat(line []byte) (procStat, error) {
	at := bytes.LastIndexByte(line, ')')
	if at < 0 {
		return procStat{}, errStat
	}
	const parent, utime, stime, cutime, cstime = 1, 11, 12, 13, 14 // behind the name, from 0
	fields := strings.Fields(string(line[at+1:]))
	if len(fields) <= cstime {
		return procStat{}, errStat
	}
	var numbers [cstime + 1]int64
	for _, i := range []int{parent, utime, stime, cutime, cstime} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return procStat{}, errStat
		}
		numbers[i] = n
	}
	return procStat{
		parent: int(numbers[parent]),
		own:    time.Duration(numbers[utime]+numbers[stime]) * tick,
		reaped: time.Duration(numbers[cutime]+numbers[cstime]) * tick,
	}, nil
}

func readStat(pid int) (procStat, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(line)
}

// cpuOf is the time that a process has used.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := readStat(pid)
	return stat.own, err
}

// cpuOfFamily adds the time of the children, those that have ended included.
func cpuOfFamily(pid int) (time.Duration, error) {
	head, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	total := head.own + head.reaped
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		line, err := os.ReadFile(entry)
		if err != nil {
			continue // gone meanwhile: it is reaped into the head at the next look
		}
		if stat, err := parseStat(line); err == nil && stat.parent == pid {
			total += stat.own
		}
	}
	return total, nil
}

// busy is the time that all processors of the machine have worked.
func busy() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(text)
}

func parseBusy(text []byte) (time.Duration, error) {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	fields := strings.Fields(string(line))
	const idle, iowait, guest = 4, 5, 9 // guest time is counted as user time already
	if len(fields) <= iowait || fields[0] != "cpu" {
		return 0, errStat
	}
	var total time.Duration
	for i, field := range fields {
		if i == 0 || i == idle || i == iowait || i >= guest {
			continue
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, errStat
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}

// memoryOf is the proportional set size of a process, in bytes: what would be free without it.
func memoryOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	return parseMemory(text, "Pss:")
}

// settledMemory is memoryOf once the process gives nothing back any more: what it needed to start returns to the system
// within seconds, and would be taken for something that the load has freed.
func settledMemory(ctx context.Context, pid int) (now int64, err error) {
	const look, still, patience = 500 * time.Millisecond, 6, 30 * time.Second
	least := int64(math.MaxInt64)
	for unmoved, until := 0, time.Now().Add(patience); unmoved < still && time.Now().Before(until); unmoved++ {
		if now, err = memoryOf(pid); err != nil {
			return 0, err
		}
		if now < least-least/settledPart {
			least, unmoved = now, 0
		}
		if err := wait(ctx, look); err != nil {
			return 0, err
		}
	}
	return now, nil
}

// settledPart of a process's memory is what counts as giving back.
const settledPart = 200

func parseMemory(text []byte, name string) (int64, error) {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == name && fields[2] == "kB" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("%w: no %s", errStat, name)
}
