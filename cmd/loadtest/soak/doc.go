// Package soak runs a load for a long time while it injects faults. It checks that nothing is lost, repeated or
// changed, and that memory, descriptors, goroutines and connections do not grow; it writes docs/soak.md.
// It judges no speed.
package soak
