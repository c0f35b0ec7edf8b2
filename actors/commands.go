package actors

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"turnstone/actors/observe"
	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/timelimit"
	"turnstone/protocol/turnlog"
)

var (
	commandTry  = timelimit.Of(2 * time.Second) // for one reply of a running actor, including its commit
	commandWait = timelimit.Of(8 * time.Second) // in total; longer than a takeover
)

// commandPause is the time between two reads of the durable state of a turn that this node does not run.
const commandPause = 250 * time.Millisecond

// Command sends a command to a turn and waits until the decision is stored. When the turn runs on another node, it asks
// that node. When the turn has no owner, or its owner is not reached, it waits for the durable record of the command, for
// the end of the turn, for another owner, or for the turn to start on this node. A command may be repeated with the same
// identifiers: it takes effect once. When there is no reply in time, the outcome is unknown, and the error is
// protocol.CodeUnavailable.
func (n *Node) Command(ctx context.Context, account protocol.AccountID, id protocol.TurnID, c *turn.Command) (protocol.SteeringReceipt, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	for {
		var known *tail.Stream
		if live := n.locate(account, id); live != nil {
			known = live.stream
			receipt, err := n.sendCommand(ctx, live, c)
			if !errors.Is(err, errGone) {
				return receipt, err
			}
		}
		head, elsewhere, err := n.locateOwner(ctx, account, id)
		if err != nil {
			return protocol.SteeringReceipt{}, err
		}
		if elsewhere {
			receipt, err := n.peers.command(ctx, head.OwnerAddress, account, id, c)
			if !errors.Is(err, errGone) {
				return receipt, err
			}
		}
		receipt, decided, err := n.fromRecord(ctx, account, id, c, head.State)
		if decided || err != nil {
			return receipt, err
		}
		if n.registry.waitUntilRunning(ctx, id, known, commandPause) != nil {
			return receipt, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the turn's owner was not reached in time", RetryAfter: 1}
		}
	}
}

// send sends a command to a turn's actor. from is the span of the sender. reply is called once, with the decision after it
// is durable, or with errGone. It must not block.
func (live *liveTurn) send(runtime *shell.Runtime, c *turn.Command, from trace.SpanContext, reply func(commandReply)) {
	if c.Kind == turn.CommandCancel && c.By == protocol.CancelledByDeletion {
		live.deleting.Store(true)
	}
	runtime.Send(live.pid, commandMessage{command: c, from: from, reply: reply})
}

// sendCommand sends a command to a local actor and waits for its reply.
func (n *Node) sendCommand(ctx context.Context, live *liveTurn, c *turn.Command) (protocol.SteeringReceipt, error) {
	replies := make(chan commandReply, 1) // buffered, so that the actor never blocks
	live.send(n.runtime, c, observe.From(ctx), func(r commandReply) { replies <- r })
	timer := time.NewTimer(commandTry)
	defer timer.Stop()
	select {
	case reply := <-replies:
		return reply.receipt, reply.err
	case <-ctx.Done():
	case <-timer.C:
	}
	return protocol.SteeringReceipt{}, &protocol.Error{Code: protocol.CodeUnavailable, Detail: protocol.OutcomeUnknown, RetryAfter: 1}
}

// fromRecord decides a command from the durable records, for a turn that does not run on this node. state was read
// before. decided is false while the turn's owner still has to decide.
func (n *Node) fromRecord(
	ctx context.Context, account protocol.AccountID, id protocol.TurnID, c *turn.Command, state protocol.TurnState,
) (receipt protocol.SteeringReceipt, decided bool, err error) {
	kind, keys := recordsOf(c)
	for _, key := range keys {
		record, err := n.turnLog.TurnRecord(ctx, account, id, kind, key)
		if err != nil {
			return receipt, false, err
		}
		if record == nil {
			continue
		}
		if receipt, decided, err = replayedReceipt(id, record, c); decided || err != nil {
			return receipt, decided, err
		}
	}
	if state.Terminal() {
		return receipt, true, turn.NewSteeringClosed(id, state)
	}
	return receipt, false, nil
}

// recordsOf returns the kind and the possible keys of the record of a command like c.
func recordsOf(c *turn.Command) (kind string, keys []string) {
	switch c.Kind {
	case turn.CommandInput:
		return turnlog.RecordSteering, []string{c.ClientID}
	case turn.CommandWithdraw:
		return turnlog.RecordWithdraw, []string{c.SteeringID.String()}
	case turn.CommandApply:
		return turnlog.RecordApply, []string{c.SteeringID.String()}
	}
	return turnlog.RecordCancel, []string{"", string(protocol.CancelTurnAndFollowUps)}
}

// replayedReceipt returns the receipt of a command from its stored record. decided is false for the record of a cancel
// that does not cover c.
func replayedReceipt(id protocol.TurnID, record *turnlog.Record, c *turn.Command) (receipt protocol.SteeringReceipt, decided bool, err error) {
	var body struct {
		turnlog.SteeringRecord
		Scope protocol.CancelScope `json:"scope"`
	}
	if err := json.Unmarshal(record.Body, &body); err != nil {
		return receipt, false, err
	}
	switch {
	case c.Kind == turn.CommandInput && body.Hash != c.Hash:
		return receipt, true, turn.ErrSteeringReused
	case c.Kind == turn.CommandCancel && !body.Scope.Covers(c.Scope):
		return receipt, false, nil
	}
	return protocol.SteeringReceipt{
		SteeringID: body.SteeringID, TurnID: id, State: "accepted", Sequence: record.Sequence, Replayed: true,
	}, true, nil
}

// ForceCancel ends a turn for an operator, even when its actor does not respond, fails, or cannot read its log. This
// node takes the turn over from any owner, which fences every other actor, and stores its end as cancelled. It returns
// when the end is durable.
func (n *Node) ForceCancel(ctx context.Context, account protocol.AccountID, id protocol.TurnID) error {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	claim, err := n.directory.SeizeTurn(ctx, n.id, account, id)
	if err != nil {
		return err
	}
	n.takeOver(claim)
	for {
		head, _, err := n.locateOwner(ctx, account, id)
		switch {
		case err != nil:
			return err
		case head.State.Terminal():
			return nil
		case clock.Sleep(ctx, commandPause) != nil:
			return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the turn was taken over and has not ended yet", RetryAfter: 1}
		}
	}
}

// CancelTurn cancels a turn, and holds or cancels the queued follow-ups: see the scopes. It returns nil for a turn that has
// ended or does not exist.
func (n *Node) CancelTurn(ctx context.Context, account protocol.AccountID, id protocol.TurnID, by protocol.CancelledBy, scope protocol.CancelScope) error {
	_, err := n.Command(ctx, account, id, &turn.Command{Kind: turn.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: scope, By: by})
	if code := protocol.CodeOf(err); err != nil && code != protocol.CodeSteeringClosed && code != protocol.CodeNotFound {
		return err
	}
	return nil
}
