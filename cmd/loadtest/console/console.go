package console

import (
	"fmt"
	"io"
	"net"
)

// Console holds the output streams that every command writes to.
type Console struct {
	Stdout, Stderr io.Writer
}

// Say prints a progress message to stderr.
func (p *Console) Say(format string, args ...any) { fmt.Fprintf(p.Stderr, format+"\n", args...) }

// Announcement precedes the address on which a child listens, in the line that it prints.
const Announcement = "listening on "

// Announce prints the address on which a child listens.
func Announce(p *Console, listener net.Listener) {
	fmt.Fprintln(p.Stdout, Announcement+listener.Addr().String())
}
