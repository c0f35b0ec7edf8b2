// Package scripted is a language model without a model: what it answers is a pure function of the request. It is the
// embedded default, so that a first look needs no key, the double of the tests, and the load tester's model, so a token
// must cost next to nothing.
//
// Plain text gets a pleasant plain answer (reply.go). A directive in a user message of the turn shapes the answer
// (directive.go): its tokens come from a fixed passage, token i is always Token(i), and a continuation is therefore
// predictable to the byte.
package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"turnstone/actors"
	"turnstone/protocol/failpoint"
)

// Family is what Model.Family answers.
const Family = "scripted"

// The pace where neither Options nor a directive sets one; about that of a quick hosted model.
const (
	DefaultTTFT     = 150 * time.Millisecond
	DefaultInterval = 20 * time.Millisecond
)

// Options are the pace and the abilities of a Model.
type Options struct {
	TTFT     time.Duration // before the first chunk
	Interval time.Duration // between tokens
	// NoContinue makes Continues false, to play a provider that must start a cut answer again.
	NoContinue bool
}

// DefaultOptions are what a person should see; tests take the zero value, which does not wait.
func DefaultOptions() Options { return Options{TTFT: DefaultTTFT, Interval: DefaultInterval} }

// Model implements actors.Model.
type Model struct{ options Options }

var _ actors.Model = (*Model)(nil)

// New returns a model.
func New(options Options) *Model { return &Model{options: options} }

// Continues implements actors.Model: given a trailing assistant message, the answer goes on after it.
func (m *Model) Continues() bool { return !m.options.NoContinue }

// Ready implements actors.Model.
func (m *Model) Ready(ctx context.Context) error { return ctx.Err() }

// Family implements actors.Model.
func (m *Model) Family() string { return Family }

// Stream implements actors.Model.
func (m *Model) Stream(ctx context.Context, request actors.ModelRequest, emit func(actors.ModelChunk) error) error {
	turn := readTurn(request)
	answer := answerTo(request, turn)
	stream := &stream{ctx: ctx, emit: emit, interval: m.options.Interval}
	ttft := m.options.TTFT
	if answer.script.TTFT >= 0 {
		ttft = answer.script.TTFT
	}
	if answer.script.Interval >= 0 {
		stream.interval = answer.script.Interval
	}
	defer stream.stop()
	if err := stream.sleep(ttft); err != nil {
		return err
	}
	stop, err := stream.play(answer, turn.prefix, request.MaxOutputTokens)
	if err != nil {
		return err
	}
	usage := actors.ModelUsage{
		InputTokens: inputTokens(request), OutputTokens: stream.tokens + stream.reasoning, ReasoningTokens: stream.reasoning,
	}
	if err := stream.send(actors.ModelChunk{Kind: actors.ChunkUsage, Usage: usage}); err != nil {
		return err
	}
	return stream.send(actors.ModelChunk{Kind: actors.ChunkStop, Stop: stop})
}

// inputTokens is a count, not a tokenizer: four bytes a token.
func inputTokens(request actors.ModelRequest) int {
	bytes := len(request.System)
	for _, message := range request.Messages {
		bytes += len(message.Text)
	}
	return bytes/4 + len(request.Messages) + 1
}

// stream emits at a pace, with one timer for all of it.
type stream struct {
	ctx       context.Context
	emit      func(actors.ModelChunk) error
	interval  time.Duration
	timer     *time.Timer
	next      time.Time // when the next token is due
	tokens    int
	reasoning int
	sent      bool
}

func (s *stream) play(answer answer, prefix string, limit int) (actors.ModelStop, error) {
	if prefix == "" {
		for i := range answer.thoughts.length() {
			if err := s.token(actors.ChunkReasoning, answer.thoughts.at(i)); err != nil {
				return "", err
			}
			s.reasoning++
		}
	}
	for _, call := range answer.calls {
		if err := s.sleep(call.wait); err != nil {
			return "", err
		}
		if err := s.send(actors.ModelChunk{Kind: actors.ChunkToolCall, ToolCall: call.ModelToolCall}); err != nil {
			return "", err
		}
	}
	if len(answer.calls) > 0 {
		return actors.StopToolCalls, nil
	}
	return s.speak(answer, prefix, limit)
}

// speak emits the text after prefix. Places of faults count from the beginning of the whole text, and a call that
// begins behind one does not meet it again: a continuation gets past the place where its forerunner broke.
func (s *stream) speak(answer answer, prefix string, limit int) (actors.ModelStop, error) {
	first, rest := answer.text.after(prefix)
	script := answer.script
	for i := first; ; i++ {
		if i == script.Stall.At && (i > first || first == 0) {
			if err := s.sleep(script.Stall.For); err != nil {
				return "", err
			}
			s.next = time.Time{}
		}
		for _, hold := range script.Holds {
			if i != hold.At || i == first && first > 0 {
				continue
			}
			if err := failpoint.Hold(s.ctx, hold.Name); err != nil {
				return "", err
			}
			s.next = time.Time{}
		}
		if i == script.Fail && (i > first || first == 0) {
			return "", &actors.ModelError{
				Code: "model_unavailable", Retryable: true, Cut: s.sent, Err: fmt.Errorf("the script fails at token %d", i),
			}
		}
		if i >= answer.text.length() {
			return actors.StopEndTurn, nil
		}
		if limit > 0 && s.tokens >= limit {
			return actors.StopMaxTokens, nil
		}
		token := answer.text.at(i)
		if i == first {
			token = token[rest:]
		}
		if err := s.token(actors.ChunkText, token); err != nil {
			return "", err
		}
		s.tokens++
	}
}

// token waits for its place in the schedule. A late one does not make the others hurry.
func (s *stream) token(kind actors.ChunkKind, text string) error {
	if s.interval > 0 && s.sent {
		now := time.Now()
		if s.next = s.next.Add(s.interval); s.next.Before(now.Add(-s.interval)) {
			s.next = now.Add(s.interval)
		}
		if err := s.sleep(s.next.Sub(now)); err != nil {
			return err
		}
	}
	return s.send(actors.ModelChunk{Kind: kind, Text: text})
}

func (s *stream) send(chunk actors.ModelChunk) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.sent = true
	return s.emit(chunk)
}

func (s *stream) sleep(wait time.Duration) error {
	if wait <= 0 {
		return s.ctx.Err()
	}
	if s.timer == nil {
		s.timer = time.NewTimer(wait)
	} else {
		s.timer.Reset(wait)
	}
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-s.timer.C:
		return nil
	}
}

func (s *stream) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// turn is what a request says about the turn that it belongs to.
type turn struct {
	original string   // what the user asked
	steering []string // what the user said since and no answer has taken into account
	scripted string   // the last user message of the turn that holds a directive
	answered bool     // the turn has a text of an earlier step: only steering is left to answer
	asked    bool     // since the message that is to be answered, tools were called
	thought  bool     // since that message there was a step
	calls    []actors.ModelToolCall
	results  []actors.ModelMessage // of the last step's calls
	prefix   string                // the text to go on from
}

// readTurn finds the turn in the conversation. Where the request does not say where it begins, its earlier steps left
// Step-1 assistant messages, and the user message before them began it: a user message still before that is taken for
// an earlier turn's, which ended without an answer.
func readTurn(request actors.ModelRequest) turn {
	messages := request.Messages
	var found turn
	if last := len(messages) - 1; last >= 0 && messages[last].Role == "assistant" {
		found.prefix = messages[last].Text
		messages = messages[:last]
	}
	start := request.TurnInput - 1
	if start < 0 || start >= len(messages) {
		start = guessStart(messages, request.Step-1)
	}
	for i, message := range messages[start:] {
		found.read(message, i == 0)
	}
	return found
}

func guessStart(messages []actors.ModelMessage, steps int) int {
	for start := len(messages) - 1; start > 0; start-- {
		if role := messages[start].Role; role == "assistant" {
			steps--
		} else if role == "user" && steps <= 0 {
			return start
		}
	}
	return 0
}

func (t *turn) read(message actors.ModelMessage, first bool) {
	switch message.Role {
	case "assistant":
		t.steering, t.results, t.thought = nil, nil, true
		t.answered = t.answered || message.Text != "" && len(message.ToolCalls) == 0
		t.calls = message.ToolCalls
		t.asked = t.asked || len(message.ToolCalls) > 0
	case "tool":
		t.results = append(t.results, message)
	default:
		if strings.Contains(message.Text, directiveOpen) {
			t.scripted, t.asked, t.thought = message.Text, false, false
		} else if t.answered && t.scripted == "" {
			t.asked, t.thought = false, false // steering after an answer in plain words is a question of its own
		}
		if text := withoutDirective(message.Text); first {
			t.original = text
		} else if text != "" {
			t.steering = append(t.steering, text)
		}
	}
}

// plannedCall is a tool call and how long the model thinks about it.
type plannedCall struct {
	actors.ModelToolCall
	wait time.Duration
}

// answer is what one step emits.
type answer struct {
	script   Script // no directive: nothing set
	thoughts text
	calls    []plannedCall // if any, the step has no text
	text     text
}

func answerTo(request actors.ModelRequest, turn turn) answer {
	if strings.HasPrefix(request.System, "Write a title") {
		return answer{script: unscripted, text: text{head: split(title(request.Messages))}}
	}
	script, scripted := Parse(turn.scripted)
	if !scripted {
		return reply(request, turn)
	}
	built := answer{script: script, text: script.text()}
	built.text.head = split(acknowledge(turn.steering))
	if !turn.thought {
		built.thoughts = text{passage: thoughts, tokens: script.Reasoning}
	}
	if !turn.asked {
		for i, tool := range script.Tools {
			built.calls = append(built.calls, plannedCall{
				ModelToolCall: newCall(request, i, tool.Name, exampleInput(request, tool)), wait: tool.Wait,
			})
		}
	}
	return built
}

// newCall numbers calls by their place in the conversation, so that a step that is asked again calls the same.
func newCall(request actors.ModelRequest, index int, name string, input map[string]any) actors.ModelToolCall {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(errors.Join(errors.New("scripted: an input of plain values"), err))
	}
	return actors.ModelToolCall{ID: fmt.Sprintf("call_%d_%d", len(request.Messages), index), Name: name, Input: raw}
}

func acknowledge(steering []string) string {
	if len(steering) == 0 {
		return ""
	}
	return "Taking into account: " + clip(strings.Join(steering, "; "), 300) + "\n\n"
}
