package scripted

import (
	"strconv"
	"strings"
	"time"

	"turnstone/actors/llm"
)

// directiveOpen and directiveClose enclose a directive: [[script key=value …]].
const (
	directiveOpen  = "[[script"
	directiveClose = "]]"
)

// The limits of a directive. Every user who may chat can write one.
const (
	maxTokens = 200_000
	maxTools  = 20
	maxHolds  = 5
	maxWait   = 10 * time.Minute
)

// Script is a parsed directive.
type Script struct {
	Tokens    int              // words of text
	TTFT      time.Duration    // before the first chunk; negative: the model's default
	Interval  time.Duration    // between tokens; negative: the model's default
	Tools     []Tool           // called together, before any text
	Approvals []map[string]any // inputs of calls that need an approval, with the tools
	Code      string           // language of a fenced block in the middle of the text; empty for none
	Reasoning int              // words of a reasoning summary
	Fail      int              // return an llm.Error after this many tokens of text; negative: never
	Stall     Stall
	Holds     []Hold
}

// Tool is one call of a directive.
type Tool struct {
	Name string
	Kind string        // of the artifact that the call writes
	Wait time.Duration // before the call
	Fail bool          // with an input that the tool refuses
}

// Stall is a pause within the text.
type Stall struct {
	At  int // token; negative: never
	For time.Duration
}

// Hold is a position in the text at which the answer waits while a test holds Name; see failpoint.Hold. Only a build
// with the tag failpoint waits.
type Hold struct {
	At   int // token
	Name string
}

const defaultTokens = 40

var unscripted = Script{TTFT: -1, Interval: -1, Fail: -1, Stall: Stall{At: -1}}

// Parse parses the first directive in text, and reports whether there is one. It ignores unknown keys and values,
// because other parts of the service read the same directive.
func Parse(text string) (Script, bool) {
	_, rest, found := strings.Cut(text, directiveOpen)
	if !found {
		return unscripted, false
	}
	body, _, closed := strings.Cut(rest, directiveClose)
	if !closed {
		return unscripted, false
	}
	script := unscripted
	script.Tokens = defaultTokens
	for _, field := range strings.Fields(body) {
		key, value, _ := strings.Cut(field, "=")
		script.set(key, value)
	}
	return script, true
}

func (s *Script) set(key, value string) {
	switch key {
	case "tokens":
		setCount(&s.Tokens, value)
	case "reasoning":
		setCount(&s.Reasoning, value)
	case "fail":
		setCount(&s.Fail, value)
	case "ttft":
		setWait(&s.TTFT, value)
	case "interval":
		setWait(&s.Interval, value)
	case "code":
		s.Code = value
	case "stall":
		at, wait, _ := strings.Cut(value, ":")
		setCount(&s.Stall.At, at)
		setWait(&s.Stall.For, wait)
	case "hold":
		at, name, _ := strings.Cut(value, ":")
		hold := Hold{At: -1, Name: name}
		if setCount(&hold.At, at); hold.At >= 0 && len(s.Holds) < maxHolds {
			s.Holds = append(s.Holds, hold)
		}
	case "approval":
		risk, reversibility, _ := strings.Cut(value, ":")
		if len(s.Tools)+len(s.Approvals) < maxTools {
			input := map[string]any{"note": "A note of the scripted model."}
			if risk != "" {
				input["risk"] = risk
			}
			if reversibility != "" {
				input["reversibility"] = reversibility
			}
			s.Approvals = append(s.Approvals, input)
		}
	case "artifact":
		if len(s.Tools) < maxTools {
			s.Tools = append(s.Tools, Tool{Name: toolWrite, Kind: value})
		}
	case "tool":
		name, rest, _ := strings.Cut(value, ":")
		wait, outcome, _ := strings.Cut(rest, ":")
		if name != "" && len(s.Tools) < maxTools {
			tool := Tool{Name: name, Fail: outcome == "fail"}
			setWait(&tool.Wait, wait)
			s.Tools = append(s.Tools, tool)
		}
	}
}

func setCount(target *int, value string) {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		*target = min(n, maxTokens)
	}
}

// setWait parses a duration, for example 150ms or 2s. A plain number counts milliseconds.
func setWait(target *time.Duration, value string) {
	wait, err := time.ParseDuration(value)
	if err != nil {
		wait, err = time.ParseDuration(value + "ms")
	}
	if err == nil && wait >= 0 {
		*target = min(wait, maxWait)
	}
}

// Text returns the complete text of an answer to the directive, without faults and without steering.
func (s Script) Text() string { return s.text().String() }

func (s Script) text() text {
	built := text{passage: passage, tokens: s.Tokens}
	if s.Code != "" {
		built.inset, built.insetAt = split("\n\n"+fence(s.Code)+"\n\n"), s.Tokens/2
	}
	return built
}

func withoutDirective(text string) string {
	before, rest, found := strings.Cut(text, directiveOpen)
	if found {
		_, after, _ := strings.Cut(rest, directiveClose)
		text = before + after
	}
	return strings.TrimSpace(text)
}

// exampleInput returns a valid input for a tool of the service or, if tool.Fail is set, one that the tool refuses. For
// any other tool the input is {} or {"fail": true}.
func exampleInput(request llm.Request, tool Tool) map[string]any {
	switch tool.Name {
	case toolCalculate:
		expression := "6*7"
		if tool.Fail {
			expression = "1/0"
		}
		return map[string]any{inputName(request, tool.Name, "expression"): expression}
	case toolTime:
		zone := "UTC"
		if tool.Fail {
			zone = "Nowhere/Nowhere"
		}
		return map[string]any{inputName(request, tool.Name, "timezone"): zone}
	case toolCode:
		if tool.Fail {
			return map[string]any{"code": `throw new Error("The script fails.")`}
		}
		return runInput("", nil)
	}
	if tool.Fail {
		return map[string]any{"fail": true}
	}
	if tool.Name == toolWrite {
		return artifactInput(tool.Kind)
	}
	if tool.Name == toolPage {
		return map[string]any{"url": "https://corpus.turnstone.example/flyways"}
	}
	if tool.Name == toolResearch {
		return map[string]any{"question": "How are the times of tides predicted?", "depth": "quick"}
	}
	if tool.Name == toolSearch || tool.Name == toolPast || tool.Name == toolWeb {
		return map[string]any{inputName(request, tool.Name, "query"): "tides"}
	}
	return map[string]any{}
}
