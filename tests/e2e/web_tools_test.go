package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

// browsingModel searches for the tide, reads a page, and cites both.
func browsingModel(page string) func(modeltest.Request) modeltest.Step {
	number := regexp.MustCompile(`<webpage number="(\d+)"`)
	return func(request modeltest.Request) modeltest.Step {
		var results []string
		for _, m := range request.Messages {
			if m.Role == "tool" {
				results = append(results, m.Text)
			}
		}
		call := func(id, name string, input map[string]any) modeltest.Step {
			encoded, _ := json.Marshal(input)
			return modeltest.Step{ToolCalls: []llm.ToolCall{{ID: id, Name: name, Input: encoded}}}
		}
		switch len(results) {
		case 0:
			return call("call_1", "web_search", map[string]any{"query": "spring tide"})
		case 1:
			return call("call_2", "read_page", map[string]any{"url": page})
		}
		found, read := number.FindStringSubmatch(results[0]), number.FindStringSubmatch(results[1])
		if found == nil || read == nil || !strings.Contains(results[1], pdfAnswer) {
			return modeltest.Step{Text: []string{"The tools returned: " + strings.Join(results, " | ")}}
		}
		return modeltest.Step{Text: []string{"At new moon [" + found[1] + "], by twelve metres [" + read[1] + ":17]."}}
	}
}

// startBrowsing starts a service whose model reads a page of the web.
func startBrowsing(t *testing.T, page string, settings ...string) *sitetest.User {
	t.Helper()
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: browsingModel(page)})
	t.Cleanup(server.Close)
	s := sitetest.NewSite(t, append([]string{"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=" + server.URL, "TURNSTONE_MODEL_BALANCED=reader", "TURNSTONE_MODEL_CODING=reader"}, settings...)...)
	s.Start()
	return sitetest.NewUser(t, s.Base)
}

// pdfOnTheWeb serves a PDF, and returns its address.
func pdfOnTheWeb(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pilot.pdf" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = io.WriteString(w, pdfOf(20, 17))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/pilot.pdf"
}

func TestAModelSearchesTheWebAndCitesAPageOfAPDF(t *testing.T) {
	t.Parallel()
	page := pdfOnTheWeb(t)
	u := startBrowsing(t, page, "TURNSTONE_SEARCH_PROVIDERS=bundled", "TURNSTONE_WEB_ALLOW=127.0.0.1", "TURNSTONE_WEB_SEARCHES_PER_DAY=1")
	parts := answerOf(t, u, u.NewConversation(t), "How high is the spring tide? The answer is in "+page)
	if len(parts) != 3 || parts[0].State != protocol.ToolSucceeded || parts[1].State != protocol.ToolSucceeded {
		t.Fatalf("the parts are %+v", parts)
	}
	cited := parts[2].Citations
	if len(cited) != 2 || cited[0].URL != "https://corpus.turnstone.example/spring-and-neap-tides" || cited[0].Title != "Spring tides and neap tides" ||
		string(cited[1].URL) != page || cited[1].Page != 17 || cited[1].Title != "pilot.pdf" {
		t.Errorf("%s: %+v", parts[2].Text, cited)
	}
	parts = answerOf(t, u, u.NewConversation(t), "And again?")
	if len(parts) == 0 || parts[0].Error == nil || parts[0].Error.Code != "daily_limit" || !strings.Contains(parts[0].Error.Detail, "resets at") {
		t.Errorf("a second search of the day: %+v", parts)
	}
}

func TestWithoutASearchProviderTheWebIsNotRead(t *testing.T) {
	t.Parallel()
	u := startBrowsing(t, pdfOnTheWeb(t), "TURNSTONE_WEB_ALLOW=127.0.0.1")
	for _, part := range answerOf(t, u, u.NewConversation(t), "How high is it?") {
		if part.ToolName != "" && (part.State != protocol.ToolFailed || !strings.HasPrefix(part.Error.Detail, "The web cannot be searched")) {
			t.Errorf("%+v", part)
		}
	}
}
