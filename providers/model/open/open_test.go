package open_test

import (
	"testing"

	"turnstone/providers/model/open"
)

func TestEveryProviderIsKnown(t *testing.T) {
	for _, config := range []open.Config{
		{}, {Provider: "scripted"}, {Provider: "openai"}, {Provider: "openai", API: "responses"}, {Provider: "anthropic", APIKey: "k"},
	} {
		made, err := open.Model(config)
		if err != nil || (config.Provider != "" && made.Family() != config.Provider) {
			t.Errorf("%+v: %v", config, err)
		}
	}
	for _, wrong := range []open.Config{
		{Provider: "other"}, {Provider: "openai", API: "other"}, {Provider: "openai", BaseURL: "nowhere"}, {Provider: "anthropic", BaseURL: "ftp://x"},
	} {
		if _, err := open.Model(wrong); err == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
}
