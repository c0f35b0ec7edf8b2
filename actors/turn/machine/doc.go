// Package machine decides what a turn does. It is pure: it uses no clock, context, lock, log, store, goroutine or
// randomness; time and identifiers are passed in as values. Package turn runs it: it feeds triggers to a Batch,
// stores the decision, and performs its effects.
//
//	triggers ──▶ Batch ──▶ events, records, effects
//	               │
//	            Machine: changed by events and records only, so a log restores it
//
// A trigger records what has happened; then advance decides how the turn continues.
//
// The legal transitions are the tables of package protocol; an illegal one is a defect, and panics before anything is
// stored.
package machine
