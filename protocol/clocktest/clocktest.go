// Package clocktest has the time after which a test gives up, and what it does until then: it awaits a signal, or polls another process.
// Only tests and packages for tests import it.
package clocktest

import "time"

// HangGuard is how long a test waits for something that has to happen before it reports a hang. It judges nothing: it is at
// least ten times as long as the slowest wait that was seen (26 s, on a host computer with four times the load of its processors),
// so a test that reaches it would not end otherwise.
const HangGuard = 5 * time.Minute
