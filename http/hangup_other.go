//go:build !linux

package http

import "net"

// hangups finds out which clients closed their side of a connection, with a goroutine each.
type hangups struct{ gone func(place) }

func newHangups(gone func(place)) (*hangups, error) { return &hangups{gone}, nil }

// add watches a connection until it is closed. What a client still says is not heard.
func (h *hangups) add(conn net.Conn, p place) error {
	go func() {
		var one [1]byte
		for {
			if _, err := conn.Read(one[:]); err != nil {
				h.gone(p)
				return
			}
		}
	}()
	return nil
}

func (h *hangups) close() {}
