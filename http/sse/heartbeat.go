package sse

import "time"

// This file decides when a stream that has nothing to write gets a comment, so that the client and what is between them do not
// take the connection for a broken one.

const (
	heartbeat     = 10 * time.Second // the longest time without output; then a comment is sent
	sweepInterval = time.Second      // the interval at which the streams are checked for a due heartbeat comment
	comment       = ": \n\n"
)

// sweep calls checkHeartbeat of every stream, at each interval, until stop is closed.
func sweep(stop <-chan struct{}, each func(do func(watchedStream))) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			now := time.Since(processStart)
			each(func(open watchedStream) { open.checkHeartbeat(now) })
		}
	}
}

// heartbeatIsDue reports whether nothing was written for about as long as heartbeat. The times are those since processStart.
func heartbeatIsDue(lastWrite, now time.Duration) bool {
	return now-lastWrite >= heartbeat-sweepInterval
}

func appendComment(b []byte) []byte { return append(b, comment...) }
