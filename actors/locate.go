package actors

import (
	"context"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Commands and readers find a turn only with locate and, when it does not run here, with locateOwner.

// locate returns the entry of a turn's actor on this node. It is nil when the turn does not run here, or belongs to
// another account. It reads nothing from the store.
func (n *Node) locate(account protocol.AccountID, turn protocol.TurnID) *liveTurn {
	if live := n.registry.find(turn); live != nil && live.account == account {
		return live
	}
	return nil
}

// locateOwner reads the durable state of a turn that does not run here, and reports whether another running node owns
// the turn. Otherwise the turn has ended, or waits for a node to adopt it.
func (n *Node) locateOwner(
	ctx context.Context, account protocol.AccountID, turn protocol.TurnID,
) (head turnlog.Head, elsewhere bool, err error) {
	head, err = n.turnLog.TurnHead(ctx, account, turn)
	if err != nil {
		return head, false, err
	}
	return head, head.Owner != nil && !head.OwnerDead && *head.Owner != n.id, nil
}
