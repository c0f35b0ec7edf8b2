// Package anthropic calls models in Anthropic's Messages format. Thinking is streamed as
// reasoning. Its signed blocks are stored and sent back with the step's message, as the format requires between tool
// calls.
//
// The package only encodes requests and decodes answers: package model sends them, repeats them and decides what a failure means. It knows
// no account, no turn and no store. Package open creates its models from the configuration.
package anthropic

import (
	"context"

	"turnstone/actors/llm"
	"turnstone/providers/model"
)

// Family is the result of Model.Family.
const Family = "anthropic"

const (
	defaultBaseURL = "https://api.anthropic.com"
	apiVersion     = "2023-06-01"
	// minThinking is the smallest thinking budget that the format accepts, and the least that is left for the answer.
	minThinking = 1024
)

// Options configure a Model.
type Options struct {
	BaseURL string // without /v1; empty means Anthropic's own
	APIKey  string
	// Prefill permits that a trailing assistant message is continued (prefill). It is off by default, because the
	// models since Claude Opus 4.6 refuse such requests. A request with a prefill is sent without thinking, because the
	// format does not allow both.
	Prefill bool
	Client  model.Options
}

// Model implements llm.Model.
type Model struct {
	client    *model.Client
	key       string
	continues bool
}

var _ llm.Model = (*Model)(nil)

// New returns a model, or an error if options are invalid.
func New(options Options) (*Model, error) {
	base := model.TrimBase(options.BaseURL, "/v1")
	if base == "" {
		base = defaultBaseURL
	}
	options.Client.Secret = options.APIKey
	client, err := model.NewClient(Family, base, options.Client)
	if err != nil {
		return nil, err
	}
	return &Model{client: client, key: options.APIKey, continues: options.Prefill}, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	return m.client.Stream(ctx, request, emit, func(ctx context.Context, call *model.Call) error {
		return m.attempt(ctx, request, call)
	})
}

// Continues implements llm.Model.
func (m *Model) Continues() bool { return m.continues }

// Lessons returns what the refusals of a model taught; see model.Client.Lessons.
func (m *Model) Lessons(name string) []string { return m.client.Lessons(name) }

// Family implements llm.Model.
func (m *Model) Family() string { return Family }

// Ready implements llm.Model.
func (m *Model) Ready(ctx context.Context) error {
	return m.client.Ready(ctx, "v1/models", m.header())
}
