package crash

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/researchlog"
	"turnstone/providers/model/modeltest"
)

// The tokens in the texts of clients: T… starts a turn and is followed by directives for it, S… steers a turn. The
// stand-ins parse them.
var (
	turnToken  = regexp.MustCompile(`T[0-9a-f]{12}`)
	steerToken = regexp.MustCompile(`S[0-9a-f]{12}`)
	wordCount  = regexp.MustCompile(`words=(\d+)`)
	wantsTools = regexp.MustCompile(`(effect|asked_effect)=(\d)`) // how many calls of a tool there are at once
)

// modelPace is the interval between two words of an answer.
const modelPace = 4 * time.Millisecond

// standIns are the model and the tool. They run longer than every process of the service and record the requests that
// they get.
type standIns struct {
	model  *modeltest.Server
	effect *httptest.Server

	mu      sync.Mutex
	asked   []modelRequest // guarded by mu
	effects []string       // guarded by mu: the notes, in order
	calls   int            // guarded by mu
}

// modelRequest is a request to the model: the turn that it is for, and the steering inputs that it contains.
type modelRequest struct {
	Turn   string
	Steers []string
}

func newStandIns() *standIns {
	s := &standIns{}
	s.model = modeltest.NewServer(modeltest.Chat, s.script())
	s.effect = httptest.NewServer(http.HandlerFunc(s.recordEffect))
	return s
}

func (s *standIns) close() {
	s.model.Close()
	s.effect.Close()
}

func (s *standIns) script() modeltest.Script {
	return modeltest.Script{Respond: s.react, Interval: modelPace}
}

// take returns the records since the last call.
func (s *standIns) take() (asked []modelRequest, effects []string) {
	s.model.SetScript(s.script()) // it also clears the model's own records
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, effects = s.asked, s.effects
	s.asked, s.effects = nil, nil
	return asked, effects
}

func (s *standIns) react(request modeltest.Request) modeltest.Step {
	if strings.HasPrefix(request.System, researchlog.StepMarker) {
		return modeltest.Step{Text: []string{sitetest.ScriptedAnswer(request)}, Usage: &llm.Usage{InputTokens: 1, OutputTokens: 1}}
	}
	seen, about, called := modelRequest{}, "", false
	for _, message := range request.Messages {
		if message.Role == "tool" {
			called = true
		}
		if message.Role != "user" {
			continue
		}
		if at := turnToken.FindAllStringIndex(message.Text, -1); at != nil { // adjacent messages of the user are joined
			last := at[len(at)-1]
			seen.Turn, about, called = message.Text[last[0]:last[1]], message.Text[last[0]:], false
		}
		seen.Steers = append(seen.Steers, steerToken.FindAllString(message.Text, -1)...)
	}
	s.mu.Lock()
	s.asked = append(s.asked, seen)
	s.calls++
	call := s.calls
	s.mu.Unlock()
	usage := &llm.Usage{InputTokens: 1, OutputTokens: 1}
	if tools := wantsTools.FindStringSubmatch(about); tools != nil && !called {
		step := modeltest.Step{Usage: usage}
		for i := range int(tools[2][0] - '0') {
			note := fmt.Sprintf(`{"note":"N%s-%d-%d"}`, seen.Turn, call, i)
			step.ToolCalls = append(step.ToolCalls, llm.ToolCall{ID: fmt.Sprintf("call_%d_%d", call, i), Name: tools[1], Input: json.RawMessage(note)})
		}
		return step
	}
	return modeltest.Step{Text: words(about, call), Usage: usage}
}

func words(about string, call int) []string {
	count := 4
	if found := wordCount.FindStringSubmatch(about); found != nil {
		count, _ = strconv.Atoi(found[1]) // the pattern matches digits only
	}
	text := make([]string, count)
	for i := range text {
		text[i] = fmt.Sprintf("w%d.%d ", call, i)
	}
	return text
}

// recordEffect is the effect of the tool. It cannot be undone, and its record shows whether it happened twice.
func (s *standIns) recordEffect(w http.ResponseWriter, r *http.Request) {
	var input struct{ Note string }
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &input) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.effects = append(s.effects, input.Note)
	s.mu.Unlock()
	_, _ = io.WriteString(w, "done "+input.Note) // the caller may not receive it
}

// TestTheModelReadsTheNewestQuestion checks that a request whose earlier turn has no answer counts for its own turn: adjacent
// messages of the user are joined in it.
func TestTheModelReadsTheNewestQuestion(t *testing.T) {
	s := &standIns{}
	step := s.react(modeltest.Request{Messages: []llm.Message{
		{Role: "user", Text: "T000000000001 words=9 effect=1\n\nT000000000002 words=2\n\nS000000000003"},
	}})
	if len(step.Text) != 2 || len(step.ToolCalls) != 0 {
		t.Errorf("the model says %q and calls %v", step.Text, step.ToolCalls)
	}
	if want := (modelRequest{Turn: "T000000000002", Steers: []string{"S000000000003"}}); len(s.asked) != 1 || s.asked[0].Turn != want.Turn || !slices.Equal(s.asked[0].Steers, want.Steers) {
		t.Errorf("recorded %+v, want %+v", s.asked, want)
	}
}
