package cluster

import (
	"encoding/json"
	"strconv"

	"turnstone/protocol"
)

// The kinds of messages. kindSubscribe goes to the owner's node, the others to a source or a relay.
const (
	kindSubscribe   = "subscribe"
	kindFrames      = "frames" // also the beat of a source, without events
	kindEnd         = "end"
	kindCredit      = "credit" // also the beat of a relay
	kindUnsubscribe = "unsubscribe"
)

// The bodies of messages. That of kindFrames begins with one as a line; the events follow, one per line.
type (
	subscription struct {
		AccountID protocol.AccountID `json:"account_id"`
		TurnID    protocol.TurnID    `json:"turn_id"`
		After     int64              `json:"after"`
		Credit    int                `json:"credit"`
	}
	span struct {
		TurnID protocol.TurnID `json:"turn_id,omitzero"` // zero: sent by an earlier version
		First  int64           `json:"first"`            // of the events; the next one, without events
		Last   int64           `json:"last"`
		Ended  bool            `json:"ended,omitempty"`
	}
	credit struct {
		Bytes int `json:"bytes"`
	}
)

// encode encodes a body, which always succeeds.
func encode(body any) []byte {
	text, _ := json.Marshal(body)
	return text
}

// name returns the name of a new actor, which no actor of another process has.
func (h *Hub) name(kind string) string {
	return kind + "/" + h.process + "/" + strconv.FormatInt(h.names.Add(1), 10)
}
