package memory

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

func (h *Handlers) getLocation(ctx context.Context, in *resource.InConversation) (*resource.Body[protocol.LocationContext], error) {
	return location(h.Store.Location(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID))
}

func location(at *protocol.LocationContext, err error) (*resource.Body[protocol.LocationContext], error) {
	if err != nil {
		return nil, err
	}
	return resource.OK(*at), nil
}

type locationInput struct {
	resource.InConversation
	Body struct {
		Latitude  float64   `json:"latitude" minimum:"-90" maximum:"90" doc:"In degrees, positive in the north."`
		Longitude float64   `json:"longitude" minimum:"-180" maximum:"180" doc:"In degrees, positive in the east."`
		AccuracyM float64   `json:"accuracy_m" minimum:"0" maximum:"1000000" doc:"The radius of the area in which the user is, in metres."`
		Place     string    `json:"place,omitempty" doc:"The name of the place, for example a town: at most 200 characters. Invisible characters are removed."`
		ExpiresAt time.Time `json:"expires_at" doc:"In the future, at most 24 hours ahead."`
	}
}

func (h *Handlers) putLocation(ctx context.Context, in *locationInput) (*resource.Body[protocol.LocationContext], error) {
	at := &protocol.LocationContext{Latitude: in.Body.Latitude, Longitude: in.Body.Longitude, AccuracyM: in.Body.AccuracyM, ExpiresAt: in.Body.ExpiresAt}
	if given := strings.TrimSpace(in.Body.Place); given != "" {
		place := strings.TrimSpace(foreign.Clean(given))
		at.Place = &place
		switch {
		case place == "":
			return nil, protocol.Invalid("body.place", "has only invisible characters")
		case utf8.RuneCountInString(place) > protocol.MaxPlaceRunes:
			return nil, protocol.Invalid("body.place", "must have at most 200 characters")
		}
	}
	switch now := h.Now(); {
	case !at.ExpiresAt.After(now):
		return nil, protocol.Invalid("body.expires_at", "must be in the future")
	case at.ExpiresAt.After(now.Add(protocol.MaxLocationLifetime)):
		return nil, protocol.Invalid("body.expires_at", "must be at most 24 hours ahead")
	}
	return location(h.Store.PutLocation(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, at))
}

func (h *Handlers) deleteLocation(ctx context.Context, in *resource.InConversation) (*resource.Nothing, error) {
	return nil, h.Store.DeleteLocation(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID)
}
