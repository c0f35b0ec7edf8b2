package cluster

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/anypb"

	"turnstone/actors/shell"
)

// Limits of the connections.
const (
	// MaxBody is the largest body of a message. A larger one would end the connection with all messages in it.
	MaxBody = 512 << 10
	// One batch has at most batchSize messages, so it stays below maxBatchBytes, which the receiver accepts.
	batchSize     = 32
	maxBatchBytes = batchSize*(MaxBody+64<<10) + 1<<20

	queueSize      = 1024 // initial capacity of the queue to a peer; it grows
	connectTimeout = time.Second
	// A peer that does not respond to a keepalive within keepaliveTimeout loses its connection, and the messages in it.
	keepaliveInterval = 10 * time.Second
	keepaliveTimeout  = 2 * time.Second
)

// Options configure a Link.
type Options struct {
	Listen    string      // host:port
	Advertise string      // host:port by which other nodes reach this one; empty: the address on which it listens
	TLS       *tls.Config // for both directions; it must require and verify the certificate of the peer
	Logger    *zap.Logger
}

// Link connects a node to its peers. A peer is named by its address.
type Link struct {
	// Set by New.
	runtime *shell.Runtime
	options Options
	log     *zap.Logger

	// Set before Start.
	asks     map[string]AskHandler
	messages map[string]func(Message)

	// Set by Start.
	remote  *remote.Remote
	gateway *actor.PID
	address string

	pending asks

	mu     sync.Mutex
	peers  []string            // guarded by mu: addresses of the other nodes
	sent   map[string]struct{} // guarded by mu: addresses to which something was sent
	closed bool                // guarded by mu
}

// Message is a message from an actor of another node.
type Message struct {
	Kind string
	Body []byte     // immutable
	From *actor.PID // to send a message back; nil if there is none
}

// New returns a link that is not connected.
func New(runtime *shell.Runtime, o Options) *Link {
	return &Link{
		runtime: runtime, options: o, log: o.Logger.Named("cluster"), pending: newAsks(), asks: map[string]AskHandler{},
		messages: map[string]func(Message){}, sent: map[string]struct{}{},
	}
}

// HandleAsk registers what answers the asks of a kind. Call it before Start.
func (l *Link) HandleAsk(kind string, handle AskHandler) { l.asks[kind] = handle }

// Handle registers a handler for the messages of a kind to this node. Call it before Start. The handler must not block.
func (l *Link) Handle(kind string, handle func(Message)) { l.messages[kind] = handle }

// Start starts to accept connections of other nodes. It is called before anything is sent. A repeat after success does
// nothing.
func (l *Link) Start() (err error) {
	if l.address != "" {
		return nil
	}
	host, text, err := net.SplitHostPort(l.options.Listen)
	if err != nil {
		return fmt.Errorf("listening for other nodes: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("listening for other nodes on %s: %w", l.options.Listen, err)
	}
	defer func() { // protoactor reports an address that it cannot listen on by a panic
		if p := recover(); p != nil {
			err = fmt.Errorf("listening for other nodes on %s: %v", l.options.Listen, p)
		}
	}()
	l.remote = remote.NewRemote(l.runtime.System(), remote.Configure(host, port, configuration(l.options)...))
	l.remote.Start()
	l.address = l.runtime.System().Address() // before a message can arrive
	if l.gateway, err = l.Spawn(gatewayName, l.arrived); err != nil {
		l.address = ""
		l.remote.Shutdown(false)
		return err
	}
	l.log.Info("listening for other nodes", zap.String("address", l.address))
	return nil
}

// configuration returns the options of protoactor's remote.
func configuration(o Options) []remote.ConfigOption {
	secure := credentials.NewTLS(o.TLS)
	return []remote.ConfigOption{
		remote.WithAdvertisedHost(o.Advertise),
		remote.WithEndpointWriterBatchSize(batchSize),
		remote.WithEndpointWriterQueueSize(queueSize),
		func(c *remote.Config) { c.MaxRetryCount = 1 }, // each retry would block the queue to the peer for two seconds
		remote.WithServerOptions(
			grpc.Creds(secure), grpc.MaxRecvMsgSize(maxBatchBytes), grpc.UnaryInterceptor(refuseUnary), grpc.ConnectionTimeout(connectTimeout),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveInterval / 2, PermitWithoutStream: true}),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout}),
		),
		remote.WithDialOptions(
			grpc.WithTransportCredentials(secure),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
			grpc.WithNoProxy(),
		),
	}
}

// Address returns the address by which other nodes reach this one; empty before Start.
func (l *Link) Address() string { return l.address }

// Close closes all connections. The caller ensures that nothing is sent any more.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	sent := l.sent
	l.sent = nil
	l.mu.Unlock()
	l.pending.fail()
	if l.address == "" {
		return
	}
	l.runtime.Silence()
	// Shutdown in its graceful form waits for peers, and has a data race. This form leaves the connections to peers
	// open, so they are closed by the event that protoactor itself publishes when a connection breaks.
	l.remote.Shutdown(false)
	for peer := range sent {
		l.runtime.System().EventStream.Publish(&remote.EndpointTerminatedEvent{Address: peer})
	}
	l.runtime.Stop(l.gateway)
}

// Spawn starts an actor that other nodes can send messages to. receive gets a Message, or any other value that was sent
// to the actor on this node; one at a time. A panic of receive stops the actor.
func (l *Link) Spawn(name string, receive func(message any)) (*actor.PID, error) {
	return l.runtime.SpawnFunc(name, func(c actor.Context) {
		defer func() {
			if p := recover(); p != nil {
				l.log.Error("an actor of the cluster panicked", zap.String("actor", name), zap.String("kind", fmt.Sprintf("%T", p)), zap.Stack("stack"))
				c.Stop(c.Self())
			}
		}()
		switch message := c.Message().(type) {
		case *anypb.Any:
			receive(Message{Kind: message.GetTypeUrl(), Body: message.GetValue(), From: c.Sender()})
		case actor.SystemMessage, actor.AutoReceiveMessage, *actor.DeadLetterResponse:
		default:
			receive(message)
		}
	})
}

// Post sends a message to an actor of this node.
func (l *Link) Post(to *actor.PID, message any) { l.runtime.Send(to, message) }

// Stop stops an actor of this node that Spawn has started.
func (l *Link) Stop(actor *actor.PID) { l.runtime.Stop(actor) }
