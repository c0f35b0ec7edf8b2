//go:build race

package sitetest

// raceDetector: this test is built with the race detector, and so are the programs that it starts.
const raceDetector = true
