// Package scale computes what a site of a given size needs. It has a table of measured costs (costs.go), a simulation of
// the path of a token with queues at the processors, the journal and the log of Postgres (simulation.go), and a plan that
// multiplies both (plan.go). The command writes the result into docs/scaling.md, with the difference between the
// simulation and the measurements that exist.
//
// The simulation is pure: it has no clock, starts no goroutine, and decides the same from the same seed. It imports only
// package figures and the console, and is called by the command of package main.
package scale
