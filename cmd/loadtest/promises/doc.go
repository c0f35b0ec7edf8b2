// Package promises measures the times that the service promises, on a cluster of three nodes: each from the fault until
// the event that the promise is about, next to the same without a fault. Package bench runs it. It does not
// check whether anything was lost: tests/chaos does.
package promises
