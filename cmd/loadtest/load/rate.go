package load

import (
	"time"
)

// Endless is the number of tokens of a turn that runs until Site.EndTurns makes the model end it.
const Endless = 1 << 30

// The load of P1, P2 and P8.
const (
	TokensPerSecond = 30
	TokenInterval   = time.Second / TokensPerSecond
)

// MaxDelay is the highest p99 of the token delay, in milliseconds, at which a load counts as carried.
const MaxDelay = 100

// EndWithin limits the wait for the streams of a fleet to end.
const EndWithin = 120 * time.Second
