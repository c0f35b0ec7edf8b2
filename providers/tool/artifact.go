package tool

import (
	"context"
	"errors"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// Artifacts reads and writes the artifacts of the conversation of a call. Package persistence/artifacts implements it.
type Artifacts interface {
	// WriteByCall has its effect once for each ToolID. The error is a *turnlog.Refusal if nothing was written.
	WriteByCall(ctx context.Context, write *turnlog.ArtifactWrite) (*protocol.Artifact, error)
	// WrittenByCall returns what WriteByCall has written for some ToolIDs. Those for which it has written nothing are absent.
	WrittenByCall(ctx context.Context, scope turnlog.Scope, by []protocol.ToolID) (map[protocol.ToolID]*protocol.Artifact, error)
	// ReadForCall returns a version; nil: the current one. The error is protocol.CodeNotFound if the conversation does not have it.
	ReadForCall(ctx context.Context, scope turnlog.Scope, id protocol.ArtifactID, version *int64) (*turnlog.ArtifactContent, error)
	// ListForCall returns the newest artifacts, at most limit.
	ListForCall(ctx context.Context, scope turnlog.Scope, limit int) ([]protocol.Artifact, error)
}

// refused returns the failure of a call that was refused. Its text may have lines of the user.
func refused(err error) error {
	var refusal *turnlog.Refusal
	if errors.As(err, &refusal) {
		return &toolbox.Failure{Code: refusal.Code, Detail: foreign.Escape(refusal.Detail)}
	}
	return err
}

// updated returns the event of an artifact that was written under an identifier.
func updated(by protocol.ToolID, written *protocol.Artifact) *protocol.ArtifactUpdated {
	event := &protocol.ArtifactUpdated{
		PartID: protocol.DeriveArtifactPartID(by), ArtifactID: written.ArtifactID, Version: written.Version, Kind: written.Kind, Title: written.Title, CreatedBy: written.CreatedBy,
	}
	if written.Language != nil {
		event.Language = *written.Language
	}
	return event
}
