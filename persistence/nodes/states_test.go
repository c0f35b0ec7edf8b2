package nodes_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/nodes"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

const nodeStateSQL = `select case when dead then 'dead' when draining then 'draining' else 'running' end from nodes where node_id = $1`

func TestANodeMovesOnlyAsTheTableOfStatesAllows(t *testing.T) {
	db := pgtest.New(t)
	directory := nodes.NewDirectory(db.DB)
	changes := map[protocol.NodeTrigger]func(protocol.NodeID){
		protocol.NodeDrain:  func(node protocol.NodeID) { _ = directory.Drain(t.Context(), node) },
		protocol.NodeExpire: func(node protocol.NodeID) { _, _ = directory.MarkDead(t.Context(), node, 0) },
		protocol.NodeReplace: func(node protocol.NodeID) {
			_ = directory.Register(t.Context(), ownership.NewNode{NodeID: protocol.NewNodeID(), Predecessor: &node})
		},
	}
	to := map[protocol.NodeState]protocol.NodeTrigger{protocol.NodeDraining: protocol.NodeDrain, protocol.NodeDead: protocol.NodeExpire}
	pgtest.CheckTransitions(t, protocol.NodeTransitions, protocol.NodeStates, slices.Collect(maps.Keys(changes)),
		func(state protocol.NodeState, _ protocol.NodeTrigger) pgtest.Object[protocol.NodeState, protocol.NodeTrigger] {
			node := protocol.NewNodeID()
			if err := directory.Register(t.Context(), ownership.NewNode{NodeID: node}); err != nil {
				t.Fatal(err)
			}
			if change := changes[to[state]]; change != nil {
				change(node)
			}
			return pgtest.Object[protocol.NodeState, protocol.NodeTrigger]{
				Fire: func(trigger protocol.NodeTrigger) { changes[trigger](node) },
				State: func() protocol.NodeState {
					state, err := pg.Row(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[protocol.NodeState], nodeStateSQL, node)
					if err != nil {
						t.Fatal(err)
					}
					return state
				},
			}
		})
}
