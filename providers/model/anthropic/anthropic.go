// Package anthropic calls models in Anthropic's Messages format, with the official SDK. Thinking is streamed as
// reasoning. Its signed blocks are stored and sent back with the step's message, as the format requires between tool
// calls.
package anthropic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

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
	messages  sdk.MessageService
}

var _ llm.Model = (*Model)(nil)

// New returns a model, or an error if options are invalid.
func New(options Options) (*Model, error) {
	base := model.TrimBase(options.BaseURL, "/v1")
	if base == "" {
		base = defaultBaseURL
	}
	client, err := model.NewClient(Family, base, options.Client)
	if err != nil {
		return nil, err
	}
	settings := []option.RequestOption{option.WithBaseURL(base), option.WithMaxRetries(0)}
	if options.APIKey != "" {
		settings = append(settings, option.WithAPIKey(options.APIKey))
	}
	return &Model{
		client: client, key: options.APIKey, continues: options.Prefill,
		messages: sdk.NewMessageService(settings...), // not NewClient, which reads the environment
	}, nil
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	return m.client.Stream(ctx, request, emit, func(ctx context.Context, call *model.Call) error {
		return m.attempt(ctx, request, call)
	})
}

// Continues implements llm.Model.
func (m *Model) Continues() bool { return m.continues }

// Family implements llm.Model.
func (m *Model) Family() string { return Family }

// Ready implements llm.Model.
func (m *Model) Ready(ctx context.Context) error {
	header := http.Header{"Anthropic-Version": {apiVersion}}
	if m.key != "" {
		header.Set("X-Api-Key", m.key)
	}
	return m.client.Ready(ctx, "v1/models", header)
}

// paramsOf returns the parameters of a request, and the white space that messagesOf removed.
func paramsOf(request llm.Request) (sdk.MessageNewParams, string) {
	messages, trimmed := messagesOf(request.Messages)
	params := sdk.MessageNewParams{
		Model: request.Model, Messages: messages, MaxTokens: int64(request.MaxOutputTokens),
	}
	if request.System != "" {
		params.System = []sdk.TextBlockParam{{Text: request.System}}
	}
	for _, tool := range request.Tools {
		schema := tool.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
			Name: tool.Name, Description: param.NewOpt(tool.Description),
			InputSchema: param.Override[sdk.ToolInputSchemaParam](schema),
		}})
	}
	if request.ReasoningEffort != "" && !continues(request.Messages) {
		think(&params, request.ReasoningEffort)
	}
	return params, trimmed
}

// silentModels do not think. budgetModels, which are newer, think within a budget of tokens. All later models choose
// how much they think, guided by the effort.
var (
	silentModels = []string{
		"claude-2", "claude-instant", "claude-3-haiku", "claude-3-sonnet", "claude-3-opus", "claude-3-5",
	}
	budgetModels = []string{
		"claude-3-7", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4-5",
		"claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5",
	}
	budgets = map[string]int64{"low": 2048, "medium": 8192, "high": 24576}
)

func think(params *sdk.MessageNewParams, effort string) {
	switch {
	case anyPrefix(params.Model, silentModels):
	case anyPrefix(params.Model, budgetModels):
		if budget := min(budgets[effort], params.MaxTokens-minThinking); budget >= minThinking {
			params.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
		}
	default:
		params.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{
			Display: sdk.ThinkingConfigAdaptiveDisplaySummarized,
		}
		params.OutputConfig.Effort = sdk.OutputConfigEffort(effort)
	}
}

func anyPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// continues reports whether the last message is an assistant's text that is to be continued.
func continues(messages []llm.Message) bool {
	return len(messages) > 0 && messages[len(messages)-1].Role == "assistant"
}

// messagesOf joins adjacent messages of one role, because the format requires alternating roles: tool results and the
// user's text after them become one message. It removes trailing white space from a text to be continued, because the
// format refuses it, and returns it as trimmed: the continuation may start with the same white space.
func messagesOf(messages []llm.Message) (joined []sdk.MessageParam, trimmed string) {
	for i, message := range messages {
		if i == len(messages)-1 && continues(messages) {
			text := strings.TrimRight(message.Text, " \t\r\n")
			message.Text, trimmed = text, message.Text[len(text):]
		}
		role, blocks := blocksOf(message)
		if last := len(joined) - 1; last >= 0 && joined[last].Role == role {
			joined[last].Content = append(joined[last].Content, blocks...)
		} else if len(blocks) > 0 {
			joined = append(joined, sdk.MessageParam{Role: role, Content: blocks})
		}
	}
	return joined, trimmed
}

func blocksOf(message llm.Message) (sdk.MessageParamRole, []sdk.ContentBlockParamUnion) {
	var blocks []sdk.ContentBlockParamUnion
	add := func(block sdk.ContentBlockParamUnion) { blocks = append(blocks, block) }
	switch message.Role {
	case "assistant":
		model.Replay(message, Family,
			func(raw json.RawMessage) {
				var block thought
				switch {
				case json.Unmarshal(raw, &block) != nil:
				case block.Redacted != "":
					add(sdk.NewRedactedThinkingBlock(block.Redacted))
				default:
					add(sdk.NewThinkingBlock(block.Signature, block.Thinking))
				}
			},
			func(text string) {
				if strings.TrimSpace(text) != "" { // the format refuses blank blocks
					add(sdk.NewTextBlock(text))
				}
			},
			func(call llm.ToolCall) { add(sdk.NewToolUseBlock(call.ID, call.Input, call.Name)) })
		return sdk.MessageParamRoleAssistant, blocks
	case "tool":
		add(sdk.NewToolResultBlock(message.ToolCallID, message.Text, message.ToolFailed))
	default:
		for _, picture := range message.Pictures {
			add(sdk.NewImageBlockBase64(picture.MediaType, base64.StdEncoding.EncodeToString(picture.Content)))
		}
		if strings.TrimSpace(message.Text) != "" {
			add(sdk.NewTextBlock(message.Text))
		}
	}
	return sdk.MessageParamRoleUser, blocks
}
