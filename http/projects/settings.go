package projects

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/tools"
	"turnstone/protocol"
)

func (h *Handlers) getSettings(ctx context.Context, in *InProject) (*resource.Versioned[protocol.ProjectSettings], error) {
	return resource.WithETag(h.Texts.Settings(ctx, exchange.CallerOf(ctx).AccountID, in.ProjectID))
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
	return resource.WithETag(h.Texts.PutSettings(ctx, exchange.CallerOf(ctx).AccountID, change, next))
}
