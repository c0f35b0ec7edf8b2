package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"turnstone/actors/clustertest"
	"turnstone/actors/shell"
)

// optionsOf returns the options of a node of an authority's cluster, on a free port of this host computer.
func optionsOf(t *testing.T, authority clustertest.Authority) *Options {
	t.Helper()
	return &Options{Listen: "127.0.0.1:0", TLS: authority.TLS(t), Logger: clustertest.Log(t)}
}

type handlers struct {
	asks     map[string]AskHandler
	messages map[string]func(Message)
}

// start starts the link of a node.
func start(t *testing.T, o *Options, h handlers) *Link {
	t.Helper()
	runtime := shell.NewRuntime(clustertest.Log(t), 2)
	l := New(runtime, *o)
	for kind, handle := range h.asks {
		l.HandleAsk(kind, handle)
	}
	for kind, handle := range h.messages {
		l.Handle(kind, handle)
	}
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		runtime.Close()
	})
	return l
}

// echo answers with what was asked, twice.
func echo(body []byte, reply func([]byte)) { reply(append(bytes.Clone(body), body...)) }

func TestAnAskIsAnsweredByThePeer(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	a := start(t, optionsOf(t, authority), handlers{})
	b := start(t, optionsOf(t, authority), handlers{asks: map[string]AskHandler{"echo": echo}})
	for range 3 {
		got, err := a.Ask(t.Context(), b.Address(), "echo", []byte("ab"))
		if err != nil || string(got) != "abab" {
			t.Fatalf("the reply is %q, %v", got, err)
		}
	}
	if _, err := a.Ask(t.Context(), b.Address(), "of a later version", nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("an unknown ask: %v, want %v", err, ErrUnsupported)
	}
	large := bytes.Repeat([]byte("x"), MaxBody/2-64)
	if got, err := a.Ask(t.Context(), b.Address(), "echo", large); err != nil || len(got) != 2*len(large) {
		t.Errorf("a large ask: %d bytes, %v", len(got), err)
	}
}

// The reply to an ask of a node that was killed meanwhile reaches the node that was started on its address.
func TestARestartedNodeGetsNoReplyThatWasForItsPredecessor(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	replies := make(chan func([]byte), 2)
	peer := start(t, optionsOf(t, authority), handlers{asks: map[string]AskHandler{"slow": func(_ []byte, reply func([]byte)) { replies <- reply }}})
	before := newNode(t, authority, nil)
	ask := func(n *node) <-chan string {
		got := make(chan string, 1)
		go func() {
			text, err := n.Ask(t.Context(), peer.Address(), "slow", nil)
			if err != nil {
				text = []byte(err.Error())
			}
			got <- string(text)
		}()
		return got
	}
	lost := ask(before)
	late := <-replies
	after := before.restart(t, authority)
	if got := <-lost; got != errClosed.Error() {
		t.Fatalf("the ask of the killed node: %q", got)
	}
	own := ask(after)
	inTime := <-replies
	late([]byte("theirs"))
	inTime([]byte("own"))
	if got := <-own; got != "own" {
		t.Errorf("the restarted node got the reply %q", got)
	}
}

func TestMessagesArriveInOrderAndCanBeAnswered(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	const count = 2000
	replies := make(chan byte, count)
	a := start(t, optionsOf(t, authority), handlers{})
	self, err := a.Spawn("counter", func(message any) {
		if m, is := message.(Message); is {
			replies <- m.Body[0]
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var b *Link
	ready := make(chan struct{})
	b = start(t, optionsOf(t, authority), handlers{messages: map[string]func(Message){"number": func(m Message) {
		<-ready
		b.Send(m.From, nil, "back", m.Body)
	}}})
	close(ready)
	for i := range count {
		a.Send(a.Gateway(b.Address()), self, "number", []byte{byte(i)})
	}
	for i := range count {
		if got := <-replies; got != byte(i) {
			t.Fatalf("reply %d is %d", i, got)
		}
	}
}

func TestOnlyNodesOfTheClusterCanConnect(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	asked := make(chan struct{}, 10)
	b := start(t, optionsOf(t, authority), handlers{asks: map[string]AskHandler{"echo": func(_ []byte, reply func([]byte)) {
		asked <- struct{}{}
		reply(nil)
	}}})
	stranger := start(t, optionsOf(t, clustertest.NewAuthority(t)), handlers{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := stranger.Ask(ctx, b.Address(), "echo", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an ask of another cluster: %v", err)
	}
	anonymous := authority.TLS(t)
	anonymous.Certificates = nil
	if call(t, b.Address(), anonymous) != codes.Unavailable {
		t.Error("a peer without a certificate was accepted")
	}
	if len(asked) > 0 {
		t.Error("an ask of a stranger was answered")
	}
}

// protoactor does not implement its unary calls: one of them would end the process.
func TestUnaryCallsAreRefused(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	b := start(t, optionsOf(t, authority), handlers{})
	if got := call(t, b.Address(), authority.TLS(t)); got != codes.Unimplemented {
		t.Errorf("the call was answered with %s, want Unimplemented", got)
	}
}

// call calls a unary method, and returns the code of the reply.
func call(t *testing.T, address string, secure *tls.Config) codes.Code {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(secure)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, err = remote.NewRemotingClient(connection).ListProcesses(t.Context(), &remote.ListProcessesRequest{})
	return status.Code(err)
}

func TestAnAskToAPeerThatIsGoneFailsAndALaterPeerIsReached(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	a := start(t, optionsOf(t, authority), handlers{})
	runtime := shell.NewRuntime(clustertest.Log(t), 2)
	first := New(runtime, *optionsOf(t, authority))
	first.HandleAsk("echo", echo)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Ask(t.Context(), first.Address(), "echo", []byte("a")); err != nil {
		t.Fatal(err)
	}
	first.Close()
	runtime.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Ask(ctx, first.Address(), "echo", []byte("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the peer is gone: %v", err)
	}
	o := optionsOf(t, authority)
	o.Listen = first.Address()
	start(t, o, handlers{asks: map[string]AskHandler{"echo": echo}})
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		got, err := a.Ask(ctx, first.Address(), "echo", []byte("b"))
		cancel()
		if err == nil {
			if string(got) != "bb" {
				t.Errorf("the reply of the new node: %q", got)
			}
			return
		}
	}
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	a := start(t, optionsOf(t, authority), handlers{})
	o := optionsOf(t, authority)
	o.Listen = a.Address()
	runtime := shell.NewRuntime(clustertest.Log(t), 1)
	defer runtime.Close()
	if err := New(runtime, *o).Start(); err == nil {
		t.Error("two nodes listen on one address")
	}
}
