package cluster

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/anypb"
)

// Gateway returns the actor of a peer that receives the messages to its node.
func (l *Link) Gateway(peer string) *actor.PID { return actor.NewPID(peer, gatewayName) }

// Send sends a message to an actor of another node. from receives what that actor sends back. The body must not be
// changed afterwards.
func (l *Link) Send(to, from *actor.PID, kind string, body []byte) {
	if len(body) > MaxBody {
		l.log.Error("a message to another node is too large and was not sent", zap.String("kind", kind), zap.Int("bytes", len(body)))
		return
	}
	if !l.note(to.Address) {
		return
	}
	l.runtime.System().Root.RequestWithCustomSender(to, &anypb.Any{TypeUrl: kind, Value: body}, from)
}

// Broadcast sends a message to all other nodes.
func (l *Link) Broadcast(kind string, body []byte) {
	for _, peer := range l.Peers() {
		l.Send(l.Gateway(peer), nil, kind, body)
	}
}

// note remembers a peer, and reports whether the link is open.
func (l *Link) note(peer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.sent[peer] = struct{}{}
	}
	return !l.closed
}

// SetPeers sets the addresses of the other nodes.
func (l *Link) SetPeers(addresses []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peers = addresses
}

// Peers returns the addresses of the other nodes.
func (l *Link) Peers() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.peers)
}
