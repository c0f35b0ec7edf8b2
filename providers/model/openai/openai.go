// Package openai calls models in OpenAI's two wire formats: Chat Completions ("chat"), which
// Ollama, llama.cpp, vLLM and most gateways also speak, and Responses ("responses"), which carries reasoning summaries
// and encrypted reasoning from step to step. Responses requests set store to false, so that the provider stores
// nothing. No environment variables are read.
package openai

import (
	"context"
	"fmt"

	"turnstone/actors/llm"
	"turnstone/providers/model"
)

// Family is the result of Model.Family.
const Family = "openai"

// The wire formats.
const (
	APIChat      = "chat"
	APIResponses = "responses"
)

const (
	openaiHost     = "api.openai.com"
	defaultBaseURL = "https://" + openaiHost + "/v1"
)

// Options configure a Model.
type Options struct {
	BaseURL string // without /chat/completions or /responses; empty means OpenAI's own
	APIKey  string // empty: no key is sent, for local servers
	API     string // APIChat or APIResponses; empty: APIResponses at OpenAI itself, else APIChat
	Client  model.Options
}

// Model implements llm.Model.
type Model struct {
	client  *model.Client
	key     string
	api     string
	native  bool    // OpenAI itself or Azure OpenAI: they refuse max_tokens, other servers need it
	schemas schemas // of both formats
}

var _ llm.Model = (*Model)(nil)

// New returns a model, or an error if options are invalid.
func New(options Options) (*Model, error) {
	base := model.TrimBase(options.BaseURL, "")
	if base == "" {
		base = defaultBaseURL
	}
	api := options.API
	if api != "" && api != APIChat && api != APIResponses {
		return nil, fmt.Errorf("the model API must be %q or %q", APIChat, APIResponses)
	}
	options.Client.Secret = options.APIKey
	client, err := model.NewClient(Family, base, options.Client)
	if err != nil {
		return nil, err
	}
	host := client.Host()
	switch {
	case api == "" && host == openaiHost:
		api = APIResponses
	case api == "":
		api = APIChat
	}
	return &Model{
		client: client, key: options.APIKey, api: api,
		native: host == openaiHost || isAzure(host),
	}, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	attempt := m.streamChat
	if m.api == APIResponses {
		attempt = m.streamResponses
	}
	return m.client.Stream(ctx, request, emit, func(ctx context.Context, call *model.Call) error {
		return attempt(ctx, request, call)
	})
}

// Continues implements llm.Model. It returns false, because neither format guarantees that a trailing assistant
// message is continued.
func (m *Model) Continues() bool { return false }

// Lessons returns what the refusals of a model taught; see model.Client.Lessons.
func (m *Model) Lessons(name string) []string { return m.client.Lessons(name) }

// Family implements llm.Model.
func (m *Model) Family() string { return Family }

// Ready implements llm.Model.
func (m *Model) Ready(ctx context.Context) error {
	return m.client.Ready(ctx, "models", m.header())
}
