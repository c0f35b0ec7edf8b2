package open_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/open"
)

// fine answers every request in the format chat, and notes the bodies.
func fine(bodies *[]map[string]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body := map[string]any{}
		_ = json.Unmarshal(text, &body)
		*bodies = append(*bodies, body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"fine\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
}

func call(t *testing.T, m llm.Model, route string) error {
	t.Helper()
	request := llm.Request{Route: route, Model: "m", MaxOutputTokens: 10, Messages: []llm.Message{{Role: "user", Text: "hi"}}}
	return m.Stream(context.Background(), request, func(llm.Chunk) error { return nil })
}

func TestEachRouteHasItsOwnClientAndMembers(t *testing.T) {
	var first, second []map[string]any
	one, two := httptest.NewServer(fine(&first)), httptest.NewServer(fine(&second))
	defer one.Close()
	defer two.Close()
	routed, err := open.Models([]open.Route{
		{Name: "one", Config: open.Config{Provider: "openai", BaseURL: one.URL}},
		{Name: "two", Config: open.Config{Provider: "openai", BaseURL: two.URL, Client: model.Options{
			Extra: map[string]json.RawMessage{"temperature": json.RawMessage("0.2")}, Drop: []string{"stream_options"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range []string{"", "one", "two"} {
		if err := call(t, routed, route); err != nil {
			t.Fatal(err)
		}
	}
	if len(first) != 2 || len(second) != 1 {
		t.Fatalf("%d and %d requests", len(first), len(second))
	}
	if first[0]["temperature"] != nil || first[0]["stream_options"] == nil || second[0]["temperature"] != 0.2 || second[0]["stream_options"] != nil {
		t.Errorf("%v\n%v", first[0], second[0])
	}
}

func TestAProxyAndItsOwnCertificatesAreUsed(t *testing.T) {
	var bodies []map[string]any
	server := httptest.NewTLSServer(fine(&bodies))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	trusting, err := open.Model(open.Config{Provider: "openai", BaseURL: server.URL, Client: model.Options{CAFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t, trusting, ""); err != nil {
		t.Error(err)
	}
	proxied := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied = r.URL.String()
		fine(&bodies).ServeHTTP(w, r)
	}))
	defer proxy.Close()
	behind, err := open.Model(open.Config{Provider: "openai", BaseURL: "http://model.example.org/v1", Client: model.Options{Proxy: proxy.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t, behind, ""); err != nil || !strings.HasPrefix(proxied, "http://model.example.org/v1/chat") {
		t.Errorf("%v, %s", err, proxied)
	}
	for _, wrong := range []model.Options{{Proxy: "ftp://x"}, {CAFile: file + "x"}, {CAFile: "routed_test.go"}} {
		if _, err := open.Model(open.Config{Provider: "openai", Client: wrong}); err == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
}
