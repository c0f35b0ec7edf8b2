package chat

import (
	"context"
	stdhttp "net/http"

	"turnstone/actors/turn"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/sse"
	"turnstone/protocol"
)

type listTurnsInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *Handlers) listTurns(ctx context.Context, in *listTurnsInput) (*resource.Body[protocol.List[protocol.Turn]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "turns "+in.ConversationID.String(), func(after *protocol.TurnID) ([]protocol.Turn, *protocol.TurnID, error) {
		return h.Store.ListTurns(ctx, caller.AccountID, in.ConversationID, after, in.Limit)
	})
}

// TurnInput is embedded by inputs of routes of one turn. It is exported because huma ignores unexported embedded
// types.
type TurnInput struct {
	TurnID protocol.TurnID `path:"turn_id"`
}

func (h *Handlers) getTurn(ctx context.Context, in *TurnInput) (*resource.Body[protocol.Turn], error) {
	turn, err := h.Store.GetTurn(ctx, exchange.CallerOf(ctx).AccountID, in.TurnID)
	if err != nil {
		return nil, err
	}
	return resource.OK(*turn), nil
}

type turnEventsInput struct {
	TurnInput
	resource.ResumeInput
	Mode string `query:"mode" enum:"events,snapshot" default:"events" doc:"snapshot starts with one event that has the message so far, instead of the events up to that point."`
}

// getTurnEvents streams the events of a turn, live or finished, after a sequence.
func (h *Handlers) getTurnEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, in *turnEventsInput) error {
	after, err := in.Position()
	if err != nil {
		return err
	}
	account := exchange.CallerOf(r.Context()).AccountID
	reader := h.Turns.Follow(account, in.TurnID, after)
	if in.Mode != "snapshot" && reader.FollowsLocally() { // the turn runs on this node: no lookup is needed
		return h.streamLive(w, r, in.TurnID, reader)
	}
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	turn, err := h.Store.GetTurn(bounded, account, in.TurnID)
	if err != nil {
		return err
	}
	log := exchange.Log{Ended: turn.State.Terminal(), Last: turn.LastSequence, After: after, Follow: func(after int64) sse.Reader {
		setTurnHeaders(w.Header(), in.TurnID) // of a stream only
		return h.Turns.Follow(account, in.TurnID, after)
	}}
	if in.Mode == "snapshot" {
		log.Snapshot = func() ([]byte, int64, error) { return h.snapshot(bounded, account, turn) }
	}
	return h.Streams.ServeLog(w, r, account, &log)
}

// streamLive responds with the events of a turn that runs on this node, without a lookup.
func (h *Handlers) streamLive(w stdhttp.ResponseWriter, r *stdhttp.Request, turn protocol.TurnID, reader *turn.Reader) error {
	account := exchange.CallerOf(r.Context()).AccountID
	if err := h.Streams.Acquire(account); err != nil {
		return err
	}
	defer h.Streams.Release(r.Context(), account)
	return h.streamReader(w, r, turn, reader)
}

// snapshot returns an event with the message so far, and the last sequence that it covers. turn.finished is always sent as an event,
// so the snapshot of a finished turn covers all events but that one.
func (h *Handlers) snapshot(ctx context.Context, account protocol.AccountID, turn *protocol.Turn) (event []byte, covers int64, err error) {
	message, err := h.Messages.GetMessage(ctx, account, turn.MessageID)
	if err != nil {
		return nil, 0, err
	}
	covers = message.CoversSequence
	if message.Status != protocol.MessageStreaming {
		if turn, err = h.Store.GetTurn(ctx, account, turn.TurnID); err != nil {
			return nil, 0, err
		}
		covers = turn.LastSequence - 1
	}
	event, err = protocol.AppendEvent(nil, turn.TurnID, covers, h.Now(), &protocol.TurnSnapshot{CoversSequence: covers, Message: *message})
	return append(event, '\n'), covers, err
}
