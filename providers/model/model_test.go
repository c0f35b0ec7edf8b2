package model

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/providers/tokens"
)

func TestSampleCountsWhatItDoesNotKeep(t *testing.T) {
	var kept sample
	for range 3 * outputSample / 10 {
		kept.add("ten bytes.")
	}
	if got, want := kept.tokens(), 3*tokens.Estimate(strings.Repeat("ten bytes.", outputSample/10)); got < want*9/10 || got > want*11/10 {
		t.Errorf("got %d, want about %d", got, want)
	}
	if kept.text.Len() > outputSample {
		t.Errorf("kept %d bytes", kept.text.Len())
	}
}

func TestErrorsOfProvidersAreRead(t *testing.T) {
	for body, want := range map[string]providerError{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`:             {Type: "t", Code: "c", Param: "p", Message: "m"},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`:      {Type: "overloaded_error", Code: "", Param: "", Message: "m"},
		`{"object":"error","message":"m","type":"BadRequestError","code":400}`:    {Type: "BadRequestError", Code: "400", Param: "", Message: "m"},
		`{"error":"model not found"}`:                                             {Type: "", Code: "", Param: "", Message: "model not found"},
		`{"type":"error","code":"server_error","message":"m","param":null}`:       {Type: "error", Code: "server_error", Param: "", Message: "m"},
		`{"error":{"code":400,"message":"m","type":"exceed_context_size_error"}}`: {Type: "exceed_context_size_error", Code: "400", Param: "", Message: "m"},
		`<html>`: {}, ``: {}, `[]`: {}, `null`: {}, `{"error":null}`: {}, `{"error":[1]}`: {},
	} {
		if got := readProviderError([]byte(body)); got != want {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestProviderErrorsMapToCodes(t *testing.T) {
	for _, each := range []struct {
		status    int
		body      string
		code      protocol.TurnErrorCode
		retryable bool
	}{
		{429, `{"error":{"code":"insufficient_quota"}}`, protocol.ModelCreditUsedUp, false},
		{429, ``, protocol.ModelRateLimited, true},
		{429, `{"error":{"message":"Rate limit for the moderation model reached"}}`, protocol.ModelRateLimited, true},
		{529, ``, protocol.ModelUnavailable, true},
		{408, ``, protocol.ModelUnavailable, true},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, protocol.ModelContextExceeded, false},
		{400, `{"error":{"type":"exceed_context_size_error"}}`, protocol.ModelContextExceeded, false},
		{422, ``, protocol.ModelRejected, false},
		{302, ``, protocol.ModelProtocol, false},
		{0, `{"error":{"code":503,"message":"busy"}}`, protocol.ModelUnavailable, true},
		{0, `{"type":"error","error":{"type":"overloaded_error"}}`, protocol.ModelUnavailable, true},
		{0, `{"code":"rate_limit_exceeded"}`, protocol.ModelRateLimited, true},
		{0, `{"code":"invalid_prompt"}`, protocol.ModelRejected, false},
		{0, `{"code":"context_length_exceeded"}`, protocol.ModelContextExceeded, false},
		{0, `{"error":{"type":"authentication_error"}}`, protocol.ModelUnauthorized, false},
	} {
		got := ProviderFailure(each.status, nil, []byte(each.body))
		if got.Code != each.code || got.Retryable != each.retryable {
			t.Errorf("%d %s: %+v", each.status, each.body, got)
		}
	}
}

func TestRetryAfterIsReadInEveryForm(t *testing.T) {
	for _, each := range []struct {
		name, value string
		low, high   time.Duration
	}{
		{"Retry-After", "2", 2 * time.Second, 2 * time.Second},
		{"Retry-After", "0.5", time.Second / 2, time.Second / 2},
		{"Retry-After-Ms", "250", time.Second / 4, time.Second / 4},
		{"Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), 50 * time.Second, time.Minute},
		{"Retry-After", "-1", 0, 0},
		{"Retry-After", "NaN", 0, 0},
		{"Retry-After", "1e300", 0, 0},
		{"Retry-After", "soon", 0, 0},
	} {
		if got := retryAfter(http.Header{each.name: {each.value}}); got < each.low || got > each.high {
			t.Errorf("%s: %s gave %s", each.name, each.value, got)
		}
	}
}

func TestToolInputIsAlwaysAnObject(t *testing.T) {
	for arguments, want := range map[string]string{
		"": "{}", "null": "{}", " {\"a\":1} ": `{"a":1}`, "{\"a\":": `{"invalid_arguments":"{\"a\":"}`, "[1]": `{"invalid_arguments":"[1]"}`,
	} {
		if got := string(inputObject(arguments)); got != want {
			t.Errorf("%q gave %s", arguments, got)
		}
	}
}

func TestReplayFollowsTheOrderAndSurvivesChanges(t *testing.T) {
	var made layout
	made.addRaw(json.RawMessage(`"r1"`))
	made.addText(3)
	made.addText(2)
	made.addRaw(json.RawMessage(`"r2"`))
	made.addCall()
	opaque := made.encode()
	walk := func(message llm.Message) string {
		var steps []string
		Replay(message, "us", func(raw json.RawMessage) { steps = append(steps, string(raw)) },
			func(text string) { steps = append(steps, text) },
			func(call llm.ToolCall) { steps = append(steps, call.Name) })
		return strings.Join(steps, " ")
	}
	message := llm.Message{Text: "12345", ToolCalls: []llm.ToolCall{{Name: "f"}}, Opaque: opaque, OpaqueOwner: "us"}
	for _, each := range []struct {
		change func(*llm.Message)
		want   string
	}{
		{func(*llm.Message) {}, `"r1" 12345 "r2" f`},
		{func(m *llm.Message) { m.Text = "12" }, `"r1" 12 "r2" f`},
		{func(m *llm.Message) { m.Text = "1234567" }, `"r1" 12345 "r2" f 67`},
		{func(m *llm.Message) { m.ToolCalls = nil }, `"r1" 12345 "r2"`},
		{func(m *llm.Message) { m.OpaqueOwner = "them" }, `12345 f`},
		{func(m *llm.Message) { m.Opaque = json.RawMessage(`{"x"`) }, `12345 f`},
	} {
		changed := message
		each.change(&changed)
		if got := walk(changed); got != each.want {
			t.Errorf("got %s, want %s", got, each.want)
		}
	}
	if (&layout{blocks: []block{{Text: 1}}}).encode() != nil {
		t.Error("a step without parts of the provider has an opaque part")
	}
}

func TestBaseURLs(t *testing.T) {
	for _, wrong := range []string{"", "localhost:8080", "/v1", "ftp://host", "http://", "https://user:pass@host", "https://host/?key=1", "http://%zz"} {
		if _, err := NewClient("x", wrong, Options{}); err == nil || (wrong != "" && slices.Contains(strings.Fields(err.Error()), wrong)) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if got := TrimBase("https://api.anthropic.com/v1/", "/v1"); got != "https://api.anthropic.com" {
		t.Error(got)
	}
}
