package admin

import (
	"context"

	"turnstone/actors/turn"
	"turnstone/persistence/turns"
	"turnstone/protocol"
)

// Turn is the output of `turn show`: the turn as its account sees it, and the node that owns it.
type Turn struct {
	protocol.Turn
	AccountID protocol.AccountID `json:"account_id"`
	Node      string             `json:"node"`
	NodeDead  bool               `json:"node_dead"`
	Epoch     int32              `json:"epoch"`
}

// maxOperatorRead bounds one read of a log, in bytes.
const maxOperatorRead = 1 << 20

// turnsOf implements Turns for turns of any account.
type turnsOf struct {
	turns *turns.Store
	host  *turn.Host
}

// NewTurns returns the turns of a store. host follows and cancels them.
func NewTurns(store *turns.Store, host *turn.Host) Turns { return turnsOf{store, host} }

// Show implements Turns.
func (o turnsOf) Show(ctx context.Context, turn protocol.TurnID) (*Turn, error) {
	account, err := o.turns.AccountOfTurn(ctx, turn)
	if err != nil {
		return nil, err
	}
	seen, err := o.turns.GetTurn(ctx, account, turn)
	if err != nil {
		return nil, err
	}
	head, err := o.turns.TurnHead(ctx, account, turn)
	if err != nil {
		return nil, err
	}
	shown := &Turn{Turn: *seen, AccountID: account, NodeDead: head.OwnerDead, Epoch: head.Epoch}
	if head.Owner != nil {
		shown.Node = head.Owner.String()
	}
	return shown, nil
}

// Events implements Turns.
func (o turnsOf) Events(ctx context.Context, turn protocol.TurnID, follow bool, write func(frames []byte) error) error {
	account, err := o.turns.AccountOfTurn(ctx, turn)
	if err != nil {
		return err
	}
	if follow {
		return o.follow(ctx, account, turn, write)
	}
	for after := int64(0); ; {
		frames, last, err := o.turns.TurnFrames(ctx, account, turn, after, maxOperatorRead)
		if err != nil || len(frames) == 0 {
			return err
		}
		if err := write(frames); err != nil {
			return err
		}
		after = last
	}
}

func (o turnsOf) follow(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, write func(frames []byte) error) error {
	reader := o.host.Follow(account, turn, 0)
	for {
		frames, ended, err := reader.Next(ctx, nil)
		if err == nil && len(frames) > 0 {
			err = write(frames)
		}
		if err != nil || ended {
			return err
		}
	}
}

// Cancel implements Turns. The cancel is durable when it returns.
func (o turnsOf) Cancel(ctx context.Context, turn protocol.TurnID, force bool) error {
	account, err := o.turns.AccountOfTurn(ctx, turn)
	if err != nil {
		return err
	}
	head, err := o.turns.TurnHead(ctx, account, turn)
	if err != nil {
		return err
	}
	if head.State.Terminal() {
		return protocol.Errorf(protocol.CodeSteeringClosed, "the turn has ended: %s", head.State)
	}
	if force {
		return o.host.ForceCancel(ctx, account, turn)
	}
	return o.host.CancelTurn(ctx, account, turn, protocol.CancelledByOperator, protocol.CancelTurn)
}
