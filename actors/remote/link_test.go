package remote_test

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

	link "turnstone/actors/remote"
	"turnstone/actors/remotetest"
	"turnstone/actors/shell"
)

func TestMain(m *testing.M) { remotetest.Main(m) }

// start starts the link of a node.
func start(t *testing.T, o *link.Options, h link.Handlers) *link.Link {
	t.Helper()
	runtime := shell.NewRuntime(remotetest.Log(t), 2)
	l := link.New(runtime, *o)
	if err := l.Start(h); err != nil {
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
	cluster := remotetest.NewAuthority(t)
	a := start(t, cluster.Options(t), link.Handlers{})
	b := start(t, cluster.Options(t), link.Handlers{Answers: map[string]link.Answer{"echo": echo}})
	for range 3 {
		got, err := a.Ask(t.Context(), b.Address(), "echo", []byte("ab"))
		if err != nil || string(got) != "abab" {
			t.Fatalf("the reply is %q, %v", got, err)
		}
	}
	if _, err := a.Ask(t.Context(), b.Address(), "of a later version", nil); !errors.Is(err, link.ErrUnsupported) {
		t.Errorf("an unknown ask: %v, want %v", err, link.ErrUnsupported)
	}
	large := bytes.Repeat([]byte("x"), link.MaxBody/2-64)
	if got, err := a.Ask(t.Context(), b.Address(), "echo", large); err != nil || len(got) != 2*len(large) {
		t.Errorf("a large ask: %d bytes, %v", len(got), err)
	}
}

func TestMessagesArriveInOrderAndCanBeAnswered(t *testing.T) {
	cluster := remotetest.NewAuthority(t)
	const count = 2000
	replies := make(chan byte, count)
	a := start(t, cluster.Options(t), link.Handlers{})
	self, err := a.Spawn("counter", func(message any) {
		if m, is := message.(link.Message); is {
			replies <- m.Body[0]
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var b *link.Link
	ready := make(chan struct{})
	b = start(t, cluster.Options(t), link.Handlers{Receive: map[string]func(link.Message){"number": func(m link.Message) {
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
	cluster := remotetest.NewAuthority(t)
	asked := make(chan struct{}, 10)
	b := start(t, cluster.Options(t), link.Handlers{Answers: map[string]link.Answer{"echo": func(_ []byte, reply func([]byte)) {
		asked <- struct{}{}
		reply(nil)
	}}})
	stranger := start(t, remotetest.NewAuthority(t).Options(t), link.Handlers{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := stranger.Ask(ctx, b.Address(), "echo", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an ask of another cluster: %v", err)
	}
	anonymous := cluster.TLS(t)
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
	cluster := remotetest.NewAuthority(t)
	b := start(t, cluster.Options(t), link.Handlers{})
	if got := call(t, b.Address(), cluster.TLS(t)); got != codes.Unimplemented {
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
	cluster := remotetest.NewAuthority(t)
	a := start(t, cluster.Options(t), link.Handlers{})
	runtime := shell.NewRuntime(remotetest.Log(t), 2)
	first := link.New(runtime, *cluster.Options(t))
	handlers := link.Handlers{Answers: map[string]link.Answer{"echo": echo}}
	if err := first.Start(handlers); err != nil {
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
	o := cluster.Options(t)
	o.Listen = first.Address()
	start(t, o, handlers)
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
	cluster := remotetest.NewAuthority(t)
	a := start(t, cluster.Options(t), link.Handlers{})
	o := cluster.Options(t)
	o.Listen = a.Address()
	runtime := shell.NewRuntime(remotetest.Log(t), 1)
	defer runtime.Close()
	if err := link.New(runtime, *o).Start(link.Handlers{}); err == nil {
		t.Error("two nodes listen on one address")
	}
}
