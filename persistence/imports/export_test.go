package imports

import (
	"context"

	"turnstone/protocol"
)

// Sweep continues what was left unfinished.
func (s *Store) Sweep(ctx context.Context) error { return s.sweep(ctx) }

// On returns the store for the runs of a node.
func (s *Store) On(node protocol.NodeID) *Store { return s.on(node) }

// Discard does what follows when the reception of an import has failed.
func (s *Store) Discard(ctx context.Context, account protocol.AccountID, id protocol.ImportID) {
	(&transfer{store: s, account: account, id: id}).discard(ctx, "The upload ended early.")
}

// The statements that change the state of an import.
const (
	CancelSQL          = cancelImportSQL
	ReceivedSQL        = receivedSQL
	ReceiveFailedSQL   = receiveFailedSQL
	AbandonedUploadSQL = abandonedUploadSQL
	EndSQL             = endSQL
)

// ClaimSQL starts a run.
var ClaimSQL = claimSQL

// The statements that change an import without changing its state.
const (
	ReceivingSQL = receivingSQL
	ActiveSQL    = activeSQL
	ReleaseSQL   = releaseSQL
	SweptSQL     = sweptSQL
)
