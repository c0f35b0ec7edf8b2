package research_test

import (
	"testing"

	"turnstone/actors/research/researchtest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

func TestTheStoreIsAStoreOfTasks(t *testing.T) {
	researchtest.Run(t, func(t *testing.T) researchtest.Opened {
		w := newWorld(t)
		other := protocol.NewNodeID()
		w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: other}))
		return researchtest.Opened{
			Store: w.DB.Research, Spec: w.unstored(w.Account, w.conversation).spec, Nodes: [2]protocol.NodeID{w.Node, other}, Other: w.OtherAccount(),
		}
	})
}
