package accounts

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

func (h *Handlers) getInstructions(ctx context.Context, _ *resource.Nothing) (*resource.Versioned[protocol.Instructions], error) {
	return resource.WithETag(h.Instructions.Instructions(ctx, exchange.CallerOf(ctx).AccountID))
}

type instructionsInput struct {
	resource.IfMatch
	Body resource.InstructionsBody
}

func (h *Handlers) putInstructions(ctx context.Context, in *instructionsInput) (*resource.Versioned[protocol.Instructions], error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	if err := in.Body.Check(); err != nil {
		return nil, err
	}
	return resource.WithETag(h.Instructions.PutInstructions(ctx, exchange.CallerOf(ctx).AccountID, version, in.Body.Content))
}
