package nodes_test

import (
	"errors"
	"testing"

	"turnstone/persistence/nodes"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

func TestANodeIsMarkedDeadOnlyIfItsLeaseWasNotRenewed(t *testing.T) {
	directory, node := nodes.NewDirectory(pgtest.New(t).DB), protocol.NewNodeID()
	if err := directory.Register(t.Context(), ownership.NewNode{NodeID: node, Address: "one:1"}); err != nil {
		t.Fatal(err)
	}
	load := ownership.NodeLoad{Live: 2, Capacity: 5}
	if draining, err := directory.Renew(t.Context(), node, load); err != nil || draining {
		t.Fatalf("renewed: %v, %v", draining, err)
	}
	seen, err := directory.Leases(t.Context())
	if lease := seen[node]; err != nil || len(seen) != 1 || lease.Renewals != 1 || lease.Address != "one:1" || lease.Load != load {
		t.Fatalf("leases %+v, %v", seen, err)
	}
	if marked, err := directory.MarkDead(t.Context(), node, seen[node].Renewals-1); err != nil || marked {
		t.Fatalf("marked dead on an outdated renewal count: %v, %v", marked, err)
	}
	if marked, err := directory.MarkDead(t.Context(), node, seen[node].Renewals); err != nil || !marked {
		t.Fatalf("not marked dead: %v, %v", marked, err)
	}
	if _, err := directory.Renew(t.Context(), node, load); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("the dead node renewed: %v", err)
	}
	if err := directory.Drain(t.Context(), node); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("a dead node drains: %v", err)
	}
}

func TestANodeThatIsToDrainLearnsItWithItsNextRenewal(t *testing.T) {
	directory, node := nodes.NewDirectory(pgtest.New(t).DB), protocol.NewNodeID()
	if err := errors.Join(directory.Register(t.Context(), ownership.NewNode{NodeID: node}), directory.Drain(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
	if draining, err := directory.Renew(t.Context(), node, ownership.NodeLoad{}); err != nil || !draining {
		t.Errorf("renewed: %v, %v", draining, err)
	}
	if err := directory.Leave(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if leases, err := directory.Leases(t.Context()); err != nil || len(leases) != 0 {
		t.Errorf("leases %+v, %v", leases, err)
	}
}
