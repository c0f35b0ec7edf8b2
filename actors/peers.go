package actors

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"turnstone/actors/observe"
	"turnstone/actors/relay"
	"turnstone/actors/remote"
	"turnstone/actors/tail"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// askTry is the time for the reply of another node, including its commit. After it, the owner of the turn is looked up
// again, and the command is repeated: its identifiers make that harmless.
const askTry = 400 * time.Millisecond

const (
	askCommand   = "command"  // the ask that passes a command to a turn of another node
	kindAdopted  = "adopted"  // the message that a turn has a new owner
	kindReleased = "released" // the message that a node has released turns
)

// peers are the other nodes of the cluster. A nil value means that this node cannot reach them: commands and readers
// then use the store.
type peers struct {
	node *Node
	link *remote.Link
	hub  *relay.Hub

	mu        sync.Mutex
	addresses []string // guarded by mu: of the other nodes, at the last round of the keeper
}

// newPeers returns the peers of a node; nil without options.
func newPeers(n *Node, o *remote.Options) *peers {
	if o == nil {
		return nil
	}
	p := &peers{node: n, link: remote.New(n.runtime, *o)}
	p.hub = relay.NewHub(p.link, func(account protocol.AccountID, turn protocol.TurnID) *tail.Stream {
		if live := n.locate(account, turn); live != nil {
			return live.stream
		}
		return nil
	}, n.log)
	return p
}

// start starts to accept connections, and returns the address of this node.
func (p *peers) start() (string, error) {
	if p == nil || p.link.Address() != "" { // it is started, and the registration of the node is repeated
		return p.address(), nil
	}
	err := p.link.Start(remote.Handlers{
		Answers: map[string]remote.Answer{askCommand: p.answerCommand},
		Receive: map[string]func(remote.Message){relay.KindSubscribe: p.hub.Subscribe, kindAdopted: p.adopted, kindReleased: p.released},
	})
	if err != nil {
		return "", err
	}
	p.node.startGoroutine(func() { p.hub.Run(p.node.ctx) })
	return p.link.Address(), nil
}

func (p *peers) address() string {
	if p == nil {
		return ""
	}
	return p.link.Address()
}

// drain ends the relays: their readers reconnect to another node.
func (p *peers) drain() {
	if p != nil {
		p.hub.Close()
	}
}

func (p *peers) close() {
	if p != nil {
		p.link.Close()
	}
}

// use notes the addresses of the nodes that are not dead.
func (p *peers) use(leases map[protocol.NodeID]turnlog.Lease) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addresses = p.addresses[:0]
	for id, lease := range leases {
		if id != p.node.id && lease.Address != "" {
			p.addresses = append(p.addresses, lease.Address)
		}
	}
}

// announce notifies the other nodes that a turn runs here. Their readers of the turn follow it at once; without this
// message, they find it at their next poll.
func (p *peers) announce(turn protocol.TurnID) {
	if p == nil {
		return
	}
	p.hub.Moved(turn, p.address())
	body, _ := json.Marshal(adopted{turn, p.address()}) // always succeeds
	for _, address := range p.others() {
		p.link.Send(p.link.Gateway(address), nil, kindAdopted, body)
	}
}

// announceRelease notifies the other nodes that this node has released a number of turns, of which each takes over the same
// share at once. Without this message, they find the turns in their next rounds.
func (p *peers) announceRelease(count int) {
	if p == nil || count == 0 {
		return
	}
	addresses := p.others()
	for _, address := range addresses {
		body, _ := json.Marshal(released{Share: (count + len(addresses) - 1) / len(addresses)}) // always succeeds
		p.link.Send(p.link.Gateway(address), nil, kindReleased, body)
	}
}

// others returns the addresses of the other nodes.
func (p *peers) others() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.addresses)
}

// adopted wakes the readers and commands that wait for a turn that another node has adopted.
func (p *peers) adopted(m remote.Message) {
	var of adopted
	if json.Unmarshal(m.Body, &of) == nil {
		p.hub.Moved(of.TurnID, of.Owner)
		p.node.registry.wake(of.TurnID)
	}
}

// released makes the keeper take over turns that another node has released. A message that arrives
// while the keeper has not read an earlier one is dropped: the keeper finds its turns in the next round.
func (p *peers) released(m remote.Message) {
	var of released
	if json.Unmarshal(m.Body, &of) == nil && of.Share > 0 {
		select {
		case p.node.released <- of.Share:
		default:
		}
	}
}

// stats returns the numbers of relays and feeds.
func (p *peers) stats() relay.Stats {
	if p == nil {
		return relay.Stats{}
	}
	return p.hub.Stats()
}

// follow returns the relay of a turn that runs on another node, for one more reader; nil if the reader has to read the
// log.
func (p *peers) follow(account protocol.AccountID, turn protocol.TurnID, head *turnlog.Head) *relay.Relay {
	if p == nil {
		return nil
	}
	return p.hub.Follow(account, turn, head.OwnerAddress, head.Epoch, head.LastSequence)
}

// The bodies of kindAdopted and kindReleased, and of askCommand and its reply. Later versions only add fields.
type (
	adopted struct {
		TurnID protocol.TurnID `json:"turn_id"`
		Owner  string          `json:"owner,omitempty"` // address of the sender
	}
	released struct {
		Share int `json:"share"` // number of turns that the receiver takes over at once
	}
	commandAsk struct {
		AccountID protocol.AccountID `json:"account_id"`
		TurnID    protocol.TurnID    `json:"turn_id"`
		Command   *turn.Command      `json:"command"`
		Span      string             `json:"span,omitempty"` // of the sender, see observe.Encode
	}
	commandAnswer struct {
		Receipt protocol.SteeringReceipt `json:"receipt"`
		Gone    bool                     `json:"gone,omitempty"` // the turn does not run on the node that was asked
		Error   *answerError             `json:"error,omitempty"`
	}
	answerError struct {
		Code       protocol.Code         `json:"code"`
		Detail     string                `json:"detail"`
		Fields     []protocol.FieldError `json:"fields,omitempty"`
		Current    json.RawMessage       `json:"current,omitempty"`
		RetryAfter int                   `json:"retry_after,omitempty"`
	}
)

// command passes a command to the node at owner. The error is errGone if the turn does not run there, or if that node did
// not reply in time.
func (p *peers) command(ctx context.Context, owner string, account protocol.AccountID, id protocol.TurnID, c *turn.Command) (receipt protocol.SteeringReceipt, err error) {
	if p == nil || owner == "" {
		return receipt, errGone
	}
	ask, err := json.Marshal(commandAsk{account, id, c, observe.Encode(observe.From(ctx))})
	if err != nil {
		return receipt, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTry)
	defer cancel()
	text, err := p.link.Ask(ctx, owner, askCommand, ask)
	var answer commandAnswer
	if err != nil || json.Unmarshal(text, &answer) != nil || answer.Gone {
		return receipt, errGone
	}
	return answer.Receipt, answer.Error.asError()
}

// answerCommand passes a command of another node to a turn that runs here.
func (p *peers) answerCommand(body []byte, reply func([]byte)) {
	var ask commandAsk
	answer := func(receipt protocol.SteeringReceipt, err error) {
		text, _ := json.Marshal(commandAnswer{receipt, errors.Is(err, errGone), asAnswer(err)}) // always succeeds
		reply(text)
	}
	if json.Unmarshal(body, &ask) != nil || ask.Command == nil {
		answer(protocol.SteeringReceipt{}, errGone)
		return
	}
	live := p.node.locate(ask.AccountID, ask.TurnID)
	if live == nil {
		answer(protocol.SteeringReceipt{}, errGone)
		return
	}
	live.send(p.node.runtime, ask.Command, observe.Decode(ask.Span), func(r commandReply) { answer(r.receipt, r.err) })
}

// asAnswer encodes an error, except errGone, for another node. Its cause is logged here and stays here.
func asAnswer(err error) *answerError {
	if err == nil || errors.Is(err, errGone) {
		return nil
	}
	failed := &protocol.Error{Code: protocol.CodeUnavailable, Detail: protocol.OutcomeUnknown, RetryAfter: 1}
	errors.As(err, &failed)
	answer := &answerError{Code: failed.Code, Detail: failed.Detail, Fields: failed.Fields, RetryAfter: failed.RetryAfter}
	if failed.Current != nil {
		answer.Current, _ = json.Marshal(failed.Current) // it is encoded for the client anyway
	}
	return answer
}

// formerOutcomeUnknown is protocol.OutcomeUnknown of a node of an earlier version.
const formerOutcomeUnknown = "outcome_unknown"

// asError returns the error that another node has encoded; nil for nil.
func (e *answerError) asError() error {
	if e == nil {
		return nil
	}
	failed := &protocol.Error{Code: e.Code, Detail: e.Detail, Fields: e.Fields, RetryAfter: e.RetryAfter}
	if failed.Detail == formerOutcomeUnknown {
		failed.Detail = protocol.OutcomeUnknown
	}
	if e.Current != nil {
		failed.Current = e.Current
	}
	return failed
}
