// Package ready checks whether the dependencies of a node work. Each dependency is checked by a Probe that the program
// supplies; the package itself connects to nothing.
package ready
