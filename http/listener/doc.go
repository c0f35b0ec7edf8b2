// Package listener serves HTTP on an address, within limits: of connections, of header bytes, and of the time for which
// a client may be idle or read nothing of a response. It also decides which host names requests to a listener may have.
//
// It knows no routes and no sessions.
package listener
