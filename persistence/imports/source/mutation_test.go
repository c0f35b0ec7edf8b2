package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

// object is a JSON object whose members have an order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		out = append(fmt.Appendf(out, "%q:", m.name), value...)
	}
	return append(out, '}'), nil
}

func ordered(value any) any {
	switch v := value.(type) {
	case map[string]any:
		var o object
		for _, name := range slices.Sorted(maps.Keys(v)) {
			o = append(o, member{name, ordered(v[name])})
		}
		return o
	case []any:
		for i := range v {
			v[i] = ordered(v[i])
		}
	}
	return value
}

// mutate returns a value in which a member or an element was removed, has another type, or is at another place.
func mutate(random *rand.Rand, value any) any {
	const deeper = 5 // of 6
	switch v := value.(type) {
	case object:
		if len(v) == 0 {
			break
		}
		at := random.IntN(len(v))
		if random.IntN(deeper+1) > 0 && isNested(v[at].value) {
			v[at].value = mutate(random, v[at].value)
			return v
		}
		switch random.IntN(3) {
		case 0:
			return slices.Delete(v, at, at+1)
		case 1:
			v[at].value = other(random)
		default:
			random.Shuffle(len(v), func(i, k int) { v[i], v[k] = v[k], v[i] })
		}
		return v
	case []any:
		if len(v) == 0 {
			break
		}
		at := random.IntN(len(v))
		if random.IntN(deeper+1) > 0 && isNested(v[at]) {
			v[at] = mutate(random, v[at])
			return v
		}
		v[at] = other(random)
		return v
	}
	return other(random)
}

func isNested(value any) bool {
	switch value.(type) {
	case object, []any:
		return true
	}
	return false
}

func other(random *rand.Rand) any {
	return []any{nil, true, -1.5, 1e300, "x", "", []any{}, []any{[]any{nil}}, object{}, object{{"x", 1}}}[random.IntN(10)]
}

// Each text of an export that is changed at random is kept, or the report has a line.
func TestChangedExportsLoseNoTextWithoutALine(t *testing.T) {
	texts := func(r *result) string {
		var out strings.Builder
		for _, c := range r.conversations {
			out.WriteString(c.Title)
			for _, m := range c.Messages {
				for _, p := range m.Parts {
					fmt.Fprintln(&out, p.Text, p.Code, p.Output, string(p.Input), p.Title, p.ToolName, p.Citations)
				}
			}
		}
		for _, v := range r.artifacts {
			fmt.Fprintln(&out, v.Title, v.Content)
		}
		fmt.Fprintln(&out, r.contents)
		for _, p := range r.projects {
			fmt.Fprintln(&out, p.Name)
		}
		for _, i := range r.instructions {
			fmt.Fprintln(&out, i.Content)
		}
		return out.String()
	}
	noted := func(r *result) bool {
		return len(r.problems) > 0 || slices.ContainsFunc(r.conversations, func(c *Conversation) bool { return len(c.Notes) > 0 })
	}
	formats := map[string]string{
		"chatgpt": strings.ReplaceAll(nodes(append([]string{`"user"`, words(`"alpha"`), `"assistant"`, words(`"bravo"`), `"assistant"`, `{"content_type":"code","language":"go","text":"charlie"}`},
			canvas("create_textdoc", `{"name":"Plan","type":"document","content":"delta"}`)...)...), "\n", ""),
		"claude": `[` + calls(`{"type":"text","text":"alpha"}`, `{"type":"thinking","thinking":"bravo"}`, artifact(`"command":"create","type":"text/markdown","title":"Plan","content":"charlie"`),
			`{"type":"tool_use","name":"web","input":{"q":"delta"}},{"type":"tool_result","name":"web","content":[{"type":"text","text":"echo"}]}`) + `,` +
			claudeOf(`{"uuid":"f","sender":"human","text":"foxtrot","attachments":[{"file_name":"notes.txt","extracted_content":"golf"}]}`) + `]`,
		"projects":  `[{"uuid":"p","name":"alpha","prompt_template":"bravo","docs":[{"filename":"a.md","content":"charlie"}]}]`,
		"memories":  `[{"conversations_memory":"alpha","project_memories":{"p":"bravo"}}]`,
		"openwebui": `[{"id":"ow","title":"T","chat":{"history":{"currentId":"2","messages":{"1":{"id":"1","role":"user","content":"alpha"},"2":{"id":"2","parentId":"1","role":"assistant","content":"bravo","output":[{"type":"reasoning","content":[{"text":"charlie"}]},{"type":"message","content":[{"text":"bravo"}]}]}}}}}]`,
		"librechat": `{"conversationId":"lc","title":"T","messages":[{"messageId":"1","isCreatedByUser":true,"sender":"User","text":"alpha","children":[{"messageId":"2","parentMessageId":"1","isCreatedByUser":false,"sender":"GPT","text":"","content":[{"type":"think","think":"bravo"},{"type":"text","text":{"value":"charlie"}}],"children":[]}]}]}`,
		"deepseek":  `[{"id":"ds","title":"T","inserted_at":"2025-03-30T04:49:36Z","mapping":{"1":{"id":"1","message":{"fragments":[{"type":"REQUEST","content":"alpha"}]}},"2":{"id":"2","parent":"1","message":{"fragments":[{"type":"THINK","content":"bravo"},{"type":"RESPONSE","content":"charlie"}]}}}}]`,
		"gemini":    `[{"header":"Gemini Apps","title":"Prompted alpha","time":"2025-05-01T10:10:00.000Z","products":["Gemini Apps"],"safeHtmlItem":[{"html":"<p>bravo</p>"}]}]`,
		"turnstone": `{"format":"turnstone.conversation","conversation":{"conversation_id":"conv_01h2xcejqtf2nbrexx3vqjhp41","title":"T"},"messages":[{"message_id":"1","role":"user","status":"complete","parts":[{"type":"text","text":"alpha"}]},{"message_id":"2","parent_message_id":"1","role":"assistant","status":"complete","parts":[{"type":"text","text":"bravo"}]}]}`,
	}
	for name, file := range formats {
		t.Run(name, func(t *testing.T) {
			whole := read(t, []byte(file))
			var expected []string
			for _, text := range []string{"alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf"} {
				if strings.Contains(file, text) {
					expected = append(expected, text)
					if !strings.Contains(texts(whole), text) {
						t.Fatalf("%s is not in\n%s", text, texts(whole))
					}
				}
			}
			random := rand.New(rand.NewPCG(40, uint64(len(name))))
			for range 1500 {
				var value any
				if err := json.Unmarshal([]byte(file), &value); err != nil {
					t.Fatal(err)
				}
				value = ordered(value)
				for range 1 + random.IntN(3) {
					value = mutate(random, value)
				}
				changed, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				r := read(t, changed)
				for _, c := range r.conversations {
					checkTree(t, c.Arrange())
				}
				got := texts(r)
				for _, text := range expected {
					if strings.Contains(string(changed), text) && !strings.Contains(got, text) && !noted(r) && !isSkipped(r) {
						t.Fatalf("%s is lost without a line:\n%s", text, changed)
					}
				}
			}
		})
	}
}

// isSkipped reports whether a conversation has no messages, which the report says.
func isSkipped(r *result) bool {
	return slices.ContainsFunc(r.conversations, func(c *Conversation) bool {
		return len(c.Arrange().Messages) == 0 && c.Kind != protocol.ImportFromTurnstone
	})
}
