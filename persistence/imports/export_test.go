package imports

import "context"

// Sweep continues what was left unfinished.
func (s *Store) Sweep(ctx context.Context) error { return s.sweep(ctx) }

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
