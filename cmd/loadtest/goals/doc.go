// Package goals has the performance goals with their bounds and the known misses, and writes what was measured of them into
// docs/benchmarks.md. It measures nothing.
package goals
