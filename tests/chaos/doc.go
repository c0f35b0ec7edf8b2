// Package chaos runs a cluster of three nodes under a steady load of live turns, and takes nodes away: kill -9, a pause of
// 15 s, a drain, a node that joins, and a rolling deploy. The package contains only tests.
//
// TestCluster starts the built program three times, on one Postgres and one Redis. Every turn is started, steered,
// cancelled and read through nodes that usually do not run it. A turn has two readers on different nodes. After each
// fault, the test waits until every turn has continued, and measures the longest pause that a reader saw.
//
// What it checks: every turn ends once, with contiguous events that are the same for all readers; every accepted input
// is applied or returned once; a cancel that was acknowledged ends the turn; no event of an earlier owner follows one of a
// later owner; a node that joins moves no turn; outside of the faults, callers get no error, and during them nothing but
// 503 and broken connections. The pauses after a kill and of a drain have limits.
//
// `make chaos` runs it for three minutes with the program as it is shipped, and prints its figures. `make test` runs it once
// with the race detector, which takes about a minute.
// `make upgrade OLD=…` starts the nodes with the program of an earlier commit: the deploy replaces it by the current one,
// the other faults happen while both run, and the next deploy returns to the old one.
package chaos
