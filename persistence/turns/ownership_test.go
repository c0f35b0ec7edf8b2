package turns_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

func TestTurnsOfADeadNodeAreClaimedAndItsWritesAreFenced(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	turn.Append(2)
	successor := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: successor, Address: "successor:1"}))
	if claims, err := w.Turns.ClaimDue(t.Context(), successor, 20); err != nil || len(claims) != 0 {
		t.Fatalf("claimed from a running node: %v, %v", claims, err)
	}
	seen, err := w.Directory.Leases(t.Context())
	w.Must(err)
	if marked, err := w.Directory.MarkDead(t.Context(), w.Node, seen[w.Node].Renewals); err != nil || !marked {
		t.Fatalf("not marked dead: %v, %v", marked, err)
	}
	claims, err := w.Turns.ClaimDue(t.Context(), successor, 20)
	want := []turnlog.Claim{{AccountID: w.Account, TurnID: turn.Spec.TurnID, Epoch: 2, Cause: "node_lost", Adoptions: 1}}
	if err != nil || !cmp.Equal(claims, want) {
		t.Fatalf("claimed %+v, %v", claims, err)
	}
	if err := w.Append(turn.Chunk(1)); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("the dead node appended: %v", err)
	}
	if _, err := w.Turns.FinishTurn(t.Context(), turn.Finish(), w.Runner); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("the dead node finished the turn: %v", err)
	}
	w.Node, turn.Epoch = successor, 2
	stored, err := w.Turns.LoadTurn(t.Context(), w.Account, turn.Spec.TurnID)
	if err != nil || !bytes.Equal(stored.Frames, turn.Frames) || stored.Head.Epoch != 2 || stored.Head.LastSequence != turn.Next-1 {
		t.Errorf("loaded %+v, %v", stored, err)
	}
	turn.Append(1)

	claim, err := w.Turns.ClaimLost(t.Context(), successor, w.Account, turn.Spec.TurnID, 2)
	if err != nil || claim.Epoch != 3 || claim.Cause != "actor_lost" {
		t.Errorf("claimed again %+v, %v", claim, err)
	}
	if _, err := w.Turns.ClaimLost(t.Context(), successor, w.Account, turn.Spec.TurnID, 2); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("claimed twice: %v", err)
	}
	if own, err := w.Turns.Owned(t.Context(), successor); err != nil || len(own) != 1 || own[0].Epoch != 3 {
		t.Errorf("own turns %+v, %v", own, err)
	}
	w.Must(w.Directory.Drain(t.Context(), successor))
	if released, err := w.Turns.Release(t.Context(), successor); err != nil || released != 1 {
		t.Errorf("released %d, %v", released, err)
	}
	if claims, err := w.Turns.ClaimDue(t.Context(), successor, 20); err != nil || len(claims) != 0 {
		t.Errorf("a draining node claimed %+v, %v", claims, err)
	}
	w.Must(w.Directory.Leave(t.Context(), successor))
	third := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: third}))
	if claims, err := w.Turns.ClaimDue(t.Context(), third, 20); err != nil || len(claims) != 1 || claims[0].Cause != "drain" || claims[0].Epoch != 4 {
		t.Errorf("claimed %+v, %v", claims, err)
	}
}

func TestARestartMarksItsPredecessorDeadAtOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	w.Start(w.Request(nil, "one"))
	successor := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: successor, Predecessor: &w.Node}))
	claims, err := w.Turns.ClaimDue(t.Context(), successor, 20)
	if err != nil || len(claims) != 1 || claims[0].Cause != "restart" {
		t.Errorf("claimed %+v, %v", claims, err)
	}
}

func TestOrphansAreClaimedOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	const turns = 30
	for range turns {
		start := w.Request(nil, "hello")
		w.Runner.MaxLiveTurns = turns
		w.Start(start)
	}
	w.Must(w.Directory.Leave(t.Context(), w.Node))
	var claiming sync.WaitGroup
	claimed := make(chan turnlog.Claim, 2*turns)
	for range 3 {
		node := protocol.NewNodeID()
		w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: node, Address: node.String()}))
		claiming.Go(func() {
			for {
				claims, err := w.Turns.ClaimDue(context.Background(), node, 7)
				if err != nil || len(claims) == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				for _, claim := range claims {
					claimed <- claim
				}
			}
		})
	}
	claiming.Wait()
	seen := map[protocol.TurnID]bool{}
	for range len(claimed) {
		claim := <-claimed
		if seen[claim.TurnID] || claim.Epoch != 2 {
			t.Errorf("claimed again: %+v", claim)
		}
		seen[claim.TurnID] = true
	}
	if len(seen) != turns {
		t.Errorf("%d of %d claimed", len(seen), turns)
	}
}

func TestASeizedTurnIsTakenFromItsOwner(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	other := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: other}))
	claim, err := w.Turns.ClaimAny(t.Context(), other, w.Account, turn.Spec.TurnID)
	if err != nil || claim.Epoch != 2 || claim.Adoptions != 1 || claim.Cause != "operator" {
		t.Fatalf("%+v, %v", claim, err)
	}
	if err := w.Append(turn.Chunk(1)); err != ownership.ErrFenced {
		t.Errorf("the append of the former owner: %v", err)
	}
	stranger := protocol.NewAccountID()
	if _, err := w.Turns.ClaimAny(t.Context(), other, stranger, turn.Spec.TurnID); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("claiming the turn for another account: %v", err)
	}
}

// However many turns wait for an approval, a node that looks for turns to claim does not read them.
func TestWaitingTurnsAreNotReadByTheSearchForOrphans(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	turn.Append(1)
	w.CopyWaiting(10_000)
	w.Database.Admin(t, `vacuum analyze turns`)
	read := func() int {
		return w.Count(`select idx_tup_fetch + seq_tup_read from pg_stat_user_tables where relname = 'turns'`)
	}
	scans := func() int { return w.Count(`select idx_scan from pg_stat_user_tables where relname = 'turns'`) }
	before, scanned := read(), scans()
	for range 20 {
		if claims, err := w.Turns.ClaimDue(t.Context(), w.Node, 20); err != nil || len(claims) != 0 {
			t.Fatalf("claimed %+v, %v", claims, err)
		}
	}
	storetest.Eventually(t, func() bool { return scans() >= scanned+20 }) // the statistics are written when the connection is idle
	if rows := read() - before; rows > 1000 {
		t.Errorf("20 searches have read %d rows of turns", rows)
	}
}

// A turn that waits for an approval has no owner, and is no orphan before an approval of it expires.
