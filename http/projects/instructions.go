package projects

import (
	"context"
	"fmt"
	"unicode/utf8"

	"turnstone/http/resource"
	"turnstone/http/router"
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
	return instructions(h.Texts.Instructions(ctx, router.CallerOf(ctx).AccountID, in.ProjectID, version))
}

func instructions(i *protocol.Instructions, err error) (*resource.Versioned[protocol.Instructions], error) {
	if err != nil {
		return nil, err
	}
	return resource.WithETag(*i, i.Version), nil
}

type putInstructionsInput struct {
	InProject
	resource.IfMatch
	Body struct {
		Content string `json:"content" doc:"At most 16,000 characters. Empty: no instructions."`
		Version *int64 `json:"version,omitempty" doc:"The version of the instructions that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) putInstructions(ctx context.Context, in *putInstructionsInput) (*resource.Versioned[protocol.Instructions], error) {
	change, err := changeOf(ctx, in.ProjectID, in.IfMatch, in.Body.Version)
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(in.Body.Content) > protocol.MaxInstructions {
		return nil, protocol.Invalid("body.content", fmt.Sprintf("must have at most %d characters", protocol.MaxInstructions))
	}
	return instructions(h.Texts.PutInstructions(ctx, router.CallerOf(ctx).AccountID, change, in.Body.Content))
}
