package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"turnstone/actors/llm"
	"turnstone/protocol/turnlog"
	"turnstone/providers/model"
)

// isAzure reports whether a host is one of Azure OpenAI.
func isAzure(host string) bool {
	return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".cognitiveservices.azure.com") || strings.HasSuffix(host, ".services.ai.azure.com")
}

// header returns the headers with the credentials.
func (m *Model) header() http.Header {
	if m.key == "" {
		return http.Header{}
	}
	if isAzure(m.client.Host()) {
		return http.Header{"Api-Key": {m.key}}
	}
	return http.Header{"Authorization": {"Bearer " + m.key}}
}

// parameters returns the tool's schema as an object.
func parameters(tool llm.Tool) (map[string]any, error) {
	schema := map[string]any{"type": "object", "properties": map[string]any{}}
	if len(tool.Schema) == 0 {
		return schema, nil
	}
	if err := json.Unmarshal(tool.Schema, &schema); err != nil {
		return nil, model.Rejected(fmt.Errorf("the schema of tool %s: %w", tool.Name, err))
	}
	return schema, nil
}

// toolResult returns the text of a tool result. It marks a failure in the text, because neither format has a field for
// it.
func toolResult(message llm.Message) string {
	if message.ToolFailed {
		return "Error: " + message.Text
	}
	return message.Text
}

// dataURL returns a picture as an address that contains it, which is how both formats carry pictures.
func dataURL(picture turnlog.Picture) string {
	return "data:" + picture.MediaType + ";base64," + base64.StdEncoding.EncodeToString(picture.Content)
}
