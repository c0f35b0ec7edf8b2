package research

import (
	"testing"
	"time"

	"turnstone/actors/research/researchtest"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

func TestTheStoreOfTheTestsIsAStoreOfTasks(t *testing.T) {
	researchtest.Run(t, func(*testing.T) researchtest.Opened {
		return researchtest.Opened{
			Store: &researchtest.Memory{}, Nodes: [2]protocol.NodeID{protocol.NewNodeID(), protocol.NewNodeID()}, Other: protocol.NewAccountID(),
			Spec: &researchlog.Spec{
				AccountID: protocol.NewAccountID(), TaskID: protocol.NewTaskID(), ConversationID: protocol.NewConversationID(), Question: "Why?", CreatedAt: time.Now(),
			},
		}
	})
}
