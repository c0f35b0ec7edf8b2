// Package timelimit multiplies the time limits that the service sets for its dependencies: Postgres, Redis, the scanner,
// the object store, the model, and the work of this process that requests wait for. In the product the factor is 1. The test
// build sets a larger one with the linker, so that a slow host computer does not make a healthy service refuse a request, and every
// refusal in a test is a finding:
//
//	go test -ldflags=-X=turnstone/protocol/timelimit.factor=8 ./...
//
// Neither a setting nor the environment can change it. Limits of ten seconds and more are not multiplied, unless they contain
// one that is; nor are intervals, pauses and the lease of a node. This package imports nothing of this module.
package timelimit

import (
	"fmt"
	"strconv"
	"time"
)

// factor is set by the linker.
var factor = "1"

var multiple = parse(factor)

// Of returns the limit that applies in this build.
func Of(limit time.Duration) time.Duration { return limit * multiple }

// OfShort returns the limit that applies in this build, for limits of less than half a second. The test build multiplies them
// three times as much: on a busy host computer, a process may not run for a second.
func OfShort(limit time.Duration) time.Duration {
	if multiple == 1 {
		return limit
	}
	return 3 * Of(limit)
}

// Setting returns the limit that applies in this build as a value of a Postgres setting, in milliseconds.
func Setting(limit time.Duration) string {
	return strconv.FormatInt(Of(limit).Milliseconds(), 10)
}

// LinkerFlag returns the flag with which go build gives another program the factor of this one.
func LinkerFlag() string { return "-X=turnstone/protocol/timelimit.factor=" + factor }

func parse(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("the linker set the factor of time limits to %q (want an integer from 1)", text))
	}
	return time.Duration(n)
}
