//go:build !linux

package sse

import "net"

// disconnects detects which clients have closed their side of a connection, with a goroutine for each.
type disconnects struct{ gone func(streamSlot) }

func newDisconnects(gone func(streamSlot)) (*disconnects, error) { return &disconnects{gone}, nil }

// add watches a connection until it is closed. It discards what the client sends.
func (h *disconnects) add(conn net.Conn, slot streamSlot) error {
	go func() {
		var one [1]byte
		for {
			if _, err := conn.Read(one[:]); err != nil {
				h.gone(slot)
				return
			}
		}
	}()
	return nil
}

func (h *disconnects) close() {}
