// Package child runs hostile work in limited child processes of this program: reading files, running code.
//
//	Program   starts a child without an environment and, where the system allows it, without a network
//	Process   is a running child, which is killed with its process group when it exceeds its limits
//	Restrict  is called in the child, before it looks at its input
//
// A child gets its input in a file without a name, as its standard input, and prints its result. Whatever it prints is as
// hostile as its input. Packages extract and code are the callers. The package does not interpret
// what a child prints, and does not decide how often one runs.
package child
