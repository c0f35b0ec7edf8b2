package turn

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/actors/cluster"
	"turnstone/actors/clustertest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/tail"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// gated is a model that emits a word for every value on the channel, until that is closed.
func gated(words <-chan string) *llmtest.Script {
	return &llmtest.Script{Prefilled: true, Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		for {
			select {
			case word, more := <-words:
				if !more {
					return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
				}
				if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: word}); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}}
}

// startCluster starts nodes that can reach one another, on one store.
func startCluster(t *testing.T, store *actorstest.Memory, model llm.Model, count int) (nodes []*testNode) {
	t.Helper()
	authority := clustertest.NewAuthority(t)
	for range count {
		nodes = append(nodes, startNode(t, store, model, func(c *testConfig) { c.Cluster = options(t, authority) }))
	}
	return nodes
}

// readNext returns the next events of a reader.
func readNext(t *testing.T, r *Reader) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	frames, _, err := r.Next(ctx, nil)
	if err != nil {
		t.Fatalf("reading after %d: %v", r.Cursor(), err)
	}
	return frames
}

// readText reads until the events contain a text.
func readText(t *testing.T, r *Reader, text string) (all []byte) {
	t.Helper()
	for !bytes.Contains(all, []byte(text)) {
		all = append(all, readNext(t, r)...)
	}
	return all
}

func TestReadersOfANodeShareOneRelayOfATurnOfAnotherNode(t *testing.T) {
	store, words := actorstest.NewMemory(), make(chan string)
	nodes := startCluster(t, store, gated(words), 2)
	owner, other := nodes[0], nodes[1]
	spec := startTurn(t, owner, "hello")
	var readers []*Reader
	for range 3 {
		readers = append(readers, other.Follow(spec.AccountID, spec.TurnID, 0))
	}
	seen := make([][]byte, len(readers))
	for _, word := range []string{"one ", "two ", "three "} {
		words <- word
		for i, r := range readers {
			seen[i] = append(seen[i], readText(t, r, word)...)
		}
	}
	if relays, sources := other.Stats().Relays, owner.Stats().Sources; relays != 1 || sources != 1 {
		t.Errorf("%d relays and %d sources for three readers, want one of each", relays, sources)
	}
	close(words)
	for i, r := range readers {
		for !r.cursor.Ended {
			seen[i] = append(seen[i], readNext(t, r)...)
		}
		if want := store.Turns[spec.TurnID].Frames; !bytes.Equal(seen[i], want) {
			t.Errorf("reader %d got\n%s\nwant\n%s", i, seen[i], want)
		}
		r.Leave()
	}
	stranger := other.Follow(protocol.NewAccountID(), spec.TurnID, 0)
	if _, _, err := stranger.Next(t.Context(), nil); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("another account: %v", err)
	}
}

func TestCommandsReachATurnOfAnotherNode(t *testing.T) {
	store, words := actorstest.NewMemory(), make(chan string)
	nodes := startCluster(t, store, gated(words), 2)
	owner, other := nodes[0], nodes[1]
	spec := startTurn(t, owner, "hello")
	words <- "one "
	input := &machine.Command{
		Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use JWT", Hash: "h", Delivery: protocol.DeliverNextStep,
	}
	first, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, input)
	if err != nil || first.Replayed || first.SteeringID != input.SteeringID {
		t.Fatalf("the receipt of the input: %+v, %v", first, err)
	}
	again := *input
	again.SteeringID = protocol.NewSteeringID()
	if receipt, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, &again); err != nil || !receipt.Replayed || receipt.Sequence != first.Sequence {
		t.Errorf("the receipt of the repeat: %+v, %v", receipt, err)
	}
	again.Hash = "another body"
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, &again); !errors.Is(err, machine.ErrSteeringReused) {
		t.Errorf("the same client_steering_id with another body: %v", err)
	}
	if _, err := other.Command(t.Context(), protocol.NewAccountID(), spec.TurnID, input); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("a command of another account: %v", err)
	}
	stop := &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, stop); err != nil {
		t.Fatalf("the cancel: %v", err)
	}
	r := other.Follow(spec.AccountID, spec.TurnID, 0)
	defer r.Leave()
	for !r.cursor.Ended {
		readNext(t, r)
	}
	late := &machine.Command{Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c2", Text: "late", Hash: "h2", Delivery: protocol.DeliverNextStep}
	_, err = other.Command(t.Context(), spec.AccountID, spec.TurnID, late)
	if protocol.CodeOf(err) != protocol.CodeSteeringClosed {
		t.Errorf("an input after the end: %v", err)
	}
}

// A deletion on one node must make the owner ask the store whether the account may still read the turn.
func TestADeletionOnAnotherNodeEndsTheShortcutOfTheOwner(t *testing.T) {
	store, words := actorstest.NewMemory(), make(chan string)
	nodes := startCluster(t, store, gated(words), 2)
	owner, other := nodes[0], nodes[1]
	spec := startTurn(t, owner, "hello")
	words <- "one "
	running := owner.Find(spec.AccountID, spec.TurnID)
	if err := other.CancelTurn(t.Context(), spec.AccountID, spec.TurnID, protocol.CancelledByDeletion, protocol.CancelTurnAndFollowUps); err != nil {
		t.Fatal(err)
	}
	if !running.Work.deleting.Load() {
		t.Error("the owner still lets readers follow the turn without the store")
	}
}

func TestReadersFollowATurnToItsNextOwner(t *testing.T) {
	store, words := actorstest.NewMemory(), make(chan string)
	nodes := startCluster(t, store, gated(words), 3)
	spec := startTurn(t, nodes[0], "hello")
	r := nodes[1].Follow(spec.AccountID, spec.TurnID, 0)
	defer r.Leave()
	words <- "one "
	seen := readText(t, r, "one ")
	nodes[0].Stop() // the row of its lease stays, as after a crash
	if dead, err := store.MarkDead(t.Context(), nodes[0].ID(), leaseOf(t, store, nodes[0]).Renewals); err != nil || !dead {
		t.Fatalf("the node was not marked dead: %t, %v", dead, err)
	}
	words <- "two "
	seen = append(seen, readText(t, r, "two ")...)
	close(words)
	for !r.cursor.Ended {
		seen = append(seen, readNext(t, r)...)
	}
	if want := store.Turns[spec.TurnID].Frames; !bytes.Equal(seen, want) {
		t.Errorf("the reader got\n%s\nwant\n%s", seen, want)
	}
}

func leaseOf(t *testing.T, store *actorstest.Memory, n *testNode) ownership.Lease {
	t.Helper()
	leases, err := store.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return leases[n.ID()]
}

func TestReadersOfADrainingNodeMove(t *testing.T) {
	store, words := actorstest.NewMemory(), make(chan string)
	nodes := startCluster(t, store, gated(words), 2)
	spec := startTurn(t, nodes[0], "hello")
	r := nodes[1].Follow(spec.AccountID, spec.TurnID, 0)
	defer r.Leave()
	words <- "one "
	readText(t, r, "one ")
	if err := nodes[1].Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for {
		if _, _, err := r.Next(ctx, nil); errors.Is(err, tail.ErrMoved) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if nodes[0].Stats().Live != 1 {
		t.Error("the turn of the other node ended")
	}
	close(words)
	read(t, nodes[0], spec, 0, nil)
}

func TestANodeTakesOverItsShareOfReleasedTurns(t *testing.T) {
	store := actorstest.NewMemory()
	n := registered(t, store, llmtest.Answer("fine"), nil)
	for range 5 {
		if _, err := store.StartTurn(t.Context(), &turnlog.Start{AccountID: protocol.NewAccountID()}, turnlog.Runner{NodeID: protocol.NewNodeID(), Begin: n.starter.Begin}); err != nil {
			t.Fatal(err)
		}
	}
	if more, err := n.Claim(t.Context(), 3); err != nil || store.Taken() != 3 || more {
		t.Errorf("a share of 3 of 5 turns: %d were taken over, and more are expected: %t, %v", store.Taken(), more, err)
	}
}

// What docs/operations.md says of certificates that expire while the cluster runs.
func TestNodesWhoseCertificatesExpireKeepTheirConnectionsAndTurns(t *testing.T) {
	store, words := actorstest.NewMemory(), make(chan string)
	authority := clustertest.NewAuthority(t)
	start := func() *testNode {
		return startNode(t, store, gated(words), func(c *testConfig) { c.Cluster = options(t, authority) })
	}
	owner, other := start(), start()
	spec := startTurn(t, owner, "hello")
	r := other.Follow(spec.AccountID, spec.TurnID, 0)
	defer r.Leave()
	words <- "one "
	readText(t, r, "one ")
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, newInput("c0", "use HTTP")); err != nil {
		t.Fatalf("a command before the end of the certificates: %v", err)
	}
	authority.Expire()
	words <- "two "
	readText(t, r, "two ")
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, newInput("c1", "use JWT")); err != nil {
		t.Errorf("a command on an open connection: %v", err)
	}
	joined := start()
	late := joined.Follow(spec.AccountID, spec.TurnID, 0)
	defer late.Leave()
	readText(t, late, "two ") // from the log
	short, cancel := context.WithTimeout(t.Context(), 2*askTry)
	defer cancel()
	if _, err := joined.Command(short, spec.AccountID, spec.TurnID, newInput("c2", "use TLS")); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a command through a node that cannot connect: %v", err)
	}
	close(words)
	for !late.cursor.Ended {
		readNext(t, late)
	}
	if leases, err := store.Leases(t.Context()); err != nil || len(leases) != 3 {
		t.Errorf("%d nodes have a lease, %v", len(leases), err)
	}
}

// options returns the options of a node of an authority's cluster, on a free port of this host computer.
func options(t *testing.T, authority clustertest.Authority) *cluster.Options {
	t.Helper()
	return &cluster.Options{Listen: "127.0.0.1:0", TLS: authority.TLS(t), Logger: clustertest.Log(t)}
}

func TestTheDetailOfAnEarlierNodeIsASentence(t *testing.T) {
	earlier := &peerError{Code: protocol.CodeUnavailable, Detail: "outcome_unknown", RetryAfter: 1}
	var failed *protocol.Error
	if !errors.As(earlier.asError(), &failed) || failed.Detail != protocol.OutcomeUnknown || failed.RetryAfter != 1 {
		t.Errorf("%+v", failed)
	}
}
