package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

//go:embed location.md
var locationDescription string

// Locations reads the location contexts of conversations. Package persistence/memory implements it.
type Locations interface {
	// Location returns where the user of a conversation is; protocol.CodeConsentRequired without a consent, and
	// protocol.CodeNotFound if no location is set or it has expired.
	Location(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) (*protocol.LocationContext, error)
}

// Location returns where the user of the conversation is.
type Location struct{ Locations Locations }

// Spec implements toolbox.Tool. The tool is offered without a consent too, so that the model can tell the user what is missing.
func (Location) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "location", Kind: "location", Title: "Look up your location", Description: locationDescription, Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible,
		Private: true, Consent: protocol.SourceLocation, Explains: true, Timeout: 10 * time.Second, Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (l Location) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	at, err := l.Locations.Location(ctx, call.AccountID, call.ConversationID)
	switch {
	case protocol.CodeOf(err) == protocol.CodeConsentRequired:
		return toolbox.Result{Output: "The location is not known: the user has not allowed its use. It can be allowed in the settings.", Framed: true, Empty: true}, nil
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		return toolbox.Result{Output: "The location is not known: none is set for this conversation, or it has expired.", Framed: true, Empty: true}, nil
	case err != nil:
		return toolbox.Result{}, err
	}
	output := fmt.Sprintf("Latitude %g°, longitude %g°, within %.0f m, as of %s.", at.Latitude, at.Longitude, at.AccuracyM, at.UpdatedAt.UTC().Format(time.RFC3339))
	if !at.Precise {
		output += " The coordinates are rounded: the user has allowed only an approximate location."
	}
	if at.Place != nil {
		output += "\n" + foreign.Frame(foreign.Result, foreign.Attribute("name", "place"), *at.Place)
	}
	return toolbox.Result{Output: output, Framed: true}, nil
}
