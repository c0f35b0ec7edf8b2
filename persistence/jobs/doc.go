// Package jobs runs background work that a transaction has enqueued, or that is due at regular times. It is the only
// package that imports river. Turns are not jobs: actors run them.
package jobs
