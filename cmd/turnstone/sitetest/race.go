//go:build race

package sitetest

// raceDetector: the programs that this test starts are built with the race detector, as the test is.
var raceDetector = true
