package accounts

import (
	"cmp"
	"context"

	"golang.org/x/text/language"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

func (h *Handlers) getSettings(ctx context.Context, _ *resource.Nothing) (*resource.Versioned[protocol.Settings], error) {
	return resource.WithETag(h.Settings.Settings(ctx, exchange.CallerOf(ctx).AccountID))
}

type settingsInput struct {
	resource.IfMatch
	Body struct {
		Language         string            `json:"language" doc:"A BCP 47 language tag, for example en, ar or ja." maxLength:"35"`
		Theme            string            `json:"theme" enum:"system,light,dark"`
		SendKey          string            `json:"send_key" enum:"enter,mod_enter"`
		BusyAction       string            `json:"busy_action" enum:"queue,steer,interrupt"`
		SteeringDelivery protocol.Delivery `json:"steering_delivery,omitempty" enum:"next_step,interrupt" doc:"Absent: next_step."`
		DefaultProfile   protocol.Profile  `json:"default_profile" enum:"auto,balanced,deep_reasoning,coding"`
		Version          *int64            `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) putSettings(ctx context.Context, in *settingsInput) (*resource.Versioned[protocol.Settings], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	tag, err := language.Parse(in.Body.Language)
	if err != nil {
		return nil, protocol.Invalid("body.language", "must be a BCP 47 language tag, for example en or pt-BR")
	}
	return resource.WithETag(h.Settings.PutSettings(ctx, exchange.CallerOf(ctx).AccountID, &protocol.Settings{
		Language: tag.String(), Theme: in.Body.Theme, SendKey: in.Body.SendKey, BusyAction: in.Body.BusyAction,
		SteeringDelivery: cmp.Or(in.Body.SteeringDelivery, protocol.DeliverNextStep), DefaultProfile: in.Body.DefaultProfile,
	}, version))
}
