package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"time"

	// Time zones, for machines without a time zone database.
	_ "time/tzdata"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
)

//go:embed current_time.md
var currentTimeDescription string

// CurrentTime returns the current time in a time zone.
type CurrentTime struct{}

// Spec implements toolbox.Tool.
func (CurrentTime) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "current_time", Kind: "compute", Title: "Look at the clock", Description: currentTimeDescription, Effect: protocol.EffectRead, Risk: protocol.RiskLow,
		Reversibility: protocol.Reversible, Repeatable: true,
		Timeout: 5 * time.Second,
		Schema:  json.RawMessage(`{"type":"object","properties":{"time_zone":{"type":"string","description":"IANA name, as Europe/Berlin."}},"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool: {"time_zone": "…"?} gives the weekday, the time and the zone.
func (CurrentTime) Run(_ context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		TimeZone string `json:"time_zone"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "The input is not a JSON object."}
	}
	zone, err := time.LoadLocation(in.TimeZone)
	if err != nil || in.TimeZone == "Local" {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_time_zone", Detail: "There is no time zone with this name."}
	}
	return toolbox.Result{Output: time.Now().In(zone).Format("Monday, 2006-01-02 15:04:05 MST (-07:00)")}, nil
}
