// Package jobs runs background work that a transaction has enqueued, or that is due at regular times. Only this
// package starts the workers of river; the packages of persistence declare their jobs and enqueue them with its types. Turns are
// not jobs: actors run them.
package jobs
