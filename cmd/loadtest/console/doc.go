// Package console has the output streams of a command, and the line in which a server announces its address to the
// process that started it. Commands use it; packages return errors and print nothing.
package console
