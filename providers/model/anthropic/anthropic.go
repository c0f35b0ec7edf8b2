// Package anthropic asks models through Anthropic's Messages format, by the official SDK. Thinking is streamed as
// reasoning; its signed blocks are kept and sent back with the step's message, as the format wants it between tool
// calls.
package anthropic

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"turnstone/actors"
	"turnstone/providers/model"
)

// Family is what Model.Family answers.
const Family = "anthropic"

const (
	defaultBaseURL = "https://api.anthropic.com"
	apiVersion     = "2023-06-01"
	// minThinking is the smallest budget that the format takes, and what is left beside it for the answer.
	minThinking = 1024
)

// Options say where to ask and how.
type Options struct {
	BaseURL string // without /v1; empty means Anthropic's own
	APIKey  string
	// Continues lets a trailing assistant message be continued (prefill). Off by default: the models since Claude
	// Opus 4.6 refuse such requests. Where it is on, a request that continues does so without thinking, which the
	// format does not allow together with a prefill.
	Continues bool
	Times     model.Options
}

// Model implements actors.Model.
type Model struct {
	client    *model.Client
	key       string
	continues bool
	messages  sdk.MessageService
}

var _ actors.Model = (*Model)(nil)

// New returns a model, or what is wrong with options.
func New(options Options) (*Model, error) {
	base := model.TrimBase(options.BaseURL, "/v1")
	if base == "" {
		base = defaultBaseURL
	}
	client, err := model.NewClient(Family, base, options.Times)
	if err != nil {
		return nil, err
	}
	settings := []option.RequestOption{option.WithBaseURL(base), option.WithMaxRetries(0)}
	if options.APIKey != "" {
		settings = append(settings, option.WithAPIKey(options.APIKey))
	}
	return &Model{
		client: client, key: options.APIKey, continues: options.Continues,
		messages: sdk.NewMessageService(settings...), // not NewClient, which reads the environment
	}, nil
}

// Stream implements actors.Model.
func (m *Model) Stream(ctx context.Context, request actors.ModelRequest, emit func(actors.ModelChunk) error) error {
	return m.client.Ask(ctx, request, emit, func(ctx context.Context, call *model.Call) error {
		return m.attempt(ctx, request, call)
	})
}

// Continues implements actors.Model.
func (m *Model) Continues() bool { return m.continues }

// Family implements actors.Model.
func (m *Model) Family() string { return Family }

// Ready implements actors.Model.
func (m *Model) Ready(ctx context.Context) error {
	header := http.Header{"Anthropic-Version": {apiVersion}}
	if m.key != "" {
		header.Set("X-Api-Key", m.key)
	}
	return m.client.Ready(ctx, "v1/models", header)
}

// paramsOf also returns the white space that messagesOf took away.
func paramsOf(request actors.ModelRequest) (sdk.MessageNewParams, string) {
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

// budgetModels think within a budget of tokens; models after them choose for themselves, by effort; models before them
// do not think.
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

// continues says whether the last message is an assistant's text to go on from.
func continues(messages []actors.ModelMessage) bool {
	return len(messages) > 0 && messages[len(messages)-1].Role == "assistant"
}

// messagesOf joins neighbours of one role, as the format's alternation wants it: tool results and what the user says
// after them are one message. Of a text to be continued it takes the white space at the end away, which the format
// refuses, and returns it: the continuation may begin with it again.
func messagesOf(messages []actors.ModelMessage) (joined []sdk.MessageParam, trimmed string) {
	for i, message := range messages {
		if i == len(messages)-1 && continues(messages) {
			kept := strings.TrimRight(message.Text, " \t\r\n")
			message.Text, trimmed = kept, message.Text[len(kept):]
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

func blocksOf(message actors.ModelMessage) (sdk.MessageParamRole, []sdk.ContentBlockParamUnion) {
	var blocks []sdk.ContentBlockParamUnion
	add := func(block sdk.ContentBlockParamUnion) { blocks = append(blocks, block) }
	switch message.Role {
	case "assistant":
		model.Replay(message, Family,
			func(raw json.RawMessage) {
				var kept thought
				switch {
				case json.Unmarshal(raw, &kept) != nil:
				case kept.Redacted != "":
					add(sdk.NewRedactedThinkingBlock(kept.Redacted))
				default:
					add(sdk.NewThinkingBlock(kept.Signature, kept.Thinking))
				}
			},
			func(text string) {
				if strings.TrimSpace(text) != "" { // the format refuses blank blocks
					add(sdk.NewTextBlock(text))
				}
			},
			func(call actors.ModelToolCall) { add(sdk.NewToolUseBlock(call.ID, call.Input, call.Name)) })
		return sdk.MessageParamRoleAssistant, blocks
	case "tool":
		add(sdk.NewToolResultBlock(message.ToolCallID, message.Text, message.ToolFailed))
	default:
		if strings.TrimSpace(message.Text) != "" {
			add(sdk.NewTextBlock(message.Text))
		}
	}
	return sdk.MessageParamRoleUser, blocks
}
