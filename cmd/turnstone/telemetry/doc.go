// Package telemetry measures and traces a node: the metrics behind /metrics, and the exporter of traces. It wraps the
// model, the tools, the scanner and the limiter, collects the counters of other packages, and registers all of them.
//
// No label has a value that a client sends, or an identifier. docs/metrics.md lists every metric; a test compares the
// page with the registry. Only the command that wires the service uses this package. It makes no decision of the
// service: without it, everything works the same.
package telemetry
