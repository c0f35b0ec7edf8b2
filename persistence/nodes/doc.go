// Package nodes stores the leases of the nodes of a cluster, and the ownership of turns that depends on them: it renews
// leases, marks nodes dead, and lets a node claim the turns of a dead one.
//
// It runs as the engine, across accounts, on the engine's connections: the lease of a busy node does not wait behind
// requests. Package turns checks the owner and its epoch in every statement that writes to a turn.
package nodes
