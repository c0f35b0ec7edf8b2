//go:build !race

package sitetest

// raceDetector: this test is built with the race detector. The programs of NewRaceBuild have it nevertheless.
const raceDetector = false
