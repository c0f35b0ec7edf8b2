package child

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const maxOpen = 64 // descriptors

// Restrict limits this process and its successors: its processor time in seconds, and its address space in bytes. A written
// file would have no bytes, so nothing can be stored.
func Restrict(cpu, space uint64) error {
	return restrict(map[int]uint64{unix.RLIMIT_CPU: cpu, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: maxOpen, unix.RLIMIT_AS: space})
}

// RestrictWriting is Restrict for a program that has to write files, of at most size bytes each.
func RestrictWriting(cpu, size uint64) error {
	const manyOpen = 512
	return restrict(map[int]uint64{unix.RLIMIT_CPU: cpu, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: size, unix.RLIMIT_NOFILE: manyOpen})
}

func restrict(limits map[int]uint64) error {
	for resource, most := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limiting the process: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("limiting the process: %w", err)
	}
	return nil
}
