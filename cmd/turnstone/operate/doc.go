// Package operate has the commands with which an operator manages accounts, turns, nodes and the certificates of a cluster.
//
// A command changes accounts in the database, also while no service runs, and reaches turns and nodes through the internal
// listener of a running one (package admin). It prints its result on stdout. The program's command line contains these
// commands and provides their environment.
package operate
