package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"turnstone/protocol"
)

// gatewayName is the name of the actor that receives the messages to a node.
const gatewayName = "cluster"

// The kinds of the messages of an ask. Their bodies begin with the number of the ask; that of a reply has a status after
// the number.
const (
	askPrefix = "ask/" // followed by the kind of the ask
	kindReply = "reply"

	numberSize    = 8
	statusDone    = 0
	statusUnknown = 1 // the peer does not know the kind of the ask
)

// maxPending limits the asks that wait for replies, and so what is queued to peers that do not respond.
const maxPending = 10_000

// AskHandler answers an ask of another node. It must not block, and calls reply once, at any time, from any goroutine.
type AskHandler func(body []byte, reply func(body []byte))

// The errors of Ask. After each of them, the peer may or may not have received the ask.
var (
	// ErrUnsupported means that the peer runs a version that does not know the ask.
	ErrUnsupported = errors.New("the other node does not support this request")
	errClosed      = errors.New("this node does not communicate with other nodes any more")
	errTooMany     = &protocol.Error{Code: protocol.CodeUnavailable, Detail: "too many requests wait for other nodes", RetryAfter: 1}
)

// asks are the asks that wait for replies.
type asks struct {
	mu      sync.Mutex
	last    uint64                  // guarded by mu; begins at a random number
	waiting map[uint64]chan<- reply // guarded by mu; nil after fail
	failed  bool                    // guarded by mu
}

type reply struct {
	body []byte
	err  error
}

// newAsks returns asks whose numbers no other process uses. A node that restarts has the address of its predecessor, and so
// receives the replies that its peers still send to the predecessor. If the numbers began anew, such a reply would settle an
// ask of this process: a command of one account would get the receipt of another.
func newAsks() asks {
	var random [numberSize]byte
	_, _ = rand.Read(random[:]) // never fails
	return asks{last: binary.BigEndian.Uint64(random[:])}
}

// add returns the number of a new ask, and the channel on which its reply arrives.
func (a *asks) add() (number uint64, replies <-chan reply, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.failed:
		return 0, nil, errClosed
	case len(a.waiting) >= maxPending:
		return 0, nil, errTooMany
	case a.waiting == nil:
		a.waiting = map[uint64]chan<- reply{}
	}
	a.last++
	channel := make(chan reply, 1)
	a.waiting[a.last] = channel
	return a.last, channel, nil
}

// settle passes a reply to the caller that waits for it, if it still does.
func (a *asks) settle(number uint64, r reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if channel := a.waiting[number]; channel != nil {
		delete(a.waiting, number)
		channel <- r
	}
}

// fail ends all asks.
func (a *asks) fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
	for number, channel := range a.waiting {
		delete(a.waiting, number)
		channel <- reply{err: errClosed}
	}
}

// Ask sends an ask to a peer and waits for the reply, until ctx ends. Every error means that the outcome is unknown; ctx's
// error when ctx ended first.
func (l *Link) Ask(ctx context.Context, peer, kind string, body []byte) ([]byte, error) {
	number, replies, err := l.pending.add()
	if err != nil {
		return nil, err
	}
	l.Send(l.Gateway(peer), l.gateway, askPrefix+kind, append(binary.BigEndian.AppendUint64(nil, number), body...))
	select {
	case r := <-replies:
		return r.body, r.err
	case <-ctx.Done():
		l.pending.settle(number, reply{}) // its caller no longer waits
		return nil, ctx.Err()
	}
}

// arrived is called with every message to the gateway.
func (l *Link) arrived(message any) {
	m, is := message.(Message)
	if !is {
		return
	}
	kind, isAsk := strings.CutPrefix(m.Kind, askPrefix)
	switch {
	case isAsk:
		l.answer(kind, m)
	case m.Kind == kindReply:
		l.replied(m.Body)
	default:
		if handle := l.messages[m.Kind]; handle != nil { // otherwise a message of a newer version
			handle(m)
		}
	}
}

func (l *Link) answer(kind string, m Message) {
	if len(m.Body) < numberSize || m.From == nil {
		return
	}
	number, body := m.Body[:numberSize], m.Body[numberSize:]
	send := func(status byte, body []byte) {
		whole := append(append(make([]byte, 0, numberSize+1+len(body)), number...), status)
		l.Send(m.From, l.gateway, kindReply, append(whole, body...))
	}
	handle := l.asks[kind]
	if handle == nil {
		send(statusUnknown, nil)
		return
	}
	handle(body, func(body []byte) { send(statusDone, body) })
}

func (l *Link) replied(body []byte) {
	if len(body) <= numberSize {
		return
	}
	r := reply{body: body[numberSize+1:]}
	if body[numberSize] != statusDone {
		r = reply{err: ErrUnsupported}
	}
	l.pending.settle(binary.BigEndian.Uint64(body), r)
}

// refuseUnary refuses unary calls. protoactor does not handle them: such a call would end the process.
func refuseUnary(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	return nil, status.Error(codes.Unimplemented, "only the message stream between nodes is served")
}
