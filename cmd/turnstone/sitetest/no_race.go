//go:build !race

package sitetest

// raceDetector: this test, and so the program that it starts, is built with the race detector.
const raceDetector = false
