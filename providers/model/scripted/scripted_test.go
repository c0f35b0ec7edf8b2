package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/actors/llm"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quick = scripted.New(scripted.Options{})

var tools = []llm.Tool{
	{Name: "calculate", Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}}}`)},
	{Name: "run_code", Schema: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"},"file_ids":{"type":"array"}}}`)},
	{Name: "current_time", Schema: json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string"}}}`)},
}

func user(text string) llm.Message { return llm.Message{Role: "user", Text: text} }
func assistant(text string) llm.Message {
	return llm.Message{Role: "assistant", Text: text}
}

func calls(id, name, input string) llm.Message {
	return llm.Message{Role: "assistant", ToolCalls: []llm.ToolCall{{ID: id, Name: name, Input: json.RawMessage(input)}}}
}

func result(id, text string, failed bool) llm.Message {
	return llm.Message{Role: "tool", ToolCallID: id, Text: text, ToolFailed: failed}
}

// step returns the request for step n of a turn.
func step(n int, messages ...llm.Message) llm.Request {
	return llm.Request{Model: "scripted", Step: n, Messages: messages, Tools: tools}
}

// begins sets which message, counted from 1, started the turn.
func begins(input int, request llm.Request) llm.Request {
	request.TurnInput = input
	return request
}

// ask sends a request to the model and describes the answer: reasoning in parentheses, calls with their input, the
// text, and the stop.
func ask(t *testing.T, request llm.Request) string {
	t.Helper()
	chunks, err := modeltest.Collect(t.Context(), t, quick, request)
	var all strings.Builder
	open := false
	for _, chunk := range chunks {
		if (chunk.Kind == llm.ChunkReasoning) != open {
			all.WriteString(map[bool]string{true: ")", false: "("}[open])
			open = !open
		}
		switch chunk.Kind {
		case llm.ChunkText, llm.ChunkReasoning:
			all.WriteString(chunk.Text)
		case llm.ChunkToolCall:
			fmt.Fprintf(&all, "%s%s ", chunk.ToolCall.Name, chunk.ToolCall.Input)
		case llm.ChunkStop:
			all.WriteString("|" + string(chunk.Stop))
		}
	}
	if err != nil {
		return all.String() + "!" + err.Error()
	}
	return all.String()
}

func recited(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(scripted.Token(i))
	}
	return all.String()
}

func TestADirectiveShapesTheAnswer(t *testing.T) {
	tool := user("[[script tokens=3 tool=calculate:0:ok tool=current_time:0:fail tool=other:0:fail reasoning=2]]")
	called := calls("a", "calculate", `{"expression":"6*7"}`)
	for name, each := range map[string]struct {
		request llm.Request
		want    string
	}{
		"tokens":          {step(1, user("hi [[script tokens=500 other=low:reversible x]] there")), recited(500) + "|end_turn"},
		"approval":        {step(1, user("[[script tokens=2 approval=low:reversible]]")), `demo_action{"note":"A note of the scripted model.","reversibility":"reversible","risk":"low"} |tool_calls`},
		"artifact":        {step(1, user("[[script tokens=2 artifact=table]]")), `write_artifact{"content":"Shore,Low tide\nNorth,06:10\nSouth,06:40\n","kind":"table","title":"Tides"} |tool_calls`},
		"code artifact":   {step(1, user("[[script tokens=2 artifact=code]]")), `write_artifact{"content":"package main\n\nfunc main() {\n\tprintln(\"low tide\")\n}\n","kind":"code","language":"go","title":"Tides"} |tool_calls`},
		"other artifact":  {step(1, user("[[script artifact=song]]")), `write_artifact{"content":"# Tides\n\nThe **ruddy turnstone** feeds at low tide.\n\n1. Look up the tide.\n2. Walk to the shore.\n","kind":"document","title":"Tides"} |tool_calls`},
		"default tokens":  {step(1, user("[[script]]")), recited(40) + "|end_turn"},
		"no tokens":       {step(1, user("[[script tokens=0]]")), "|end_turn"},
		"bad values":      {step(1, user("[[script tokens=x ttft=y stall= fail=z tool= tokens=2]]")), recited(2) + "|end_turn"},
		"code":            {step(1, user("[[script tokens=4 code=cobol]]")), recited(2) + "\n\n```cobol\nfirst = 1\nsecond = 2\nsum = first + second\n```\n\n" + strings.TrimPrefix(recited(4), recited(2)) + "|end_turn"},
		"reasoning":       {step(1, user("[[script tokens=1 reasoning=3]]")), "(Reading the question )" + recited(1) + "|end_turn"},
		"tools, step 1":   {step(1, tool), `(Reading the )calculate{"expression":"6*7"} current_time{"zone":"Nowhere/Nowhere"} other{"fail":true} |tool_calls`},
		"tools, step 2":   {step(2, tool, called, result("a", "42", false)), recited(3) + "|end_turn"},
		"hold":            {step(1, user("[[script tokens=3 hold=1:a hold=x:b hold=2]]")), recited(3) + "|end_turn"}, // no test holds it
		"fail":            {step(1, user("[[script tokens=5 fail=2]]")), recited(2) + "!model_unavailable: the script fails at token 2"},
		"fail at once":    {step(1, user("[[script fail=0]]")), "!model_unavailable: the script fails at token 0"},
		"fail behind":     {step(1, user("[[script tokens=5 fail=2]]"), assistant(recited(2))), strings.TrimPrefix(recited(5), recited(2)) + "|end_turn"},
		"an earlier turn": {step(1, user("[[script tokens=5]]"), assistant("x"), user("thanks")), ask(t, step(1, user("thanks")))},
		"steered":         {step(2, user("[[script tokens=2 tool=calculate:0:ok]]"), called, result("a", "42", false), user("use JWT")), "Taking into account: use JWT\n\n" + recited(2) + "|end_turn"},
		"steered once":    {step(3, user("[[script tokens=2]]"), assistant("x"), user("use JWT"), called, result("a", "42", false)), recited(2) + "|end_turn"},
		"steered anew":    {step(2, user("[[script tokens=2]]"), assistant(recited(2)), user("[[script tokens=1 tool=calculate:0:ok]]")), `calculate{"expression":"6*7"} |tool_calls`},
		"steered before the first step": {
			begins(1, step(1, user("[[script tokens=1]]"), user("in French"))), "Taking into account: in French\n\n" + recited(1) + "|end_turn",
		},
		"steered before the first step, in the second": {
			begins(2, step(2, user("old"), user("[[script tokens=1]]"), user("in French"), called, result("a", "42", false))), recited(1) + "|end_turn",
		},
		"an earlier turn without an answer": {step(1, user("[[script fail=0]]"), user("thanks")), ask(t, step(1, user("thanks")))},
		"the same, in the second step": {
			step(2, user("[[script fail=0]]"), user("[[script tokens=1 tool=calculate:0:ok]]"), called, result("a", "42", false)), recited(1) + "|end_turn",
		},
	} {
		if got := ask(t, each.request); got != each.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, each.want)
		}
	}
}

func TestACutAnswerContinuesFromEveryByte(t *testing.T) {
	for _, question := range []string{"[[script tokens=60 code=go]]", "hello", "explain tides", "write a function"} {
		whole := strings.TrimSuffix(ask(t, step(1, user(question))), "|end_turn")
		if i := strings.Index(whole, ")"); whole[0] == '(' {
			whole = whole[i+1:]
		}
		for cut := 1; cut <= len(whole); cut++ {
			if got := ask(t, step(1, user(question), assistant(whole[:cut]))); got != whole[cut:]+"|end_turn" {
				t.Fatalf("%s, cut at %d: %q", question, cut, got)
			}
		}
	}
	script, found := scripted.Parse("[[script tokens=60 code=go]]")
	if want := ask(t, step(1, user("[[script tokens=60 code=go]]"))); !found || script.Text()+"|end_turn" != want {
		t.Errorf("Text returns %q", script.Text())
	}
	if got := ask(t, step(1, user("[[script tokens=2]]"), assistant("something else"))); got != recited(2)+"|end_turn" {
		t.Errorf("a foreign prefix: %q", got)
	}
}

func TestPlainTextGetsAPlainAnswer(t *testing.T) {
	sum := []llm.Message{user("what is 12*7?"), calls("a", "calculate", `{"expression":"12*7"}`)}
	for question, want := range map[string]string{
		"Hello there!":                                "Hello! It is good",
		"thanks a lot":                                "You are welcome",
		"What is Turnstone?":                          "Turnstone runs conversations",
		"what is 12*7?":                               `calculate{"expression":"12*7"} |tool_calls`,
		"What is (3 + 4) × 2.5?":                      `calculate{"expression":"(3 + 4) * 2.5"} |tool_calls`,
		"twelve is 6 times 2, or not":                 `calculate{"expression":"6 * 2"} |tool_calls`,
		"I was born on 1990-05-17":                    "You wrote: ",
		"what time is it in Tokyo":                    `current_time{"zone":"Asia/Tokyo"} |tool_calls`,
		"Please run code for me":                      `run_code{"code":"const squares`,
		"Execute this program:\n```js\nprint(1)\n```": `run_code{"code":"print(1)"} |tool_calls`,
		"Run my code.\n\n<file number=\"1\" name=\"a.csv\" id=\"file_1a\">\nx\n</file>": `"file_ids":["file_1a"]} |tool_calls`,
		"[[script tool=run_code:0:fail]]":                                               `run_code{"code":"throw new Error(\"The script fails.\")"} |tool_calls`,
		"write a python function please":                                                "```python\ndef greet",
		"Explain the tides to me":                                                       "(The request is about “Explain the tides to me”.",
		"My garden is full of snails":                                                   "You wrote: “My garden is full of snails”\n\nThat is 6 words",
		"":                                                                              "You sent me a message without any words",
		"日本語で話してもいいですか":                                                                 "You wrote: “日本語で話してもいいですか”",
	} {
		if got := ask(t, step(1, user(question))); !strings.Contains(got, want) {
			t.Errorf("%q: %q", question, got)
		}
	}
	for name, each := range map[string]struct {
		request llm.Request
		want    string
	}{
		"a sum":              {step(2, append(sum, result("a", `{"result":84}`, false))...), "`12*7` is **84**.|end_turn"},
		"a sum in words":     {step(2, append(sum, result("a", "84", false))...), "`12*7` is **84**.|end_turn"},
		"code":               {step(2, user("run code"), calls("a", "run_code", "{}"), result("a", "Value: 7", false)), "I ran the code. It printed:\n\n```\nValue: 7\n```|end_turn"},
		"a failed sum":       {step(2, append(sum, result("a", "division by zero", true))...), "I tried to find that out with a tool, but it could not help: division by zero|end_turn"},
		"a page":             {step(2, user("read it"), calls("a", "read_page", "{}"), result("a", "From the corpus.\n\n<webpage number=\"200\" title=\"Tides &amp; winds\" url=\"https://x.example/\">\nThe tide rises.\n</webpage>", false)), "This is what I found:\n\n- “Tides & winds”: The tide rises. [200]|end_turn"},
		"no page":            {step(2, user("read it"), calls("a", "read_page", "{}"), result("a", "The page has no text.", false)), "I found nothing that I could read: The page has no text.|end_turn"},
		"a document":         {step(2, user("write it"), calls("a", "write_artifact", "{}"), result("a", "ok", false)), "I wrote it. You can read, change and download it beside the conversation.|end_turn"},
		"steered at a tool":  {step(2, append(sum, result("a", "84", false), user("be brief"))...), "Taking into account: be brief\n\n`12*7` is **84**.|end_turn"},
		"steered at the end": {step(2, user("hello"), assistant("Hello!"), user("what is 2+3")), `calculate{"expression":"2+3"} |tool_calls`},
	} {
		if got := ask(t, each.request); got != each.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	recalling := step(1)
	recalling.Tools = []llm.Tool{{Name: "search_conversations"}, {Name: "location"}, {Name: "project_context"}, {Name: "web_search"}, {Name: "read_page"}, {Name: "write_artifact"}, {Name: "start_research"}}
	for question, want := range map[string]string{
		"Research how tides are predicted.":           `start_research{"depth":"quick","question":"how tides are predicted."} |tool_calls`,
		"Search the web for tides":                    `web_search{"query":"tides"} |tool_calls`,
		"Summarise https://example.org/tides, please": `read_page{"url":"https://example.org/tides"} |tool_calls`,
		"Draw a table of the tides":                   `write_artifact{"content":"Shore,Low tide\nNorth,06:10\nSouth,06:40\n","kind":"table","title":"Tides"} |tool_calls`,
		"Search my conversations for the spring tide": `search_conversations{"query":"the spring tide"} |tool_calls`,

		"Where am I?":                    `location{} |tool_calls`,
		"What is it about this project?": `project_context{} |tool_calls`,

		"[[script tokens=2 tool=search_conversations:0:ok]]": `search_conversations{"query":"tides"} |tool_calls`,
	} {
		recalling.Messages = []llm.Message{user(question)}
		if got := ask(t, recalling); got != want {
			t.Errorf("%q: %q", question, got)
		}
	}
	without := step(1, user("what is 12*7?"))
	without.Tools = nil
	if got := ask(t, without); !strings.HasPrefix(got, "You wrote: ") {
		t.Errorf("without tools: %q", got)
	}
}

func TestTitles(t *testing.T) {
	for text, want := range map[string]string{
		"how do I prune an old apple tree, and when?": "How do I prune an old",
		"hi":                         "Talking about hi",
		"[[script tokens=200]]":      "A new conversation",
		"[[script]] plan my garden!": "Plan my garden",
		strings.Repeat("鳥", 100):     "Talking about " + strings.Repeat("鳥", 23) + "…",
	} {
		request := step(1, user(text), assistant("…"), user("something else"))
		request.System = "Write a title for this conversation."
		if got := ask(t, request); got != want+"|end_turn" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestLimitsAndCounts(t *testing.T) {
	request := step(1, user("[[script tokens=50 reasoning=5]]"))
	request.MaxOutputTokens = 20
	chunks, err := modeltest.Collect(t.Context(), t, quick, request)
	if err != nil || modeltest.StopOf(chunks) != llm.StopMaxTokens || modeltest.TextOf(chunks) != recited(20) {
		t.Errorf("got %q, %s, %v", modeltest.TextOf(chunks), modeltest.StopOf(chunks), err)
	}
	usage := chunks[len(chunks)-2].Usage
	if usage.OutputTokens != 25 || usage.ReasoningTokens != 5 || usage.InputTokens < 5 || usage.Estimated {
		t.Errorf("got %+v", usage)
	}
}

func TestFailuresReportWhetherTextWasEmitted(t *testing.T) {
	for directive, cut := range map[string]bool{"[[script fail=0]]": false, "[[script fail=3]]": true} {
		_, err := modeltest.Collect(t.Context(), t, quick, step(1, user(directive)))
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Cut != cut || !failure.Retryable {
			t.Errorf("%s: %v", directive, err)
		}
	}
}

func TestThePaceIsKeptAndEndsWithTheContext(t *testing.T) {
	begin := time.Now()
	if got := ask(t, step(1, user("[[script tokens=4 ttft=40ms interval=10 stall=2:30ms]]"))); got != recited(4)+"|end_turn" {
		t.Error(got)
	}
	if took := time.Since(begin); took < 90*time.Millisecond { // 40, the stall of 30, and at least two intervals
		t.Errorf("took %s", took)
	}
	for _, directive := range []string{"[[script ttft=10m]]", "[[script stall=1:10m]]", "[[script tool=calculate:600000:ok]]", "[[script interval=10m]]"} {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() {
			stopped <- quick.Stream(ctx, step(1, user(directive)), func(llm.Chunk) error { return nil })
		}()
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", directive, err)
		}
	}
}

func TestItKeepsTheContract(t *testing.T) {
	for _, text := range []string{"hello", "[[script tokens=3 tool=calculate:0:ok]]"} {
		modeltest.RunModel(t, text, func(*testing.T) llm.Model { return quick })
	}
	if quick.Family() != "scripted" || !quick.Continues() {
		t.Errorf("%s continues: %v", quick.Family(), quick.Continues())
	}
	if scripted.New(scripted.Options{NoContinue: true}).Continues() {
		t.Error("Continues returns true despite NoContinue")
	}
}

// The load tester uses this model. A token should cost about as much as the call of emit that takes it.
func BenchmarkToken(b *testing.B) {
	request := step(1, user(fmt.Sprintf("[[script tokens=%d]]", min(b.N, 200_000))))
	b.ReportAllocs()
	for left := b.N; left > 0; left -= 200_000 {
		if err := quick.Stream(b.Context(), request, func(llm.Chunk) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
