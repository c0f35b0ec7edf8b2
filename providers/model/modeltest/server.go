// Package modeltest contains test servers that speak the wire formats of model providers, and the test suite that every
// provider must pass. The servers are as strict as the vendors (a tool result without its call is refused), record
// their requests, and can simulate the faults of a network and of a faulty gateway. Tests of the whole program start
// them too.
package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol/turnlog"
)

// The wire formats.
const (
	Chat      = "chat"      // OpenAI Chat Completions
	Responses = "responses" // OpenAI Responses
	Anthropic = "anthropic" // Anthropic Messages
)

// Fault is a way in which a response goes wrong.
type Fault int

// The faults. Those marked "after" happen once Step.After pieces were sent.
const (
	NoFault        Fault = iota
	SlowHeader           // nothing is sent until the client disconnects
	SlowBody             // only the header is sent until the client disconnects
	Stall                // after: nothing is sent until the client disconnects
	Cut                  // after: the connection breaks in the middle of a frame
	NoMarker             // after: the response ends well formed, without its end marker
	Garbage              // after: bytes that are not an event stream, then the end
	BadJSON              // after: an event whose data is not JSON
	ErrorEvent           // after: the wire format's error event, with Step.Error
	EndlessLine          // after: a line that does not end
	EndlessHeaders       // a header that does not end
	HTML                 // 200 and an HTML page
)

// Error is the body of an error response or of an error event.
type Error struct{ Type, Code, Message string }

// Step is the response to one request.
type Step struct {
	Status     int    // 0 means 200; any other status is an error response with Error
	RetryAfter string // header
	Location   string // header
	Error      Error

	Reasoning []string // pieces of one summary
	Text      []string // pieces
	ToolCalls []llm.ToolCall
	Stop      llm.Stop   // empty: derived from ToolCalls
	Usage     *llm.Usage // nil: the provider reports no usage

	EndDelay time.Duration   // between the end marker and the end of the body
	Gate     <-chan struct{} // if not nil, each piece except the first waits for a signal

	Fault Fault
	After int // pieces before the fault
}

// Script sets the responses of a server.
type Script struct {
	Steps    []Step             // the responses to the first request, the second, …; the last is repeated
	Respond  func(Request) Step // decides instead of Steps
	Interval time.Duration      // between pieces
	Key      string             // the required API key; empty accepts any
	NoModels bool               // the list of models does not exist
	Header   http.Header        // required in every request, including those for the list of models
}

// Request is a request to a server, in the types of package llm.
type Request struct {
	Header    http.Header
	Model     string
	System    string
	Messages  []llm.Message
	Tools     []string
	MaxTokens int
	Effort    string
	Raw       json.RawMessage

	pending []turnlog.Picture // of the next message; used while the request is parsed
}

// maxEndless limits the bytes that an endless fault sends to a client that sets no limit.
const maxEndless = 64 << 20

// Server implements one wire format on a loopback address. It is safe for concurrent use.
type Server struct {
	URL string // the base URL to configure

	wire    string
	http    *httptest.Server
	close   sync.Once
	closing chan struct{}
	aborted chan struct{}
	sent    atomic.Int64
	conns   atomic.Int64

	mu       sync.Mutex
	script   Script    // guarded by mu
	requests []Request // guarded by mu
}

// NewServer starts a server; the caller closes it.
func NewServer(wire string, script Script) *Server {
	server := &Server{
		wire: wire, script: script, closing: make(chan struct{}), aborted: make(chan struct{}, 1<<10),
	}
	server.http = httptest.NewUnstartedServer(http.HandlerFunc(server.serve))
	server.http.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			server.conns.Add(1)
		}
	}
	server.http.Start()
	server.URL = server.http.URL
	if wire != Anthropic {
		server.URL += "/v1"
	}
	return server
}

// Close ends the responses in progress and stops the server. It may be called more than once.
func (s *Server) Close() {
	s.close.Do(func() {
		close(s.closing)
		s.http.CloseClientConnections()
		s.http.Close()
	})
}

// SetScript replaces the script. The next request gets the first step, and Requests forgets the requests so far.
func (s *Server) SetScript(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.requests = script, nil
}

// Requests returns the valid requests since the start or the last SetScript, without those for the list of models.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Aborted returns a channel that gets a value for every response whose client disconnected before it was sent
// completely.
func (s *Server) Aborted() <-chan struct{} { return s.aborted }

// Sent returns the number of response bytes that were written.
func (s *Server) Sent() int64 { return s.sent.Load() }

// Connections returns the number of connections that clients have opened.
func (s *Server) Connections() int64 { return s.conns.Load() }

var paths = map[string]string{
	Chat: "/v1/chat/completions", Responses: "/v1/responses", Anthropic: "/v1/messages",
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	script := s.script
	s.mu.Unlock()
	out := &writer{server: s, w: w, r: r, wire: s.wire, interval: script.Interval}
	switch {
	case !carries(r.Header, script.Header):
		out.refuse(Step{Status: http.StatusForbidden, Error: Error{Type: "permission_error", Message: "a header is missing"}})
	case script.Key != "" && r.Header.Get("Authorization") != "Bearer "+script.Key && r.Header.Get("X-Api-Key") != script.Key:
		out.refuse(Step{Status: http.StatusUnauthorized, Error: Error{Type: "authentication_error", Code: "invalid_api_key"}})
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet && !script.NoModels:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
	case r.URL.Path == paths[s.wire] && r.Method == http.MethodPost:
		s.respond(out, script)
	default:
		out.refuse(Step{Status: http.StatusNotFound, Error: Error{Type: "not_found_error", Message: "no such path"}})
	}
}

// carries reports whether a request has the wanted headers, with exactly their values.
func carries(header, wanted http.Header) bool {
	for name, values := range wanted {
		if !slices.Equal(header.Values(name), values) {
			return false
		}
	}
	return true
}

func (s *Server) respond(out *writer, script Script) {
	body, err := io.ReadAll(out.r.Body)
	if err != nil {
		return
	}
	request, err := parse(s.wire, body)
	if err == nil {
		err = check(s.wire, request)
	}
	if err != nil {
		out.refuse(Step{Status: http.StatusBadRequest, Error: Error{Type: "invalid_request_error", Message: err.Error()}})
		return
	}
	request.Header = out.r.Header
	s.mu.Lock()
	index := len(s.requests)
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	if script.Respond != nil {
		out.play(script.Respond(request), request)
	} else {
		out.play(script.Steps[min(index, len(script.Steps)-1)], request)
	}
}

// check refuses requests that every vendor refuses.
func check(wire string, request Request) error {
	open := map[string]bool{}
	for i, message := range request.Messages {
		if message.Role == "tool" {
			if !open[message.ToolCallID] {
				return fmt.Errorf("message %d is not the result of an open tool call: %q", i, message.ToolCallID)
			}
			delete(open, message.ToolCallID)
		} else if len(open) > 0 {
			return fmt.Errorf("message %d follows tool calls without results", i)
		}
		for _, call := range message.ToolCalls {
			open[call.ID] = true
		}
	}
	if len(open) > 0 || len(request.Messages) == 0 {
		return fmt.Errorf("the conversation ends with open tool calls, or is empty")
	}
	last := request.Messages[len(request.Messages)-1]
	if wire == Anthropic && last.Role == "assistant" && last.Text != strings.TrimRight(last.Text, " \n\t") {
		return fmt.Errorf("final assistant content cannot end with trailing whitespace")
	}
	return nil
}

// ToolThenAnswer returns a function for Script.Respond. It behaves like a model that calls tool with input, and then
// answers with the tool's result.
func ToolThenAnswer(tool, input string) func(Request) Step {
	return func(request Request) Step {
		usage := &llm.Usage{InputTokens: 20, OutputTokens: 5}
		if last := request.Messages[len(request.Messages)-1]; last.Role == "tool" {
			return Step{Text: []string{"The tool ", "says: ", last.Text}, Usage: usage}
		}
		return Step{Usage: usage, ToolCalls: []llm.ToolCall{
			{ID: fmt.Sprintf("call_%d", len(request.Messages)), Name: tool, Input: json.RawMessage(input)},
		}}
	}
}

// writer writes the response to one request.
type writer struct {
	server   *Server
	wire     string
	w        http.ResponseWriter
	r        *http.Request
	interval time.Duration
	pieces   int
	step     Step
}

// unwind is the panic value with which a writer ends a response early: the client has disconnected, the server was
// closed, or a fault is complete.
type unwind struct{}

func (o *writer) play(step Step, request Request) {
	defer func() {
		if reason := recover(); reason != nil {
			if _, ended := reason.(unwind); !ended {
				panic(reason)
			}
		}
	}()
	o.step = step
	switch {
	case step.Status != 0 && step.Status != http.StatusOK:
		o.refuse(step)
	case step.Fault == SlowHeader:
		o.wait()
	case step.Fault == EndlessHeaders:
		o.endlessHeaders()
	case step.Fault == HTML:
		o.w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(o.w, "<html><body>Welcome to the gateway</body></html>")
	default:
		o.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		o.w.WriteHeader(http.StatusOK)
		o.flush()
		if step.Fault == SlowBody {
			o.wait()
		}
		o.writeAnswer(step, request)
	}
}

func (o *writer) writeAnswer(step Step, request Request) {
	if step.Stop == "" && len(step.ToolCalls) > 0 {
		step.Stop = llm.StopToolCalls
	} else if step.Stop == "" {
		step.Stop = llm.StopEndTurn
	}
	switch o.wire {
	case Chat:
		o.writeChat(step, request)
	case Responses:
		o.writeResponses(step, request)
	case Anthropic:
		o.writeAnthropic(step, request)
	}
	if step.EndDelay > 0 {
		timer := time.NewTimer(step.EndDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-o.r.Context().Done():
		}
	}
}

func (o *writer) refuse(step Step) {
	if step.RetryAfter != "" {
		o.w.Header().Set("Retry-After", step.RetryAfter)
	}
	if step.Location != "" {
		o.w.Header().Set("Location", step.Location)
	}
	o.w.Header().Set("Content-Type", "application/json")
	o.w.WriteHeader(step.Status)
	o.write(encode(o.errorBody(step.Error)))
}

func (o *writer) errorBody(e Error) map[string]any {
	if o.wire == Anthropic {
		return map[string]any{"type": "error", "error": map[string]any{"type": e.Type, "message": e.Message}}
	}
	return map[string]any{"error": map[string]any{"type": e.Type, "code": e.Code, "message": e.Message, "param": nil}}
}

// piece is called before each piece of the answer. It triggers the fault when the fault is due, and waits for the
// interval and the gate.
func (o *writer) piece() {
	if o.step.Fault != NoFault && o.pieces == o.step.After {
		o.fault()
	}
	if o.pieces++; o.pieces > 1 && o.interval > 0 {
		timer := time.NewTimer(o.interval)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-o.server.closing:
			panic(unwind{})
		case <-o.r.Context().Done():
		}
	}
	if o.pieces > 1 && o.step.Gate != nil {
		select {
		case <-o.step.Gate:
		case <-o.server.closing:
			panic(unwind{})
		case <-o.r.Context().Done():
		}
	}
	if o.r.Context().Err() != nil {
		o.clientGone()
	}
}

// end is called before the end of the answer. It triggers a fault that waits for more pieces than the answer has.
func (o *writer) end() {
	if o.step.Fault != NoFault && o.pieces <= o.step.After {
		o.fault()
	}
}

func (o *writer) fault() {
	switch o.step.Fault {
	case Stall:
		o.wait()
	case Cut:
		o.write([]byte("data: {\"half\": "))
		o.flush()
		panic(http.ErrAbortHandler)
	case NoMarker:
	case Garbage:
		o.write(bytes.Repeat([]byte("\x00\xff\x13 this is not an event stream\n"), 20))
	case BadJSON:
		o.frame("content_block_delta", []byte(`{"choices": [{]`))
	case ErrorEvent:
		body := o.errorBody(o.step.Error)
		if o.wire == Responses { // this format has the fields at the top level
			body = map[string]any{"type": "error", "code": o.step.Error.Code, "message": o.step.Error.Message, "param": nil}
		}
		o.frame("error", encode(body))
	case EndlessLine:
		o.write([]byte("data: "))
		for filler := bytes.Repeat([]byte("a"), 64<<10); o.server.Sent() < maxEndless; {
			o.write(filler)
			o.flush()
		}
	}
	panic(unwind{})
}

func (o *writer) endlessHeaders() {
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	line := []byte("HTTP/1.1 200 OK\r\n")
	for i := 0; i < maxEndless/64; i++ {
		if _, err := conn.Write(line); err != nil {
			return
		}
		line = fmt.Appendf(line[:0], "X-Fill-%d: %s\r\n", i, strings.Repeat("a", 48))
	}
}

// wait blocks until the client disconnects or the server is closed, and then ends the response.
func (o *writer) wait() {
	select {
	case <-o.server.closing:
		panic(unwind{})
	case <-o.r.Context().Done():
		o.clientGone()
	}
}

// clientGone records that the client has disconnected, and ends the response.
func (o *writer) clientGone() {
	select {
	case <-o.server.closing:
	case o.server.aborted <- struct{}{}:
	default: // the channel is full: the test does not read it
	}
	panic(unwind{})
}

// frame sends one event.
func (o *writer) frame(event string, data []byte) {
	if o.wire != Chat {
		o.write([]byte("event: " + event + "\n"))
	}
	o.write(slices.Concat([]byte("data: "), data, []byte("\n\n")))
	o.flush()
}

func (o *writer) write(data []byte) {
	n, err := o.w.Write(data)
	o.server.sent.Add(int64(n))
	if err != nil {
		o.clientGone()
	}
}

func (o *writer) flush() {
	if http.NewResponseController(o.w).Flush() != nil {
		o.clientGone()
	}
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("modeltest: %v", err))
	}
	return data
}
