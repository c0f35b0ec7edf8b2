// Package scripted simulates a language model. Its answer is a pure function of the request. It is the default
// provider, so that a first trial needs no API key. It is also the model of the tests and of the load tester, so a
// token must need very little time.
//
// Plain text gets a short plain answer (reply.go). A directive in a user message of the turn controls the answer
// (directive.go): its tokens come from a fixed passage, and token i is always Token(i), so every byte of a continuation
// is predictable.
package scripted

import (
	"context"
	"fmt"
	"strings"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol/failpoint"
)

// Family is the result of Model.Family.
const Family = "scripted"

// The pace of DefaultOptions, which is about that of a fast hosted model.
const (
	DefaultTTFT     = 150 * time.Millisecond
	DefaultInterval = 20 * time.Millisecond
)

// Options set the pace and the abilities of a Model.
type Options struct {
	TTFT     time.Duration // before the first chunk
	Interval time.Duration // between tokens
	// NoContinue makes Continues return false, to simulate a provider that must start a cut answer again.
	NoContinue bool
}

// DefaultOptions returns the options for interactive use. Tests use the zero value of Options, which does not wait.
func DefaultOptions() Options { return Options{TTFT: DefaultTTFT, Interval: DefaultInterval} }

// Model implements llm.Model.
type Model struct{ options Options }

var _ llm.Model = (*Model)(nil)

// New returns a model.
func New(options Options) *Model { return &Model{options: options} }

// Continues implements llm.Model. After a trailing assistant message, the answer continues that message.
func (m *Model) Continues() bool { return !m.options.NoContinue }

// Ready implements llm.Model.
func (m *Model) Ready(ctx context.Context) error { return ctx.Err() }

// Family implements llm.Model.
func (m *Model) Family() string { return Family }

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
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
	stop, err := stream.emitAnswer(answer, turn.prefix, request.MaxOutputTokens)
	if err != nil {
		return err
	}
	usage := llm.Usage{
		InputTokens: inputTokens(request), OutputTokens: stream.tokens + stream.reasoning, ReasoningTokens: stream.reasoning,
	}
	if err := stream.send(llm.Chunk{Kind: llm.ChunkUsage, Usage: usage}); err != nil {
		return err
	}
	return stream.send(llm.Chunk{Kind: llm.ChunkStop, Stop: stop})
}

// inputTokens counts four bytes as one token. It uses no tokenizer.
func inputTokens(request llm.Request) int {
	bytes, pictures := len(request.System), 0
	for _, message := range request.Messages {
		bytes += len(message.Text)
		pictures += len(message.Pictures)
	}
	return bytes/4 + pictures*llm.PictureTokens + len(request.Messages) + 1
}

// stream emits chunks at a pace. It uses one timer for all of them.
type stream struct {
	ctx       context.Context
	emit      func(llm.Chunk) error
	interval  time.Duration
	timer     *time.Timer
	next      time.Time // when the next token is due
	tokens    int
	reasoning int
	sent      bool
}

func (s *stream) emitAnswer(answer answer, prefix string, limit int) (llm.Stop, error) {
	if prefix == "" {
		for i := range answer.reasoning.length() {
			if err := s.token(llm.ChunkReasoning, answer.reasoning.at(i)); err != nil {
				return "", err
			}
			s.reasoning++
		}
	}
	for _, call := range answer.calls {
		if err := s.sleep(call.wait); err != nil {
			return "", err
		}
		if err := s.send(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: call.ToolCall}); err != nil {
			return "", err
		}
	}
	if len(answer.calls) > 0 {
		return llm.StopToolCalls, nil
	}
	return s.emitText(answer, prefix, limit)
}

// emitText emits the text after prefix. The positions of faults count from the start of the whole text. A call that
// continues at or after the position of a fault skips that fault, so a continuation gets past the position where the
// call before it failed.
func (s *stream) emitText(answer answer, prefix string, limit int) (llm.Stop, error) {
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
			return "", &llm.Error{
				Code: "model_unavailable", Retryable: true, Cut: s.sent, Err: fmt.Errorf("the script fails at token %d", i),
			}
		}
		if i >= answer.text.length() {
			return llm.StopEndTurn, nil
		}
		if limit > 0 && s.tokens >= limit {
			return llm.StopMaxTokens, nil
		}
		token := answer.text.at(i)
		if i == first {
			token = token[rest:]
		}
		if err := s.token(llm.ChunkText, token); err != nil {
			return "", err
		}
		s.tokens++
	}
}

// token waits until the token is due and emits it. After a late token, the others are not sent faster to catch up.
func (s *stream) token(kind llm.ChunkKind, text string) error {
	if s.interval > 0 && s.sent {
		now := time.Now()
		if s.next = s.next.Add(s.interval); s.next.Before(now.Add(-s.interval)) {
			s.next = now.Add(s.interval)
		}
		if err := s.sleep(s.next.Sub(now)); err != nil {
			return err
		}
	}
	return s.send(llm.Chunk{Kind: kind, Text: text})
}

func (s *stream) send(chunk llm.Chunk) error {
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

// turn describes the turn that a request belongs to.
type turn struct {
	original    string   // what the user asked
	steering    []string // the user's later messages that no answer has taken into account
	directive   string   // the last user message of the turn that contains a directive
	answered    bool     // an earlier step of the turn has a text: only steering is left to answer
	calledTools bool     // tools were called after the message that is to be answered
	hadStep     bool     // there was a step after that message
	calls       []llm.ToolCall
	results     []llm.Message // of the last step's calls
	prefix      string        // the text to continue
	files       []file        // of the turn's first message
	earlier     []file        // of the messages before it
}

// readTurn finds the turn in the conversation. If the request does not name the turn's first message, readTurn infers
// it: the earlier steps left Step-1 assistant messages, and the user message before them started the turn. It treats an
// earlier user message as that of another turn, which ended without an answer.
func readTurn(request llm.Request) turn {
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
	for _, message := range messages[:min(start, len(messages))] {
		_, files := filesOf(message)
		found.earlier = append(found.earlier, files...)
	}
	for i, message := range messages[start:] {
		found.read(message, i == 0)
	}
	return found
}

func guessStart(messages []llm.Message, steps int) int {
	for start := len(messages) - 1; start > 0; start-- {
		if role := messages[start].Role; role == "assistant" {
			steps--
		} else if role == "user" && steps <= 0 {
			return start
		}
	}
	return 0
}

func (t *turn) read(message llm.Message, first bool) {
	switch message.Role {
	case "assistant":
		t.steering, t.results, t.hadStep = nil, nil, true
		t.answered = t.answered || message.Text != "" && len(message.ToolCalls) == 0
		t.calls = message.ToolCalls
		t.calledTools = t.calledTools || len(message.ToolCalls) > 0
	case "tool":
		t.results = append(t.results, message)
	default:
		text, files := filesOf(message)
		if strings.Contains(text, directiveOpen) {
			t.directive, t.calledTools, t.hadStep = text, false, false
		} else if t.answered && t.directive == "" {
			t.calledTools, t.hadStep = false, false // steering after a plain answer counts as a new question
		}
		if text = withoutDirective(text); first {
			t.original, t.files = text, files
		} else if text != "" {
			t.steering = append(t.steering, text)
		}
	}
}

// plannedCall is a tool call and the wait before it.
type plannedCall struct {
	llm.ToolCall
	wait time.Duration
}

// answer is what one step emits.
type answer struct {
	script    Script // unscripted without a directive
	reasoning text
	calls     []plannedCall // if any, the step has no text
	text      text
}

func answerTo(request llm.Request, turn turn) answer {
	if strings.HasPrefix(request.System, "Write a title") {
		return answer{script: unscripted, text: text{head: split(title(request.Messages))}}
	}
	script, scripted := Parse(turn.directive)
	if step, is := researchStep(request); is && !(scripted && plansResearch(request)) {
		return answer{script: unscripted, text: text{head: split(step)}}
	}
	if !scripted {
		return reply(request, turn)
	}
	built := answer{script: script, text: script.text()}
	built.text.head = split(acknowledge(turn.steering))
	if !turn.hadStep {
		built.reasoning = text{passage: reasoningText, tokens: script.Reasoning}
	}
	if !turn.calledTools && !request.WithoutCalls {
		for i, tool := range script.Tools {
			built.calls = append(built.calls, plannedCall{
				ToolCall: newCall(request, i, tool.Name, exampleInput(request, tool)), wait: tool.Wait,
			})
		}
		for i, input := range script.Approvals {
			built.calls = append(built.calls, plannedCall{ToolCall: newCall(request, len(script.Tools)+i, toolAction, input)})
		}
	}
	return built
}
