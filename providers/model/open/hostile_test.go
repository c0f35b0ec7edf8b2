package open_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/modeltest"
)

// Pieces of an answer in the shape that costs most are read with work that is proportional to their number. The work is
// measured in allocated bytes, which are the same in each run.
func TestTheWorkForHostileAnswersIsProportionalToTheirSize(t *testing.T) {
	call := modeltest.ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"{\"x\":\""}}]}`)
	for name, answer := range map[string]func(pieces int) string{
		"braces in arguments": func(pieces int) string {
			return call + strings.Repeat(modeltest.ChatDelta(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`), pieces) + modeltest.ChatEnd("tool_calls")
		},
		"kept reasoning": func(pieces int) string {
			return call + strings.Repeat(modeltest.ChatDelta(`{"reasoning_content":"0123456789abcdef","content":[]}`), pieces) + modeltest.ChatEnd("tool_calls")
		},
		"objects in one piece": func(pieces int) string {
			return modeltest.ChatDelta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"calc","arguments":"`+strings.Repeat("{}", pieces)+strings.Repeat(" ", pieces)+`"}}]}`) + modeltest.ChatEnd("tool_calls")
		},
		"many parts": func(pieces int) string {
			return modeltest.ChatDelta(`{"content":[`+strings.Repeat(`"0123456789abcdef",`, pieces)+`"x"]}`) + modeltest.ChatEnd("stop")
		},
		"nested parts": func(pieces int) string {
			depth := pieces / 4
			return modeltest.ChatDelta(`{"content":`+strings.Repeat(`[`, depth)+strings.Repeat(`"x",`, pieces)+`"x"`+strings.Repeat(`]`, depth)+`}`) + modeltest.ChatEnd("stop")
		},
		"lines of an event": func(pieces int) string {
			return "data: {" + strings.Repeat("x", 100*pieces) + "\n" + strings.Repeat("event: x\n", pieces) + "\n"
		},
		"data of an event": func(pieces int) string {
			return "data: {\ndata: }\n" + strings.Repeat("data: {\ndata: {}}\n", pieces) + "\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			work := func(pieces int) uint64 {
				text := (&modeltest.AnswerCase{Body: answer(pieces)}).Bytes()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
				defer server.Close()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_ = connect(t, "chat", server.URL, model.Options{}).Stream(t.Context(), question(), func(llm.Chunk) error { return nil })
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			}
			few, many := work(4_000), work(16_000)
			if many > 6*few+1<<20 {
				t.Errorf("%d bytes for 4,000 pieces, %d for 16,000", few, many)
			}
		})
	}
}

// An event without a blank line behind it is looked at again with each line, but not for ever: a megabyte with a million
// lines behind it would take hours.
func TestALongEventWithManyLinesIsLookedAtAFewTimes(t *testing.T) {
	text := "data: {" + strings.Repeat("x", 1<<20) + "\n" + strings.Repeat("event: x\n", 500_000) + "\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer server.Close()
	if got := ask(t, "chat", server.URL); got != "!model_protocol" {
		t.Error(got)
	}
}

// The calls that are left out do not fail the answer.
func TestAnAnswerWithTooManyCallsHasSomeOfThem(t *testing.T) {
	one, other := modeltest.ChatDelta(`{"tool_calls":[{"function":{"name":"calc","arguments":"{\"x\":1}"}}]}`), modeltest.ChatDelta(`{"tool_calls":[{"function":{"name":"calc","arguments":"{\"x\":2}"}}]}`)
	text := (&modeltest.AnswerCase{Body: strings.Repeat(one+other, 1000) + modeltest.ChatEnd("tool_calls")}).Bytes()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer server.Close()
	if got := ask(t, "chat", server.URL); strings.Count(got, "calc") != 512 || !strings.HasSuffix(got, "tool_calls") {
		t.Error(got)
	}
}
