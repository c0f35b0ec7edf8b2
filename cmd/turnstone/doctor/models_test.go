package doctor

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/settings"
)

// TestDoctorTriesEveryRoute uses a provider with three models: one that knows no temperature, one without tools, and one
// that does not exist.
func TestDoctorTriesEveryRoute(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		refuse := func(status int, message string) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, message)
		}
		delta := `{"content":"ok"}`
		switch {
		case strings.Contains(text, `"model":"none"`):
			refuse(http.StatusNotFound, "The model does not exist")
			return
		case strings.Contains(text, `"temperature"`):
			refuse(http.StatusBadRequest, "Unsupported parameter: 'temperature'")
			return
		case strings.Contains(text, `"model":"plain"`) && strings.Contains(text, `"tools"`):
			refuse(http.StatusBadRequest, "this model does not support tools")
			return
		case strings.Contains(text, `"tools"`):
			delta = `{"tool_calls":[{"index":0,"id":"c1","function":{"name":"ping","arguments":"{}"}}]}`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":%s,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", delta)
	}))
	defer provider.Close()
	route := func(model, more string) string {
		return fmt.Sprintf(`{"api":"chat","base_url":%q,"model":%q%s}`, provider.URL, model, more)
	}
	file := filepath.Join(t.TempDir(), "models.json")
	text := `{"balanced":[` + route("able", `,"temperature":1`) + `,` + route("plain", "") + `],"coding":[` + route("none", "") + `]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	checks := &installation{config: &settings.Config{Model: settings.Model{Provider: "scripted", Config: file}}}
	out := ""
	for _, found := range checks.routes(t.Context()) {
		out += printed(found)
	}
	want := `ok    completion of balanced-1 (able)
note  it calls tools
note  the model accepts no temperature: set "drop": ["temperature"]
ok    completion of balanced-2 (plain)
note  it did not call the tool that it was asked to call
note  the model accepts no tools: set "tools": false
WRONG completion of coding-1 (none): model_rejected: the model provider returned 404 message=The model does not exist
      → see docs/providers.md for what the error means
`
	if out != want {
		t.Errorf("doctor printed:\n%s\nwant:\n%s", out, want)
	}
	if found := (&installation{config: &settings.Config{Model: settings.Model{Provider: "scripted"}}}).routes(t.Context()); found != nil {
		t.Errorf("scripted: %v", found)
	}
}
