// Package code runs JavaScript that a model has written, in limited child processes.
//
//	Engine   starts a child process for each task, limits it, and checks what it prints
//	Child    runs in that process: it restricts itself, then executes the code with goja
//
// The code is hostile: it may have been written by the text of a stranger. It has no network, no file system, no modules and no
// clock; what it computes depends only on its task. A child that uses too much ends itself with the text that it has printed so
// far, and is killed if it does not. No part of this package interrupts the code from within, so code cannot prevent its end.
// Package tool is the caller; package cmd starts Child.
package code
