package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"turnstone/actors/observe"
	"turnstone/actors/tail"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/ownership"
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
func (h *Host) Command(ctx context.Context, account protocol.AccountID, id protocol.TurnID, c *machine.Command) (protocol.SteeringReceipt, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	if err := h.checkNotDeleted(ctx, account, id, c); err != nil {
		return protocol.SteeringReceipt{}, err
	}
	for {
		var known *tail.Stream
		if running := h.Find(account, id); running != nil {
			known = running.Work.stream
			receipt, err := h.sendCommand(ctx, running, c)
			if !errors.Is(err, errNotHere) {
				return receipt, err
			}
		}
		head, elsewhere, err := h.locateOwner(ctx, account, id)
		if err != nil {
			return protocol.SteeringReceipt{}, err
		}
		if elsewhere {
			receipt, err := h.peers.command(ctx, head.OwnerAddress, account, id, c)
			if !errors.Is(err, errNotHere) {
				return receipt, err
			}
		}
		if head.Parked && !h.Draining() {
			if err := h.wake(ctx, account, id); err != nil {
				return protocol.SteeringReceipt{}, err
			}
		}
		receipt, decided, err := h.fromRecord(ctx, account, id, c, head.State)
		if decided || err != nil {
			return receipt, err
		}
		if h.awaitRunning(ctx, account, id, known, commandPause) != nil {
			return receipt, &protocol.Error{Code: protocol.CodeUnavailable, Detail: "the turn's owner was not reached in time", RetryAfter: 1}
		}
	}
}

// InputCommand returns the command that adds a text to a turn, under a name that the client has chosen.
func InputCommand(clientID, text string, delivery protocol.Delivery) *machine.Command {
	if delivery == "" {
		delivery = protocol.DeliverNextStep
	}
	hash := sha256.Sum256([]byte(string(delivery) + "\x00" + text))
	return &machine.Command{
		Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: clientID, Text: text, Delivery: delivery,
		Hash: hex.EncodeToString(hash[:]),
	}
}

// hasEnded reports whether a command was refused because its turn has ended.
func hasEnded(err error) bool {
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeSteeringClosed {
		return false
	}
	closed, isClosed := refusal.Current.(machine.SteeringClosed)
	return isClosed && closed.State.Terminal()
}

// checkNotDeleted returns protocol.CodeNotFound if the conversation of a turn that runs on this node is deleted. It reads the
// store only for a cancel, which the turn would otherwise answer with the receipt of the cancel by the deletion, and after such
// a cancel. The deletion itself is not checked: it cancels the turn first.
func (h *Host) checkNotDeleted(ctx context.Context, account protocol.AccountID, id protocol.TurnID, c *machine.Command) error {
	if c.By == protocol.CancelledByDeletion {
		return nil
	}
	running := h.Find(account, id)
	if running == nil || c.Kind != machine.CommandCancel && !running.Work.deleting.Load() {
		return nil
	}
	_, _, err := h.locateOwner(ctx, account, id)
	return err
}

// wake takes over a turn that waits for an approval without an actor, unless another node has done that.
func (h *Host) wake(ctx context.Context, account protocol.AccountID, id protocol.TurnID) error {
	claim, err := h.ownership.ClaimParked(ctx, h.node.ID, account, id)
	if errors.Is(err, ownership.ErrFenced) {
		return nil
	}
	if err == nil {
		h.Adopt(claim)
	}
	return err
}

// sendCommand sends a command to a local actor and waits for its reply.
func (h *Host) sendCommand(ctx context.Context, to *running, c *machine.Command) (protocol.SteeringReceipt, error) {
	replies := make(chan commandReply, 1) // buffered, so that the actor never blocks
	h.send(to, c, observe.From(ctx), func(r commandReply) { replies <- r })
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

// locateOwner reads the durable state of a turn that does not run here, and reports whether another running node owns
// the turn. Otherwise the turn has ended, or waits for a node to adopt it.
func (h *Host) locateOwner(
	ctx context.Context, account protocol.AccountID, turn protocol.TurnID,
) (head turnlog.Head, elsewhere bool, err error) {
	head, err = h.turnLog.TurnHead(ctx, account, turn)
	if err != nil {
		return head, false, err
	}
	return head, head.Owner != nil && !head.OwnerDead && *head.Owner != h.node.ID, nil
}

// fromRecord decides a command from the durable records, for a turn that does not run on this node. state was read
// before. decided is false while the turn's owner still has to decide.
func (h *Host) fromRecord(
	ctx context.Context, account protocol.AccountID, id protocol.TurnID, c *machine.Command, state protocol.TurnState,
) (receipt protocol.SteeringReceipt, decided bool, err error) {
	kind, keys := recordsOf(c)
	for _, key := range keys {
		record, err := h.turnLog.TurnRecord(ctx, account, id, kind, key)
		if err != nil {
			return receipt, false, err
		}
		if record == nil {
			continue
		}
		if c.Kind == machine.CommandDecide {
			receipt, err := h.decided(ctx, account, id, record, c)
			return receipt, true, err
		}
		if receipt, decided, err = replayedReceipt(id, record, c); decided || err != nil {
			return receipt, decided, err
		}
	}
	switch {
	case c.Kind == machine.CommandDecide && state.Terminal():
		return receipt, true, machine.ErrNoApproval
	case state.Terminal():
		return receipt, true, machine.NewSteeringClosed(id, state)
	}
	return receipt, false, nil
}

// decided returns the receipt of a repeated decision, or the 409 error of another one, from the records of the turn.
func (h *Host) decided(
	ctx context.Context, account protocol.AccountID, id protocol.TurnID, decision *turnlog.Record, c *machine.Command,
) (receipt protocol.SteeringReceipt, err error) {
	record, err := h.turnLog.TurnRecord(ctx, account, id, turnlog.RecordApproval, c.ApprovalID.String())
	if err != nil {
		return receipt, err
	}
	var asked turnlog.ApprovalRecord
	var body turnlog.DecisionRecord
	if record == nil || json.Unmarshal(record.Body, &asked) != nil || json.Unmarshal(decision.Body, &body) != nil {
		return receipt, machine.ErrNoApproval
	}
	a := asked.Approval
	if err := a.Decide(body.Decision, &body.At); err != nil {
		return receipt, err
	}
	return machine.Decided(id, a, &body, decision.Sequence, c)
}

// recordsOf returns the kind and the possible keys of the record of a command like c.
func recordsOf(c *machine.Command) (kind string, keys []string) {
	switch c.Kind {
	case machine.CommandInput:
		return turnlog.RecordSteering, []string{c.ClientID}
	case machine.CommandWithdraw:
		return turnlog.RecordWithdraw, []string{c.SteeringID.String()}
	case machine.CommandApply:
		return turnlog.RecordApply, []string{c.SteeringID.String()}
	case machine.CommandDecide:
		return turnlog.RecordDecision, []string{c.ApprovalID.String()}
	}
	return turnlog.RecordCancel, []string{"", string(protocol.CancelTurnAndFollowUps)}
}

// replayedReceipt returns the receipt of a command from its stored record. decided is false for the record of a cancel
// that does not cover c.
func replayedReceipt(id protocol.TurnID, record *turnlog.Record, c *machine.Command) (receipt protocol.SteeringReceipt, decided bool, err error) {
	var body struct {
		turnlog.SteeringRecord
		Scope protocol.CancelScope `json:"scope"`
	}
	if err := json.Unmarshal(record.Body, &body); err != nil {
		return receipt, false, err
	}
	switch {
	case c.Kind == machine.CommandInput && body.Hash != c.Hash:
		return receipt, true, machine.ErrSteeringReused
	case c.Kind == machine.CommandCancel && !body.Scope.Covers(c.Scope):
		return receipt, false, nil
	}
	return protocol.Accepted(body.SteeringID, id, record.Sequence, true), true, nil
}

// ForceCancel ends a turn for an operator, even when its actor does not respond, fails, or cannot read its log. This
// node takes the turn over from any owner, which fences every other actor, and stores its end as cancelled. It returns
// when the end is durable.
func (h *Host) ForceCancel(ctx context.Context, account protocol.AccountID, id protocol.TurnID) error {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	claim, err := h.ownership.ClaimAny(ctx, h.node.ID, account, id)
	if err != nil {
		return err
	}
	h.Adopt(claim)
	for {
		head, _, err := h.locateOwner(ctx, account, id)
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
func (h *Host) CancelTurn(ctx context.Context, account protocol.AccountID, id protocol.TurnID, by protocol.CancelledBy, scope protocol.CancelScope) error {
	_, err := h.Command(ctx, account, id, &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: scope, By: by})
	if code := protocol.CodeOf(err); err != nil && code != protocol.CodeSteeringClosed && code != protocol.CodeNotFound {
		return err
	}
	return nil
}
