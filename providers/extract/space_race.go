//go:build race

package extract

import "golang.org/x/sys/unix"

// maxSpace is no limit: the race detector reserves terabytes of addresses. The limit of resident memory applies.
const maxSpace = unix.RLIM_INFINITY
