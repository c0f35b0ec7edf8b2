package http

import (
	"bytes"
	stdhttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"turnstone/actors/turn/machine"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/protocol"
)

// Fuzz targets for untrusted input. Their seeds and the inputs that they found are in testdata/fuzz and run with every
// test run. make fuzz continues from them.

// fuzzServer returns a Server with these routes and without a database.
func fuzzServer(f *testing.F, routes ...route.Route) *Server {
	f.Helper()
	s, err := newServer(Config{
		Limiter: newTestLimiter(),
		Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "https", Host: "turnstone.example"},
		AllowedOrigins: []string{"https://app.turnstone.example"}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}, func(*Server) []route.Route { return routes })
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// FuzzSteering checks that every body is either refused with a client error or becomes one command within its bounds.
func FuzzSteering(f *testing.F) {
	id := protocol.NewTurnID().String()
	for _, body := range []string{
		`{"type":"input","turn_id":"` + id + `","client_steering_id":"1","input":[{"type":"text","text":"faster"}]}`,
		`{"type":"input","turn_id":"` + id + `","client_steering_id":" ","delivery":"interrupt","input":[{"type":"text","text":"\u0000"}]}`,
		`{"type":"input","turn_id":"` + id + `","client_steering_id":"1","input":[{"type":"file","file_id":null}]}`,
		`{"type":"cancel","turn_id":"` + id + `","seen_sequence":-1,"scope":"turn_and_follow_ups"}`,
		`{"type":"cancel","turn_id":"` + id + `","seen_sequence":9223372036854775808}`,
		`{"type":"withdraw","turn_id":"` + id + `","steering_id":"st_01h455vb4pex5vsknk084sn02q"}`,
		`{"type":"approval","turn_id":"` + id + `","approval_id":"a","decision":"reject"}`,
		`{"type":"input","type":"cancel"}`, `{"TYPE":"input"}`, `[]`, `null`, ``, `{`, "{\"type\":\"\xff\"}", `{"type":1e999}`, `{"input":[[[[[[]]]]]]}`,
	} {
		f.Add([]byte(body))
	}
	var command *machine.Command
	var body steeringRequest
	s := fuzzServer(f, route.Stream("POST", "/chat/steering", "steerTurn", "", route.Policy{Public: true}, func(w stdhttp.ResponseWriter, _ *stdhttp.Request, in *steeringInput) (err error) {
		body = in.Body
		if command, err = in.Body.command(); err == nil {
			w.WriteHeader(stdhttp.StatusAccepted)
		}
		return err
	}))
	f.Fuzz(func(t *testing.T, content []byte) {
		command = nil
		request := httptest.NewRequest("POST", "https://turnstone.example/chat/steering", bytes.NewReader(content))
		request.Header.Set("Content-Type", "application/json")
		response, p := ask(s, request)
		switch response.StatusCode {
		case 400, 404, 413, 422:
			if p.Code == "" || p.RequestID == "" || !utf8.ValidString(p.Detail) {
				t.Errorf("%q: the problem document of the %d is incomplete: %+v", content, response.StatusCode, p)
			}
			return
		case stdhttp.StatusAccepted:
		default:
			t.Fatalf("%q: %d %+v", content, response.StatusCode, p)
		}
		if command == nil {
			if body.Type != "approval" || body.ApprovalID == "" || body.Decision == "" {
				t.Errorf("%q was accepted, but there is no command", content)
			}
			return
		}
		switch command.Kind {
		case machine.CommandInput:
			runes := utf8.RuneCountInString(command.Text)
			if runes == 0 || runes > protocol.MaxSteeringRunes || strings.Contains(command.Text, "\x00") || !utf8.ValidString(command.Text) {
				t.Errorf("%q became the text %q", content, command.Text)
			}
			if strings.TrimSpace(command.ClientID) == "" || utf8.RuneCountInString(command.ClientID) > protocol.MaxClientIDLength || strings.Contains(command.ClientID, "\x00") {
				t.Errorf("%q became a command with the client ID %q", content, command.ClientID)
			}
			if command.Delivery != protocol.DeliverNextStep && command.Delivery != protocol.DeliverInterrupt || command.Hash == "" {
				t.Errorf("%q became a command with the delivery %q", content, command.Delivery)
			}
		case machine.CommandCancel:
			if command.Scope != "turn" && command.Scope != "turn_and_follow_ups" || command.Seen != nil && *command.Seen < 0 {
				t.Errorf("%q cancels %q after %v", content, command.Scope, command.Seen)
			}
		case machine.CommandWithdraw, machine.CommandApply:
			if command.SteeringID.IsZero() {
				t.Errorf("%q became a command without a steering ID", content)
			}
		default:
			t.Errorf("%q became a command of kind %v", content, command.Kind)
		}
	})
}

// FuzzResume checks that Last-Event-ID and after accept only whole numbers from 0, each in one spelling.
func FuzzResume(f *testing.F) {
	for _, text := range []string{"", "0", "7", "007", "-1", "+1", " 1", "1 ", "9223372036854775807", "9223372036854775808", "1e3", "٣", "0x1", "\x00"} {
		f.Add(text, "5")
		f.Add("", text)
	}
	f.Fuzz(func(t *testing.T, header, query string) {
		cursor, err := (&resource.ResumeInput{LastEventID: header, After: query}).Position()
		text := header
		if text == "" {
			text = query
		}
		switch {
		case err != nil:
			if protocol.CodeOf(err) != protocol.CodeInvalid {
				t.Errorf("%q: %v", text, err)
			}
		case text == "" && cursor == 0:
		case cursor < 0 || strconv.FormatInt(cursor, 10) != text:
			t.Errorf("%q is read as %d", text, cursor)
		}
	})
}
