// Package node keeps a process in the cluster: it renews the lease of the node, declares other nodes dead, and lets its
// hosts adopt, drain and stop their work. It knows no kind of work.
//
//	keeper ── every 620 ms: renew, mark dead nodes ──▶ Directory
//	   └───── then ──▶ Host.Round of every host
//
// Clocks of two host computers are never compared: a node is dead when its counter of renewals was unchanged over several reads
// and over a time on the reading node's own monotonic clock.
package node
