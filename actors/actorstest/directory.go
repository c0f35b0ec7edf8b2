package actorstest

import (
	"context"
	"sync"

	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// Directory implements node.Directory in memory. Its zero value has no nodes, and any goroutine may call its methods.
type Directory struct {
	mu    sync.Mutex
	nodes map[protocol.NodeID]*registered // guarded by mu
}

type registered struct {
	ownership.Lease
	dead bool
}

// Register implements node.Directory.
func (d *Directory) Register(_ context.Context, node ownership.NewNode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes == nil {
		d.nodes = map[protocol.NodeID]*registered{}
	}
	d.nodes[node.NodeID] = &registered{Lease: ownership.Lease{Address: node.Address, Build: node.Build}}
	if node.Predecessor != nil && d.nodes[*node.Predecessor] != nil {
		d.nodes[*node.Predecessor].dead = true
	}
	return nil
}

// Renew implements node.Directory.
func (d *Directory) Renew(_ context.Context, node protocol.NodeID, load ownership.NodeLoad) (draining bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.living(node)
	if n == nil {
		return false, ownership.ErrFenced
	}
	n.Renewals++
	n.Load = load
	return n.Draining, nil
}

// Leases implements node.Directory.
func (d *Directory) Leases(context.Context) (map[protocol.NodeID]ownership.Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[protocol.NodeID]ownership.Lease{}
	for id, n := range d.nodes {
		if !n.dead {
			all[id] = n.Lease
		}
	}
	return all, nil
}

// MarkDead implements node.Directory.
func (d *Directory) MarkDead(_ context.Context, node protocol.NodeID, seen int64) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.living(node)
	if n == nil || n.Renewals != seen {
		return false, nil
	}
	n.dead = true
	return true, nil
}

// Drain implements node.Directory.
func (d *Directory) Drain(_ context.Context, node protocol.NodeID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.living(node)
	if n == nil {
		return &protocol.Error{Code: protocol.CodeNotFound}
	}
	n.Draining = true
	return nil
}

// Leave removes a node.
func (d *Directory) Leave(_ context.Context, node protocol.NodeID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.nodes, node)
	return nil
}

// Kill declares a node dead, which does not know this yet.
func (d *Directory) Kill(node protocol.NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes[node].dead = true
}

// Lease returns the lease of a node that is not dead.
func (d *Directory) Lease(node protocol.NodeID) (lease ownership.Lease, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.living(node); n != nil {
		return n.Lease, true
	}
	return lease, false
}

// living returns the entry of a node; nil if it is dead or not registered. The caller holds mu.
func (d *Directory) living(node protocol.NodeID) *registered {
	if n := d.nodes[node]; n != nil && !n.dead {
		return n
	}
	return nil
}
