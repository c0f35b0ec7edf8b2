package projects

import (
	"context"
	"fmt"
	"unicode/utf8"

	"turnstone/http/resource"
	"turnstone/http/router"
	"turnstone/http/tools"
	"turnstone/protocol"
)

func (h *Handlers) getSettings(ctx context.Context, in *InProject) (*resource.Versioned[protocol.ProjectSettings], error) {
	return settings(h.Texts.Settings(ctx, router.CallerOf(ctx).AccountID, in.ProjectID))
}

func settings(s *protocol.ProjectSettings, err error) (*resource.Versioned[protocol.ProjectSettings], error) {
	if err != nil {
		return nil, err
	}
	return resource.WithETag(*s, s.Version), nil
}

type putProjectSettingsInput struct {
	InProject
	resource.IfMatch
	Body struct {
		DefaultProfile *protocol.Profile    `json:"default_profile,omitempty" nullable:"true" enum:"auto,balanced,deep_reasoning,coding"`
		MemoryScope    string               `json:"memory_scope,omitempty" enum:"account,project" default:"account"`
		Tools          *protocol.ToolChoice `json:"tools,omitempty" doc:"The tools that turns of the project may use. Absent: all."`
		ApprovalPolicy string               `json:"approval_policy,omitempty" enum:"effects,all" default:"effects"`
		Version        *int64               `json:"version,omitempty" doc:"The version of the settings that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) putSettings(ctx context.Context, in *putProjectSettingsInput) (*resource.Versioned[protocol.ProjectSettings], error) {
	change, err := changeOf(ctx, in.ProjectID, in.IfMatch, in.Body.Version)
	if err != nil {
		return nil, err
	}
	next := protocol.DefaultProjectSettings()
	next.DefaultProfile, next.MemoryScope, next.ApprovalPolicy = in.Body.DefaultProfile, in.Body.MemoryScope, in.Body.ApprovalPolicy
	if in.Body.Tools != nil {
		if err := tools.Check(h.Tools, "body.tools", in.Body.Tools); err != nil {
			return nil, err
		}
		next.Tools = *in.Body.Tools
	}
	return settings(h.Texts.PutSettings(ctx, router.CallerOf(ctx).AccountID, change, next))
}

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
