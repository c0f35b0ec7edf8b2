package machine

import (
	"encoding/json"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol"
)

// TestSentencesEnd marks the end of the sentence with "‖".
func TestSentencesEnd(t *testing.T) {
	long := strings.Repeat("word ", longestLine/5)
	for _, marked := range []string{
		"The tide rises. ‖It falls.",
		"Is it high? ‖No.",
		"It is 3.5 m high. ‖Then it falls.",
		"1. High tide comes first\n‖2. Low tide follows",
		"He said \"It **rises**.\" ‖Then",
		"A line without a mark\n‖Another",
		"\n\n  The first text.\n‖The second",
		"## The heading.\nThe text below. ‖More",
		"| High | Low |\n|---|---|\n| 3.5. | 0 |\nAfter the table. ‖More",
		"満潮は六時です。‖次は",
		"彼は「満潮です。」‖と",
		"本当ですか？！‖はい",
		"متى يأتي المد؟ ‖الآن",
		"ज्वार आता है। ‖फिर",
		"Here, e.g. at 6 a.m. in winter, d. h. früh. ‖Then",
		"It is high (cf. the table), approx. 3 m. Do 2 of them vs. ten. ‖Then",
		"The water doesn't. ‖Then",
		"It rises. [1] It falls. ‖Then",
		"It rises.  ‖**It** falls.",
		"   | 3.5. | 0 |\nAfter the table. ‖More",
		"本《潮汐。》‖と",
		strings.Repeat("a", longestWord+1) + "‖a",
		"An address such as example.com/a.b goes on",
		"No end",
		long + "word‖ word",
		"|" + strings.Repeat(" cell |", 1+longestSentence/7) + "\n‖| cell |",
	} {
		text, _, ends := strings.Cut(marked, "‖")
		want := len(text)
		text = strings.Replace(marked, "‖", "", 1)
		for split := range text {
			var scanner sentenceScanner
			at := scanner.find(text[:split], false)
			if at < 0 {
				if at = scanner.find(text[split:], false); at >= 0 {
					at += split
				}
			}
			if !ends {
				want = -1
			}
			if at != want {
				t.Errorf("%.60q, split at %d, ends at %d, want %d", marked, split, at, want)
				break
			}
		}
	}
}

func TestAnInputIsAppliedAtTheEndOfTheSentence(t *testing.T) {
	for name, test := range map[string]struct {
		write func(*driver)
		want  string // the text of the message, with "|" after each part
	}{
		"of text":      {func(m *driver) { m.ModelText(1, "text. More"); m.ModelText(1, " and more.") }, "partial text. |fine|"},
		"in pieces":    {func(m *driver) { m.ModelText(1, "text."); m.ModelText(1, " More.") }, "partial text. |fine|"},
		"of reasoning": {func(m *driver) { m.ModelReasoning(1, "I think. More") }, "partial |I think. |fine|"},
		"of code":      {func(m *driver) { m.ModelText(1, "code\n\n```go\nx := 1\ny := 2\n```\n") }, "partial code\n|fine|"},
	} {
		t.Run(name, func(t *testing.T) {
			m := runningMachine(t)
			m.take()
			accept(t, m, newInput("c1", "use JWT"))
			test.write(m)
			d := m.take()
			if m.call != 2 || len(d.Effects) != 2 {
				t.Fatalf("the model is called by call %d, effects %+v", m.call, d.Effects)
			}
			m.ModelText(1, "late")
			m.ModelText(2, "fine")
			m.ModelStopped(2, llm.StopEndTurn)
			if d := m.take(); d.End == nil || d.End.State != protocol.TurnCompleted {
				t.Fatalf("the turn ended as %+v", d.End)
			}
			var got strings.Builder
			for _, part := range m.Parts() {
				if part.Kind != "steering" {
					got.WriteString(part.Text + part.Code + "|")
				}
			}
			if got.String() != test.want {
				t.Errorf("the message is %q, want %q", got.String(), test.want)
			}
		})
	}
}

func TestTheSentenceThatHasBegunIsTheOneThatEnds(t *testing.T) {
	for _, marked := range []string{
		"It rises.^ ‖It falls.",
		"It rises. ^‖It falls.",
		"It rises^\n‖It falls.",
		"The list:\n\n1^. High tide\n‖2. Low tide",
		"It is 3^.5 m high. ‖Then",
		"Here, e.g^. in winter, it is high. ‖Then",
		"A line.\n^\nAnother line. ‖Then",
		"A table\n| 3.5 ^| 0 |\n| 4. 5 | 0 |\nAfter it. ‖More",
		strings.Repeat("| cell ", longestSentence) + "^. x |\n‖| cell |",
	} {
		before, after, _ := strings.Cut(marked, "^")
		sentence, rest, _ := strings.Cut(after, "‖")
		scanner := newSentenceScanner([]byte(before))
		if strings.HasPrefix(before, "| cell") {
			scanner.read = longestSentence
		}
		if end := scanner.find(sentence+rest, false); end != len(sentence) {
			t.Errorf("%.60q: the sentence ends at %d, want %d", marked, end, len(sentence))
		}
	}
}

func TestCodeIsInterruptedAtTheEndOfALine(t *testing.T) {
	m := runningMachine(t)
	m.ModelText(1, "code:\n```")
	accept(t, m, newInput("c1", "use JWT"))
	m.ModelText(1, "go\nprintln(\"It rises. It falls.\") // Here. There.\ny := 2\n")
	m.take()
	parts := m.Parts()
	if last := parts[len(parts)-1]; m.call != 2 || last.Code != "println(\"It rises. It falls.\") // Here. There.\n" || !last.Truncated {
		t.Errorf("the model is called by call %d; the last part is %+v", m.call, last)
	}
}

func TestATableIsNotInterruptedWithinItsRow(t *testing.T) {
	m := runningMachine(t)
	m.ModelText(1, "text.\n\n| High | Low |\n|---|---|\n| 3.5")
	accept(t, m, newInput("c1", "use JWT"))
	m.ModelText(1, " | 0 |\n| 4 | 1 |\n\nAfter the table. More")
	m.take()
	parts := m.Parts()
	if text := parts[len(parts)-1].Text; m.call != 2 || !strings.HasSuffix(text, "| 3.5 | 0 |\n| 4 | 1 |\n\nAfter the table. ") {
		t.Errorf("the model is called by call %d after %q", m.call, text)
	}
}

func TestARowThatIsContinuedAfterATakeoverStaysWhole(t *testing.T) {
	m := newDriver(machineSpec(), machineTools, true)
	m.Begin()
	m.Proceed()
	m.ModelText(1, "text.\n\n| High | Low |\n|---|---|\n| 3.5")
	accept(t, m, newInput("c1", "use JWT"))
	d := m.take()
	m = adoptedMachine(t, m, d.Events, d.Records)
	m.ModelText(1, " m | 0. 1 |\n| 4 | 1 |\nAfter the table. More")
	m.take()
	parts := m.Parts()
	if text := parts[len(parts)-1].Text; m.call != 2 || !strings.HasSuffix(text, "| 3.5 m | 0. 1 |\n| 4 | 1 |\nAfter the table. ") {
		t.Errorf("the model is called by call %d after %q", m.call, text)
	}
}

func TestNothingIsInterruptedForAnInputThatComesWithTheNextStep(t *testing.T) {
	m := runningMachine(t)
	m.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "x", Name: "look", Input: json.RawMessage(`{}`)}})
	accept(t, m, newInput("c1", "use JWT"))
	m.ModelText(1, "text. More text.")
	m.ModelStopped(1, llm.StopToolCalls)
	m.take()
	if m.call != 1 || len(m.toolCalls) != 1 {
		t.Errorf("the model is called by call %d; calls of tools: %+v", m.call, m.toolCalls)
	}
	m = machineWithInput(t)
	m.ModelText(2, "The answer to it. More text.")
	m.take()
	if m.call != 2 {
		t.Errorf("the answer to the input was interrupted by call %d", m.call)
	}
	m = runningMachine(t)
	input := accept(t, m, newInput("c1", "use JWT"))
	accept(t, m, &Command{Kind: CommandWithdraw, SteeringID: input.SteeringID})
	m.ModelText(1, "text. More text.")
	m.take()
	if m.call != 1 {
		t.Errorf("the answer was interrupted for a withdrawn input, by call %d", m.call)
	}
}
