//go:build race

package child

import "golang.org/x/sys/unix"

// MaxAddresses is no limit: the race detector reserves terabytes of addresses. The limit of resident memory applies.
const MaxAddresses = unix.RLIM_INFINITY
