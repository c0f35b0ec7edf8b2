package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"turnstone/persistence/nodes"
	"turnstone/protocol"
)

// The states of a node.
const (
	NodeRunning  = "running"
	NodeDraining = "draining"
)

// Node is a node as operators see it. What it reports itself is as old as its last renewal, which is less than a second
// if the node is healthy.
type Node struct {
	NodeID     string    `json:"node_id"`
	Address    string    `json:"address"` // for other nodes; empty: they cannot reach it
	State      string    `json:"state"`
	LiveTurns  int       `json:"live_turns"`
	Capacity   int       `json:"capacity"` // live turns up to which it accepts new ones; 0: no limit
	Build      string    `json:"build"`    // commit of its binary; empty: not known
	StartedAt  time.Time `json:"started_at"`
	Renewals   int64     `json:"renewals"`   // of its lease, since its start
	Responding bool      `json:"responding"` // it is the node that sent this list
}

// NodeList is the response to GET /admin/nodes: the nodes that are not dead, in the order of their start.
type NodeList struct {
	Nodes []Node `json:"nodes"`
}

// DrainedNode is the response to POST /admin/nodes/{node}/drain.
type DrainedNode struct {
	NodeID string `json:"node_id"`
	State  string `json:"state"`
}

// Nodes are the operations behind the node commands.
type Nodes interface {
	ListNodes(ctx context.Context) ([]Node, error)
	// DrainNode asks a node to drain. The node does so when it next renews its lease.
	DrainNode(ctx context.Context, node protocol.NodeID) error
}

// nodesOf implements Nodes.
type nodesOf struct {
	directory *nodes.Directory
	self      protocol.NodeID
}

// NewNodes returns the nodes of a directory, seen from the node self.
func NewNodes(directory *nodes.Directory, self protocol.NodeID) Nodes {
	return nodesOf{directory, self}
}

// ListNodes implements Nodes.
func (n nodesOf) ListNodes(ctx context.Context) ([]Node, error) {
	leases, err := n.directory.Leases(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Node, 0, len(leases))
	for id, lease := range leases {
		state := NodeRunning
		if lease.Draining {
			state = NodeDraining
		}
		list = append(list, Node{
			NodeID: id.String(), Address: lease.Address, State: state, LiveTurns: lease.Load.Live, Capacity: lease.Load.Capacity,
			Build: lease.Build, StartedAt: lease.StartedAt.UTC(), Renewals: lease.Renewals, Responding: id == n.self,
		})
	}
	slices.SortFunc(list, func(a, b Node) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.NodeID, b.NodeID))
	})
	return list, nil
}

// DrainNode implements Nodes.
func (n nodesOf) DrainNode(ctx context.Context, node protocol.NodeID) error {
	return n.directory.Drain(ctx, node)
}

type nodeHandler struct{ nodes Nodes }

func (h nodeHandler) list(w http.ResponseWriter, r *http.Request) {
	list, err := h.nodes.ListNodes(r.Context())
	if err != nil {
		Fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, NodeList{list})
}

func (h nodeHandler) drain(w http.ResponseWriter, r *http.Request) {
	id, err := uuid.Parse(r.PathValue("node"))
	if err != nil {
		Fail(w, protocol.Errorf(protocol.CodeNotFound, "invalid node identifier"))
		return
	}
	if err := h.nodes.DrainNode(r.Context(), protocol.NodeID(id)); err != nil {
		Fail(w, err)
		return
	}
	WriteJSON(w, http.StatusAccepted, DrainedNode{id.String(), NodeDraining})
}
