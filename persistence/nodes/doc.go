// Package nodes stores the leases of the nodes of a cluster: it renews leases, marks nodes dead, and marks nodes that are to drain.
//
// It runs as the engine, across accounts, on the engine's connections: the lease of a busy node does not wait behind
// requests. The packages of durable work (turns, files, research) let nodes claim the work of a dead one.
package nodes
