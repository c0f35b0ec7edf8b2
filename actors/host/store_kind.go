package host

import (
	"context"

	"turnstone/protocol"
)

// Store is what a StoreKind needs of the store of its kind of work. C is a claim, and L is the claimed work.
type Store[C, L any] interface {
	// Owned lists the unfinished work that a node owns.
	Owned(ctx context.Context, node protocol.NodeID) ([]C, error)
	// ClaimLost claims work that a node owns already; ownership.ErrFenced when the work has ended or has another owner or epoch.
	ClaimLost(ctx context.Context, claim C, node protocol.NodeID) (C, error)
	// Load reads claimed work; ownership.ErrFenced as ClaimLost.
	Load(ctx context.Context, claim C, node protocol.NodeID) (L, error)
}

// StoreKind is a Kind that leaves everything to the store of the work, except to start an actor.
type StoreKind[C, L any] struct {
	Node  protocol.NodeID
	Store Store[C, L]
	Due   func(ctx context.Context, node protocol.NodeID, limit int) ([]C, error) // see Kind.ClaimDue
	// Start starts the actor of claimed work with Host.Spawn.
	Start func(work L)
	// Unread reports that claimed work could not be read. It is claimed again later.
	Unread func(claim C, err error)
}

// ClaimDue implements Kind.
func (k StoreKind[C, L]) ClaimDue(ctx context.Context, limit int) ([]C, error) {
	return k.Due(ctx, k.Node, limit)
}

// Owned implements Kind.
func (k StoreKind[C, L]) Owned(ctx context.Context) ([]C, error) { return k.Store.Owned(ctx, k.Node) }

// ClaimLost implements Kind.
func (k StoreKind[C, L]) ClaimLost(ctx context.Context, claim C) (C, error) {
	return k.Store.ClaimLost(ctx, claim, k.Node)
}

// Continue implements Kind.
func (k StoreKind[C, L]) Continue(ctx context.Context, claim C) {
	work, err := k.Store.Load(ctx, claim, k.Node)
	if err != nil {
		k.Unread(claim, err)
		return
	}
	k.Start(work)
}
