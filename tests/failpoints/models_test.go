package failpoints

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/verify"
	"turnstone/providers/model/modeltest"
)

var (
	modelRounds = flag.Int("models.rounds", 4, "kills of TestAKillAtAnyPointOfAnAnswerLosesNothing")
	modelSeed   = flag.Uint64("models.seed", 0, "its seed; 0: a random one")
)

const (
	modelUsers = 8 // each has a share of the turns: an account has a limit of open streams
	maxPieces  = 4 // of an answer that is not a list of events
)

// modelCase is a case of package modeltest.
type modelCase struct {
	name, profile string
	status        int
	pieces        []string // of the response
	hi            []string // pieces of the response to the result of a tool; nil: the case calls none
	fails         bool     // the turn does not complete

	// What the turn comes to without a kill.
	outcome  string
	requests int
}

func modelCases() (list []*modelCase) {
	profiles := map[string]string{"chat": "balanced", "responses": "deep_reasoning", "anthropic": "coding"}
	answers := map[string]string{
		"chat":      modeltest.ChatDelta(`{"content":"Hi"}`) + modeltest.ChatEnd("stop"),
		"responses": `{"type":"response.output_text.delta","delta":"Hi"}` + "\n" + `{"type":"response.completed","response":{"status":"completed"}}`,
		"anthropic": `{"type":"content_block_start","content_block":{"type":"text","text":"Hi"}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n" + `{"type":"message_stop"}`,
	}
	for _, each := range modeltest.AnswerCases {
		c := &modelCase{name: each.Name, profile: profiles[each.API], status: http.StatusOK, pieces: piecesOf(each.Bytes()), fails: strings.HasPrefix(each.Want, "!")}
		if strings.HasSuffix(each.Want, "tool_calls") {
			hi := modeltest.AnswerCase{Body: answers[each.API]}
			c.hi = piecesOf(hi.Bytes())
		}
		list = append(list, c)
	}
	for _, each := range modeltest.RefusalCases {
		list = append(list, &modelCase{
			name: "refused: " + each.Name, profile: profiles["chat"], status: each.Status, pieces: piecesOf(each.Body), fails: each.Want != "refusal",
		})
	}
	return list
}

// piecesOf returns the events of a response, or pieces of it.
func piecesOf(body string) []string {
	if pieces := strings.SplitAfter(strings.TrimSuffix(body, "\n\n"), "\n\n"); len(pieces) > 1 {
		return append(pieces[:len(pieces)-1], pieces[len(pieces)-1]+"\n\n")
	}
	size := len(body)/maxPieces + 1
	var pieces []string
	for piece := range slices.Chunk([]byte(body), size) {
		pieces = append(pieces, string(piece))
	}
	return pieces
}

// modelTurn is a turn about a case, in one round.
type modelTurn struct {
	*modelCase
	// Set before the turn starts.
	user         *sitetest.User
	conversation string
	key          string
	request      int // of the turn, in which it waits for the kill, from 1; 0: it never does
	after        int // pieces of the response to that request

	turn  string        // set before ended is closed
	err   error         // set before ended is closed
	met   chan struct{} // closed when the turn waits for the kill
	kill  chan struct{} // of the round; closed after the kill
	ended chan struct{} // closed when the first reader's connection has ended

	mu       sync.Mutex
	requests []bool // guarded by mu: whether each has the result of a tool
}

// modelProvider is the provider of the models of all turns. It outlives the program.
type modelProvider struct {
	mu    sync.Mutex
	turns map[string]*modelTurn // guarded by mu; by key
}

var (
	modelKey   = regexp.MustCompile(`case-\d+-of-round-\d+`)
	toolResult = regexp.MustCompile(`"role":"tool"|"function_call_output"|"tool_result"`)
)

func (p *modelProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost { // the program was killed, or asks for the list of models
		return
	}
	p.mu.Lock()
	turn := p.turns[string(modelKey.Find(body))]
	p.mu.Unlock()
	if turn == nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	turn.answer(w, toolResult.Match(body))
}

// answer plays the response to one request of the turn. At the point of the turn it waits until the program is killed.
func (m *modelTurn) answer(w http.ResponseWriter, afterTool bool) {
	m.mu.Lock()
	m.requests = append(m.requests, afterTool)
	waits := len(m.requests) == m.request
	m.mu.Unlock()
	pieces := m.pieces
	if afterTool && m.hi != nil {
		pieces = m.hi
	}
	hold := func(sent int) bool {
		if !waits || sent != min(m.after, len(pieces)) {
			return false
		}
		select {
		case <-m.kill: // it came first
			return false
		default:
		}
		close(m.met)
		<-m.kill
		return true
	}
	if hold(0) {
		return
	}
	w.WriteHeader(m.status)
	for i, piece := range pieces {
		_, _ = io.WriteString(w, piece)
		_ = http.NewResponseController(w).Flush() // fails when the program was killed
		if hold(i + 1) {
			return
		}
	}
}

// asked returns, for each request so far, whether it had the result of a tool.
func (m *modelTurn) asked() []bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// waited reports whether the kill met the turn at its point.
func (m *modelTurn) waited() bool {
	select {
	case <-m.met:
		return true
	default:
		return false
	}
}

// run starts the turn and reads its events until they end or the program is killed.
func (m *modelTurn) run(t *testing.T) {
	defer close(m.ended)
	stream, refused, err := m.user.TryChat(sitetest.Within(t, sitetest.HangGuard), m.body(), "Idempotency-Key", m.key)
	switch {
	case err != nil:
		m.err = err
	case refused != nil:
		m.err = fmt.Errorf("POST /chat: %d %s", refused.Status, refused.Body)
	default:
		m.turn = stream.Turn
		defer stream.Close()
		m.err = stream.Drain(nil)
	}
}

func (m *modelTurn) body() sitetest.ChatBody {
	return sitetest.NewChatBody(m.key).In(m.conversation).With("profile", m.profile)
}

// resume follows the turn in the next process to its end. A turn whose start was not acknowledged is started again, with the
// same key.
func (m *modelTurn) resume(t *testing.T) error {
	<-m.ended
	if m.turn != "" && m.err != nil {
		return m.err
	}
	if m.turn == "" {
		stream := m.user.Chat(t, m.body(), "Idempotency-Key", m.key)
		m.turn = stream.Turn
		return m.user.Watch(sitetest.Within(t, sitetest.HangGuard), m.turn, stream, nil)
	}
	return m.user.Watch(sitetest.Within(t, sitetest.HangGuard), m.turn, nil, nil)
}

// modelSuite runs rounds of all cases on one installation.
type modelSuite struct {
	*installation
	provider *modelProvider
	cases    []*modelCase
	users    []*sitetest.User
	random   *rand.Rand

	waited, takenOver int // turns, in all rounds
}

// play starts a turn for each case, with the points that draw chooses, and returns when a number of them wait or have ended.
func (s *modelSuite) play(round, enough int, draw func(*modelCase) (request, after int)) (turns []*modelTurn, kill chan struct{}) {
	s.t.Helper()
	kill = make(chan struct{})
	all := map[string]*modelTurn{}
	for i, each := range s.cases {
		m := &modelTurn{
			modelCase: each, user: s.users[i%len(s.users)], key: fmt.Sprintf("case-%d-of-round-%d", i, round), met: make(chan struct{}), ended: make(chan struct{}), kill: kill,
		}
		m.conversation = m.user.NewConversation(s.t)
		m.request, m.after = draw(each)
		all[m.key], turns = m, append(turns, m)
	}
	s.provider.mu.Lock()
	s.provider.turns = all
	s.provider.mu.Unlock()
	there := make(chan struct{}, len(turns))
	for _, m := range turns {
		go m.run(s.t)
		go func() {
			select {
			case <-m.met:
			case <-m.ended:
			}
			there <- struct{}{}
		}()
	}
	for range enough {
		<-there
	}
	return turns, kill
}

// outcomeOf describes how a turn ended and what is stored of it, and checks the invariants.
func (s *modelSuite) outcomeOf(m *modelTurn) (outcome string, read *verify.Turn) {
	s.t.Helper()
	s.user = m.user
	read = s.invariants(m.turn, m.conversation)
	end := read.End
	messages := s.user.Messages(s.t, m.conversation)
	asked := sitetest.Texts(messages[0].Parts)
	if len(asked) != 1 || asked[0] != sitetest.Canary+" "+m.key {
		s.t.Errorf("the question is %q", asked)
	}
	var usage protocol.List[protocol.UsageRecord]
	s.user.Get(s.t, "/conversations/"+m.conversation+"/usage", &usage)
	if len(usage.Data) != 1 {
		s.t.Errorf("%d records of usage", len(usage.Data))
	}
	outcome = fmt.Sprintf("%s %s %s", end.Status, end.StopReason, messages[1].Status)
	if end.Error != nil {
		outcome += " " + string(end.Error.Code)
	}
	return outcome + "\n" + partsOf(messages[1].Parts), read
}

func partsOf(parts []protocol.Part) string {
	var lines strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&lines, "%s %q %s %q %s %s %s %q %s %t %t %v\n", part.Type, part.Text, part.Language, part.Code, part.ToolName, part.Input, part.State, part.Output,
			part.Kind, part.Truncated, part.Open, part.Citations)
	}
	return lines.String()
}

// TestAKillAtAnyPointOfAnAnswerLosesNothing plays all answers and refusals of real servers to turns that run at the same
// time, first without a fault. Then it kills the program, round after round, while each turn waits at a point of its
// case: before a response, after a piece of it, after its end, in a repetition or after a tool. In every second round the
// kill does not wait for all turns. The next process takes the turns over. Each must end as it does without a kill.
func TestAKillAtAnyPointOfAnAnswerLosesNothing(t *testing.T) {
	t.Parallel()
	s := newModelSuite(t)
	turns, _ := s.play(0, len(s.cases), func(*modelCase) (int, int) { return 0, 0 })
	for i, m := range turns {
		if m.err != nil {
			t.Fatalf("%s: %v", m.name, m.err)
		}
		s.cases[i].outcome, _ = s.outcomeOf(m)
		s.cases[i].requests = len(m.asked())
		if completed := strings.HasPrefix(s.cases[i].outcome, string(protocol.TurnCompleted)); completed && m.fails {
			t.Errorf("%s: the turn ended %s", m.name, s.cases[i].outcome)
		}
	}
	for round := 1; round <= *modelRounds && !t.Failed(); round++ {
		s.killRound(round)
	}
	if all := *modelRounds * len(s.cases); s.waited < all/2 || s.takenOver < all/2 {
		t.Errorf("the kills met %d of %d turns, and %d were taken over", s.waited, all, s.takenOver)
	}
}

func newModelSuite(t *testing.T) *modelSuite {
	t.Helper()
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed: -models.seed=%d", seed)
	s := &modelSuite{
		installation: &installation{groupT: t, t: t}, provider: &modelProvider{}, cases: modelCases(), random: rand.New(rand.NewPCG(seed, 0)),
	}
	server := httptest.NewServer(s.provider)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	file := filepath.Join(t.TempDir(), "models.json")
	route := func(api string) string {
		return `[{"api":` + strconv.Quote(api) + `,"base_url":` + strconv.Quote(server.URL) + `,"model":` + strconv.Quote("model-of-"+api) + `}]`
	}
	text := `{"balanced":` + route("chat") + `,"deep_reasoning":` + route("responses") + `,"coding":` + route("anthropic") + `}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin("TURNSTONE_MODEL_CONFIG=" + file)
	for range modelUsers {
		s.users = append(s.users, sitetest.NewUser(t, s.Base))
	}
	return s
}

// killRound kills the program once while turns about all cases run, and checks each of them.
func (s *modelSuite) killRound(round int) {
	s.t.Helper()
	enough := len(s.cases)
	if round%2 == 0 {
		enough = len(s.cases)/2 + s.random.IntN(len(s.cases)/2)
	}
	turns, kill := s.play(round, enough, func(c *modelCase) (request, after int) {
		request = 1 + s.random.IntN(max(1, c.requests))
		pieces := len(c.pieces)
		if request > 1 && c.hi != nil {
			pieces = len(c.hi)
		}
		return request, s.random.IntN(pieces + 1)
	})
	var over []func()
	for _, user := range s.users {
		over = append(over, user.Ledger.Plan())
	}
	s.p.Kill()
	close(kill)
	s.launch()
	s.p.AwaitLog("turnstone serves")
	for _, m := range turns {
		if m.err = m.resume(s.t); m.err != nil {
			s.t.Errorf("round %d, %s: %v", round, m.name, m.err)
		}
	}
	for _, each := range over {
		each()
	}
	waited, takenOver := 0, 0
	for _, m := range turns {
		if m.err == nil && s.checkKilled(round, m) {
			takenOver++
		}
		if m.waited() {
			waited++
		}
	}
	s.waited, s.takenOver = s.waited+waited, s.takenOver+takenOver
	s.t.Logf("round %d: of %d turns %d waited for the kill, and %d were taken over", round, len(turns), waited, takenOver)
}

// checkKilled checks a turn that has ended, and reports whether it was taken over.
func (s *modelSuite) checkKilled(round int, m *modelTurn) bool {
	s.t.Helper()
	outcome, read := s.outcomeOf(m)
	if outcome != m.outcome {
		s.t.Errorf("round %d, %s, killed in request %d after %d pieces: it ended\n%s\nand without a kill\n%s", round, m.name, m.request, m.after, outcome, m.outcome)
	}
	asked := m.asked()
	if first := slices.Index(asked, true); first >= 0 && slices.Contains(asked[first:], false) {
		s.t.Errorf("round %d, %s: an answer that was complete was asked for again: %v", round, m.name, asked)
	}
	return takeovers(read) > 0
}
