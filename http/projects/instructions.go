package projects

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

type getInstructionsInput struct {
	InProject
	Version int64 `query:"version" minimum:"1" doc:"An older version. Default: the current one."`
}

func (h *Handlers) getInstructions(ctx context.Context, in *getInstructionsInput) (*resource.Versioned[protocol.Instructions], error) {
	var version *int64
	if in.Version != 0 {
		version = &in.Version
	}
	return resource.WithETag(h.Texts.Instructions(ctx, exchange.CallerOf(ctx).AccountID, in.ProjectID, version))
}

type putInstructionsInput struct {
	InProject
	resource.IfMatch
	Body resource.InstructionsBody
}

func (h *Handlers) putInstructions(ctx context.Context, in *putInstructionsInput) (*resource.Versioned[protocol.Instructions], error) {
	change, err := changeOf(ctx, in.ProjectID, in.IfMatch, in.Body.Version)
	if err != nil {
		return nil, err
	}
	if err := in.Body.Check(); err != nil {
		return nil, err
	}
	return resource.WithETag(h.Texts.PutInstructions(ctx, exchange.CallerOf(ctx).AccountID, change, in.Body.Content))
}
