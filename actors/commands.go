package actors

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"turnstone/protocol"
)

const (
	commandTry   = 2 * time.Second        // for one answer of a living actor: its commit included
	commandWait  = 8 * time.Second        // in all: longer than a takeover
	commandPause = 250 * time.Millisecond // between two looks at what is durable, while the turn does not live here
)

// Command asks a turn, wherever it lives, and waits for what was decided and stored. A command may be asked again with
// the same identifiers: it takes effect once. When no answer comes in time nothing is known, and the error says so:
// protocol.CodeUnavailable.
func (n *Node) Command(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, c *Command) (protocol.SteeringReceipt, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	for {
		var known *stream
		if live := n.live(turn); live != nil && live.account == account {
			known = live.stream
			receipt, err := n.askActor(ctx, live, c)
			if !errors.Is(err, errGone) {
				return receipt, err
			}
		}
		receipt, decided, err := n.fromRecord(ctx, account, turn, c)
		if decided || err != nil {
			return receipt, err
		}
		if n.arrival(ctx, turn, known, commandPause) != nil {
			return receipt, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the turn's owner was not reached in time", RetryAfter: 1}
		}
	}
}

// arrival waits until the turn comes to life here, other than by the known stream, or the time is over.
func (n *Node) arrival(ctx context.Context, turn protocol.TurnID, known *stream, atMost time.Duration) error {
	told := make(signal, 1)
	if !n.await(turn, known, told) {
		return nil
	}
	defer n.forsake(turn, told)
	timer := time.AfterFunc(atMost, told.Wake)
	defer timer.Stop()
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *Node) askActor(ctx context.Context, live *liveTurn, c *Command) (protocol.SteeringReceipt, error) {
	question := ask{command: c, reply: make(chan answer, 1)}
	n.system.Root.Send(live.pid, question)
	timer := time.NewTimer(commandTry)
	defer timer.Stop()
	select {
	case a := <-question.reply:
		return a.receipt, a.err
	case <-ctx.Done():
	case <-timer.C:
	}
	return protocol.SteeringReceipt{}, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "outcome_unknown", RetryAfter: 1}
}

// fromRecord answers for a turn that does not live here, from what is durable. decided is false while somebody else is
// to decide.
func (n *Node) fromRecord(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, c *Command) (receipt protocol.SteeringReceipt, decided bool, err error) {
	head, err := n.turnLog.TurnHead(ctx, account, turn)
	if err != nil {
		return receipt, false, err
	}
	kind, keys := c.records()
	for _, key := range keys {
		record, err := n.turnLog.TurnRecord(ctx, account, turn, kind, key)
		if err != nil {
			return receipt, false, err
		}
		if record == nil {
			continue
		}
		if receipt, decided, err = replayedReceipt(turn, record, c); decided || err != nil {
			return receipt, decided, err
		}
	}
	if head.State.Terminal() {
		return receipt, true, steeringClosed(turn, head.State)
	}
	return receipt, false, nil
}

// records names the records that a command like this one leaves.
func (c *Command) records() (kind string, keys []string) {
	switch c.Kind {
	case CommandInput:
		return protocol.RecordSteering, []string{c.ClientID}
	case CommandWithdraw:
		return protocol.RecordWithdraw, []string{c.SteeringID.String()}
	}
	return protocol.RecordCancel, []string{"", string(protocol.CancelTurnAndFollowUps)}
}

// replayedReceipt reads a receipt from the record of its command. decided is false for a cancel that does not cover c.
func replayedReceipt(turn protocol.TurnID, record *protocol.TurnRecord, c *Command) (receipt protocol.SteeringReceipt, decided bool, err error) {
	var body struct {
		protocol.SteeringRecord
		Scope protocol.CancelScope `json:"scope"`
	}
	if err := json.Unmarshal(record.Body, &body); err != nil {
		return receipt, false, err
	}
	switch {
	case c.Kind == CommandInput && body.Hash != c.Hash:
		return receipt, true, errSteeringReused
	case c.Kind == CommandCancel && !body.Scope.Covers(c.Scope):
		return receipt, false, nil
	}
	return protocol.SteeringReceipt{
		SteeringID: body.SteeringID, TurnID: turn, State: "accepted", Sequence: record.Sequence, Replayed: true,
	}, true, nil
}

// causeOperator is the cause of a claim that only ends the turn.
const causeOperator = "operator"

// ForceCancel ends a turn for an operator although its actor does not answer, breaks, or cannot read its log: this node
// takes the turn from whatever node owns it, which fences every other actor, and stores its end as cancelled. It returns
// when that is durable.
func (n *Node) ForceCancel(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) error {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	claim, err := n.directory.SeizeTurn(ctx, n.id, account, turn)
	if err != nil {
		return err
	}
	n.takeOver(claim)
	for {
		head, err := n.turnLog.TurnHead(ctx, account, turn)
		switch {
		case err != nil:
			return err
		case head.State.Terminal():
			return nil
		case sleep(ctx, commandPause) != nil:
			return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the turn was taken over and has not ended yet", RetryAfter: 1}
		}
	}
}

// CancelTurn cancels a turn for an operator, which holds its queue, or for the deletion of its conversation, which cancels
// the queue too. A turn that has ended, or is not there, is no error.
func (n *Node) CancelTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, by protocol.CancelledBy) error {
	scope := protocol.CancelTurn
	if by == protocol.CancelledByDeletion {
		scope = protocol.CancelTurnAndFollowUps
		if live := n.live(turn); live != nil {
			live.deleting.Store(true)
		}
	}
	_, err := n.Command(ctx, account, turn, &Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: scope, By: by})
	if code := protocol.CodeOf(err); err != nil && code != protocol.CodeSteeringClosed && code != protocol.CodeNotFound {
		return err
	}
	return nil
}
