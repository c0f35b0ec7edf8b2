package node

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/cluster"
	"turnstone/protocol/failpoint"
)

// Draining reports whether the node refuses new work.
func (n *Node) Draining() bool { return n.draining.Load() }

// Drain refuses new work, gives the work in progress until grace to end, and releases the rest at a persisted boundary, so
// that another node, or the next process, continues it.
func (n *Node) Drain(ctx context.Context, grace time.Duration) error {
	n.draining.Store(true)
	n.hosts.startDrain()
	if err := n.config.Directory.Drain(ctx, n.id); err != nil {
		n.log.Warn("marking the node as draining failed", zap.Error(err))
	}
	failpoint.Reached(failpoint.Draining)
	released, err := n.hosts.drain(ctx, grace, n.announceRelease)
	if err != nil {
		return err
	}
	n.log.Info("drained", zap.Int("released", released))
	return nil
}

// kindReleased is the message that a node has released work. Later versions only add fields to its body.
const kindReleased = "released"

type released struct {
	Share int `json:"share"` // pieces of work of each kind that the receiver takes over at once
}

// announceRelease notifies the other nodes that this node has released work, of which each takes over the same share at
// once. Without this message, they find the work in their next rounds.
func (n *Node) announceRelease(count int) {
	if n.link == nil || count == 0 {
		return
	}
	peers := len(n.link.Peers())
	if peers == 0 {
		return
	}
	body, _ := json.Marshal(released{Share: (count + peers - 1) / peers}) // always succeeds
	n.link.Broadcast(kindReleased, body)
}

// takeReleased makes the keeper take over work that another node has released. A message that arrives while the keeper has
// not read an earlier one is dropped: the keeper finds that work in the next round.
func (n *Node) takeReleased(m cluster.Message) {
	var of released
	if json.Unmarshal(m.Body, &of) == nil && of.Share > 0 {
		select {
		case n.released <- of.Share:
		default:
		}
	}
}
