// Package site starts the environment of a measurement: Postgres, Redis, the model, the service and the baselines, each
// as a separate process with its data on this host computer's own disk. It also measures them from outside: CPU time and
// memory from the process table, rows through psql, metrics and heap through the internal listener.
//
// It sends no load.
package site
