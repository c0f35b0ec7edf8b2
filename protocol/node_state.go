package protocol

// NodeState is the state of a node of the cluster. Its row has a flag for each state but the first. The row of a node that leaves
// is deleted.
type NodeState string

// The states of a node.
const (
	NodeRunning  NodeState = "running"
	NodeDraining NodeState = "draining" // it claims and starts nothing
	NodeDead     NodeState = "dead"     // it did not renew its lease, or another process uses its folder; its work can be claimed
)

// NodeStates lists every state; the last one is terminal.
var NodeStates = []NodeState{NodeRunning, NodeDraining, NodeDead}

// NodeTrigger is a cause of a transition of a node.
type NodeTrigger string

// The triggers of a node.
const (
	NodeDrain   NodeTrigger = "drain"   // by an operator, or before it stops
	NodeExpire  NodeTrigger = "expire"  // its lease was not renewed
	NodeReplace NodeTrigger = "replace" // a successor has its folder
)

// NodeTransitions lists every legal transition of a node.
var NodeTransitions = []Transition[NodeState, NodeTrigger]{
	{NodeRunning, NodeDrain, NodeDraining},
	{NodeRunning, NodeExpire, NodeDead},
	{NodeRunning, NodeReplace, NodeDead},
	{NodeDraining, NodeDrain, NodeDraining},
	{NodeDraining, NodeExpire, NodeDead},
	{NodeDraining, NodeReplace, NodeDead},
}
