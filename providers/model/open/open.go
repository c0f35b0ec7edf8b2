// Package open creates a model from the configuration. It is the only package that imports every provider: a new
// provider needs a folder next to this one, a case in Model and a line in apis.
package open

import (
	"fmt"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/anthropic"
	"turnstone/providers/model/openai"
	"turnstone/providers/model/scripted"
)

// Config selects the provider and sets its options.
type Config struct {
	Provider string // "scripted" (also when empty), "openai" or "anthropic"
	API      string // of "openai": "chat" (also when empty) or "responses"
	BaseURL  string // empty means the vendor's own
	APIKey   string // empty: no key is sent
	// Prefill permits that a cut answer is continued, if provider and model support it: "anthropic", with models before
	// Opus 4.6.
	Prefill  bool
	Client   model.Options
	Scripted scripted.Options
}

// api is a wire format by its name in the configuration of a route.
type api struct {
	provider, variant string // of Config
	pictureDetail     bool   // it says how exactly a picture is read
}

var apis = map[string]api{
	"chat":          {provider: openai.Family, variant: "chat", pictureDetail: true},
	"responses":     {provider: openai.Family, variant: "responses", pictureDetail: true},
	"anthropic":     {provider: anthropic.Family},
	scripted.Family: {provider: scripted.Family, pictureDetail: true},
}

// Use sets the provider and the API of a wire format: "chat", "responses", "anthropic" or "scripted".
func (c *Config) Use(name string) error {
	found, known := apis[name]
	if !known {
		return fmt.Errorf("api: invalid value %q (want chat, responses or anthropic)", name)
	}
	c.Provider, c.API = found.provider, found.variant
	return nil
}

// HasPictureDetail reports whether requests in a wire format can say how exactly a picture is read.
func HasPictureDetail(name string) bool { return apis[name].pictureDetail }

// Model returns the model that config describes, or an error if config is invalid. It sends no request; the model's
// Ready does.
func Model(config Config) (llm.Model, error) {
	switch config.Provider {
	case "", scripted.Family:
		return scripted.New(config.Scripted), nil
	case openai.Family:
		return openai.New(openai.Options{
			BaseURL: config.BaseURL, APIKey: config.APIKey, API: config.API, Client: config.Client,
		})
	case anthropic.Family:
		return anthropic.New(anthropic.Options{
			BaseURL: config.BaseURL, APIKey: config.APIKey, Prefill: config.Prefill, Client: config.Client,
		})
	}
	return nil, fmt.Errorf("the model provider must be %q, %q or %q, not %q",
		scripted.Family, openai.Family, anthropic.Family, config.Provider)
}
