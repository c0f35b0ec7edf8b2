// Package open turns configuration into a model. It knows every provider, and nothing else does: a new one is a folder
// beside this one and a case here.
package open

import (
	"fmt"

	"turnstone/actors"
	"turnstone/providers/model"
	"turnstone/providers/model/anthropic"
	"turnstone/providers/model/openai"
	"turnstone/providers/model/scripted"
)

// Config says which provider to ask and how.
type Config struct {
	Provider string // "scripted" (also when empty), "openai" or "anthropic"
	API      string // of "openai": "chat" (also when empty) or "responses"
	BaseURL  string // empty means the vendor's own
	APIKey   string // empty sends none
	// Prefill lets an answer that was cut be continued, where provider and model can: "anthropic", before Opus 4.6.
	Prefill  bool
	Times    model.Options
	Scripted scripted.Options
}

// Model returns the model that config describes, or what is wrong with it. It asks nobody; Model.Ready does.
func Model(config Config) (actors.Model, error) {
	switch config.Provider {
	case "", scripted.Family:
		return scripted.New(config.Scripted), nil
	case openai.Family:
		return openai.New(openai.Options{
			BaseURL: config.BaseURL, APIKey: config.APIKey, API: config.API, Times: config.Times,
		})
	case anthropic.Family:
		return anthropic.New(anthropic.Options{
			BaseURL: config.BaseURL, APIKey: config.APIKey, Continues: config.Prefill, Times: config.Times,
		})
	}
	return nil, fmt.Errorf("the model provider must be %q, %q or %q, not %q",
		scripted.Family, openai.Family, anthropic.Family, config.Provider)
}
