package turn

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"turnstone/actors/cluster"
	"turnstone/actors/observe"
	"turnstone/actors/tail"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// askTry is the time for the reply of another node, including its commit. After it, the owner of the turn is looked up
// again, and the command is repeated: its identifiers make that harmless.
const askTry = 400 * time.Millisecond

// peers are the other nodes of the cluster. A nil value means that this node cannot reach them: commands and readers
// then use the store.
type peers struct {
	host *Host
	link *cluster.Link
	hub  *cluster.Hub
}

// newPeers returns the peers of a host; nil without a link.
func newPeers(h *Host, link *cluster.Link) *peers {
	if link == nil {
		return nil
	}
	p := &peers{host: h, link: link}
	p.hub = cluster.NewHub(link, func(account protocol.AccountID, turn protocol.TurnID) *tail.Stream {
		if running := h.Find(account, turn); running != nil {
			return running.Work.stream
		}
		return nil
	}, h.log)
	link.HandleAsk(askCommand, p.receiveCommand)
	link.Handle(kindAdopted, p.adopted)
	h.Go(func() { p.hub.Run(h.Context()) })
	return p
}

// drain ends the relays: their readers reconnect to another node.
func (p *peers) drain() {
	if p != nil {
		p.hub.Close()
	}
}

// announce notifies the other nodes that a turn runs here. Their readers of the turn follow it at once; without this
// message, they find it at their next poll.
func (p *peers) announce(turn protocol.TurnID) {
	if p == nil {
		return
	}
	p.hub.Moved(turn, p.link.Address())
	p.link.Broadcast(kindAdopted, encode(adoptedMessage{turn, p.link.Address()}))
}

// adopted wakes the readers and commands that wait for a turn that another node has adopted.
func (p *peers) adopted(m cluster.Message) {
	var of adoptedMessage
	if json.Unmarshal(m.Body, &of) == nil {
		p.hub.Moved(of.TurnID, of.Owner)
		p.host.waiting.wake(of.TurnID)
	}
}

// stats returns the numbers of relays and of their sources.
func (p *peers) stats() cluster.Stats {
	if p == nil {
		return cluster.Stats{}
	}
	return p.hub.Stats()
}

// follow returns the relay of a turn that runs on another node, for one more reader; nil if the reader has to read the
// log.
func (p *peers) follow(account protocol.AccountID, turn protocol.TurnID, head *turnlog.Head) *cluster.Relay {
	if p == nil {
		return nil
	}
	return p.hub.Follow(account, turn, head.OwnerAddress, head.Epoch, head.LastSequence)
}

// command passes a command to the node at owner. The error is errNotHere if the turn does not run there, or if that node did
// not reply in time.
func (p *peers) command(ctx context.Context, owner string, account protocol.AccountID, id protocol.TurnID, c *machine.Command) (receipt protocol.SteeringReceipt, err error) {
	if p == nil || owner == "" {
		return receipt, errNotHere
	}
	ask := encode(commandAsk{account, id, peerCommandOf(c), observe.Encode(observe.From(ctx))})
	ctx, cancel := context.WithTimeout(ctx, askTry)
	defer cancel()
	text, err := p.link.Ask(ctx, owner, askCommand, ask)
	var response commandResponse
	if err != nil || json.Unmarshal(text, &response) != nil || response.Gone {
		return receipt, errNotHere
	}
	return response.Receipt, response.Error.asError()
}

// receiveCommand passes a command of another node to a turn that runs here.
func (p *peers) receiveCommand(body []byte, reply func([]byte)) {
	var ask commandAsk
	respond := func(receipt protocol.SteeringReceipt, err error) {
		reply(encode(commandResponse{receipt, errors.Is(err, errNotHere), peerErrorOf(err)}))
	}
	if json.Unmarshal(body, &ask) != nil || ask.Command == nil {
		respond(protocol.SteeringReceipt{}, errNotHere)
		return
	}
	c, running := ask.Command.command(), p.host.Find(ask.AccountID, ask.TurnID)
	if c == nil || running == nil {
		respond(protocol.SteeringReceipt{}, errNotHere)
		return
	}
	p.host.send(running, c, observe.Decode(ask.Span), func(r commandReply) { respond(r.receipt, r.err) })
}
