// Package bench measures the performance goals against their baselines, in alternating rounds, and writes
// docs/benchmarks.md. goals.go has the goals with their bounds, and the known misses.
package bench
