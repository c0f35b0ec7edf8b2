// Package ownership defines what nodes and stores of every kind of work exchange about its owners: the registration of a node, its
// lease, and the error of a write whose owner has changed. None of it is published.
//
// It imports only package protocol, knows no kind of work, and decides nothing.
package ownership

import (
	"errors"
	"time"

	"turnstone/protocol"
)

// ErrFenced means that another epoch owns the work, or that the node was marked dead. The caller stops: it emits no
// event and acknowledges no command.
var ErrFenced = errors.New("fenced: owned by another epoch")

// NewNode is a node that registers.
type NewNode struct {
	NodeID  protocol.NodeID
	Address string // for other nodes to reach it; empty: they cannot
	Build   string // commit of the binary; empty: not known
	// Predecessor is the node that ran on the same data folder before: the lock of the folder proves that it has
	// stopped. It is nil when unknown.
	Predecessor *protocol.NodeID
}

// NodeLoad is what a node reports whenever it renews its lease.
type NodeLoad struct {
	Live     int // turns that run on it
	Capacity int // live turns up to which it accepts new ones; 0: no limit
}

// Lease is the lease of a node that is not dead.
type Lease struct {
	Renewals  int64 // increases with each renewal
	Address   string
	Build     string
	Load      NodeLoad
	Draining  bool
	StartedAt time.Time
}
