package nodes_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/nodes"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// stateChanges are the calls that change the state of a node. Whether one is refused is tested elsewhere.
var stateChanges = map[protocol.NodeTrigger]func(context.Context, *nodes.Directory, protocol.NodeID){
	protocol.NodeDrain:  func(ctx context.Context, d *nodes.Directory, node protocol.NodeID) { _ = d.Drain(ctx, node) },
	protocol.NodeExpire: func(ctx context.Context, d *nodes.Directory, node protocol.NodeID) { _, _ = d.MarkDead(ctx, node, 0) },
	protocol.NodeReplace: func(ctx context.Context, d *nodes.Directory, node protocol.NodeID) {
		_ = d.Register(ctx, ownership.NewNode{NodeID: protocol.NewNodeID(), Predecessor: &node})
	},
}

const nodeStateSQL = `select case when dead then 'dead' when draining then 'draining' else 'running' end from nodes where node_id = $1`

func TestANodeMovesOnlyAsTheTableOfStatesAllows(t *testing.T) {
	db := pgtest.New(t)
	directory := nodes.NewDirectory(db.DB)
	made := map[protocol.Transition[protocol.NodeState, protocol.NodeTrigger]]bool{}
	for _, from := range protocol.NodeStates {
		for trigger, change := range stateChanges {
			node := protocol.NewNodeID()
			if err := directory.Register(t.Context(), ownership.NewNode{NodeID: node}); err != nil {
				t.Fatal(err)
			}
			switch from {
			case protocol.NodeDraining:
				stateChanges[protocol.NodeDrain](t.Context(), directory, node)
			case protocol.NodeDead:
				stateChanges[protocol.NodeExpire](t.Context(), directory, node)
			}
			change(t.Context(), directory, node)
			want, legal := from, false
			for _, row := range protocol.NodeTransitions {
				if row.From == from && row.Trigger == trigger {
					want, legal = row.To, true
				}
			}
			made[protocol.Transition[protocol.NodeState, protocol.NodeTrigger]{From: from, Trigger: trigger, To: want}] = legal
			state, err := pg.Row(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[protocol.NodeState], nodeStateSQL, node)
			if err != nil || state != want {
				t.Errorf("%s: a node that was %s is %s (%v), want %s", trigger, from, state, err, want)
			}
		}
	}
	for _, row := range protocol.NodeTransitions {
		if !made[row] {
			t.Errorf("nothing makes the transition %s of a node that is %s", row.Trigger, row.From)
		}
	}
}
