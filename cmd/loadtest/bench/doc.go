// Package bench measures the performance goals against their baselines, in alternating rounds, and compares the costs of
// two programs. It judges no correctness: packages soak and tests/crash do.
package bench
