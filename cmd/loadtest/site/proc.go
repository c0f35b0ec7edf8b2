package site

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

	"turnstone/protocol/clock"
)

// tick is the unit of the times in the process table: Linux always reports them to programs in hundredths of a second.
const tick = 10 * time.Millisecond

// procStat holds the fields that we read from /proc/<pid>/stat.
type procStat struct {
	parent      int
	own, reaped time.Duration // user and system time; reaped is the time of children that have ended
}

var errStat = errors.New("/proc: unexpected format")

// parseStat parses a stat line. The name in brackets may contain brackets too, so fields are counted from the last one.
func parseStat(line []byte) (procStat, error) {
	at := bytes.LastIndexByte(line, ')')
	if at < 0 {
		return procStat{}, errStat
	}
	const parent, utime, stime, cutime, cstime = 1, 11, 12, 13, 14 // indexes of the fields after the name
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

// CPUOf returns the CPU time that a process has used.
func CPUOf(pid int) (time.Duration, error) {
	stat, err := readStat(pid)
	return stat.own, err
}

// CPUOfFamily returns the CPU time of a process and its children, including children that have ended.
func CPUOfFamily(pid int) (time.Duration, error) {
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
			continue // it has ended: the next reading includes it in the parent's reaped time
		}
		if stat, err := parseStat(line); err == nil && stat.parent == pid {
			total += stat.own
		}
	}
	return total, nil
}

// busy returns the time that all processors of the host computer have been busy.
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
	const idle, iowait, guest = 4, 5, 9 // guest time is already part of user time
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

// MemoryOf returns the proportional set size (PSS) of a process in bytes.
func MemoryOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	return ParseMemory(text, "Pss:")
}

// SettledMemory waits until a process no longer releases memory and returns MemoryOf. Memory that was needed only to
// start is released within seconds. Without the wait, this release would hide memory that the load takes.
func SettledMemory(ctx context.Context, pid int) (now int64, err error) {
	const interval, enough, timeout = 500 * time.Millisecond, 6, 30 * time.Second
	least := int64(math.MaxInt64)
	for unmoved, until := 0, time.Now().Add(timeout); unmoved < enough && time.Now().Before(until); unmoved++ {
		if now, err = MemoryOf(pid); err != nil {
			return 0, err
		}
		if now < least-least/settledPart {
			least, unmoved = now, 0
		}
		if err := clock.Sleep(ctx, interval); err != nil {
			return 0, err
		}
	}
	return now, nil
}

// A process that releases more than one part in settledPart of its memory has not settled.
const settledPart = 200

// MemoryResolution returns the part of the memory of a settled process that may still change without a load.
func MemoryResolution(settled int64) int64 { return settled / settledPart }

// ParseMemory returns the value of a line such as "Pss:  12 kB", in bytes.
func ParseMemory(text []byte, name string) (int64, error) {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == name && fields[2] == "kB" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("%w: no %s", errStat, name)
}
