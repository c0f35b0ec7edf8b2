// Package listener serves HTTP on an address, within limits: of connections, of header bytes, and of the time for which
// a client may be idle, read nothing of a response or send nothing of a body. It also decides which host names requests
// to a listener may have, and responds to requests that are not valid HTTP/1.
//
// It knows no routes and no sessions.
package listener
