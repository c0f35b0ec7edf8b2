// Package openai asks models through OpenAI's two wire formats, by the official SDK: Chat Completions ("chat"), which
// Ollama, llama.cpp, vLLM and most gateways speak too, and Responses ("responses"), which carries reasoning summaries
// and sealed reasoning from step to step. Nothing is stored at the provider (store is false), nothing is read from
// the environment.
package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"turnstone/actors"
	"turnstone/providers/model"
)

// Family is what Model.Family answers.
const Family = "openai"

// The wire formats.
const (
	APIChat      = "chat"
	APIResponses = "responses"
)

const defaultBaseURL = "https://api.openai.com/v1"

// Options say where to ask and how.
type Options struct {
	BaseURL string // up to and without /chat/completions; empty means OpenAI's own
	APIKey  string // empty sends none, as local servers want it
	API     string // APIChat (also when empty) or APIResponses
	Times   model.Options
}

// Model implements actors.Model.
type Model struct {
	client    *model.Client
	key       string
	api       string
	native    bool // OpenAI itself, or its models at Azure: max_tokens is refused there and needed elsewhere
	chat      sdk.ChatCompletionService
	responses responses.ResponseService
	schemas   schemas // of requests by Chat Completions
}

var _ actors.Model = (*Model)(nil)

// New returns a model, or what is wrong with options.
func New(options Options) (*Model, error) {
	base := model.TrimBase(options.BaseURL, "")
	if base == "" {
		base = defaultBaseURL
	}
	api := options.API
	if api == "" {
		api = APIChat
	}
	if api != APIChat && api != APIResponses {
		return nil, fmt.Errorf("the model API must be %q or %q", APIChat, APIResponses)
	}
	client, err := model.NewClient(Family, base, options.Times)
	if err != nil {
		return nil, err
	}
	settings := []option.RequestOption{option.WithBaseURL(base), option.WithMaxRetries(0)}
	if options.APIKey != "" {
		settings = append(settings, option.WithAPIKey(options.APIKey))
	}
	host := client.Host()
	return &Model{
		client: client, key: options.APIKey, api: api,
		native:    host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com"),
		chat:      sdk.NewChatCompletionService(settings...), // not NewClient, which reads the environment
		responses: responses.NewResponseService(settings...),
	}, nil
}

// Stream implements actors.Model.
func (m *Model) Stream(ctx context.Context, request actors.ModelRequest, emit func(actors.ModelChunk) error) error {
	attempt := m.streamChat
	if m.api == APIResponses {
		attempt = m.streamResponses
	}
	return m.client.Ask(ctx, request, emit, func(ctx context.Context, call *model.Call) error {
		return attempt(ctx, request, call)
	})
}

// Continues is false: neither format promises to go on from a trailing assistant message.
func (m *Model) Continues() bool { return false }

// Family implements actors.Model.
func (m *Model) Family() string { return Family }

// Ready implements actors.Model.
func (m *Model) Ready(ctx context.Context) error {
	header := http.Header{}
	if m.key != "" {
		header.Set("Authorization", "Bearer "+m.key)
	}
	return m.client.Ready(ctx, "models", header)
}

// namedError is the error that an event of either format names in place of what was asked for. Gateways that copy the
// field into every event say null there.
func namedError(data []byte) error {
	var event struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return model.Protocol(err)
	}
	if len(event.Error) > 0 && string(event.Error) != "null" {
		return model.ProviderFailure(0, nil, data)
	}
	return nil
}

// parameters is the tool's schema as the SDK wants it.
func parameters(tool actors.ModelTool) (map[string]any, error) {
	schema := map[string]any{"type": "object", "properties": map[string]any{}}
	if len(tool.Schema) == 0 {
		return schema, nil
	}
	if err := json.Unmarshal(tool.Schema, &schema); err != nil {
		return nil, model.Rejected(fmt.Errorf("the schema of tool %s: %w", tool.Name, err))
	}
	return schema, nil
}

// toolResult marks failures in the text: neither format has a field for them.
func toolResult(message actors.ModelMessage) string {
	if message.ToolFailed {
		return "Error: " + message.Text
	}
	return message.Text
}
