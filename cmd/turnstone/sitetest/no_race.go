//go:build !race

package sitetest

// raceDetector: the programs that this test starts are built with the race detector, which the test itself does not have.
var raceDetector = false
