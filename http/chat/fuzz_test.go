package chat

import (
	"bytes"
	"context"
	"encoding/json"
	stdhttp "net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"turnstone/actors/turn/machine"
	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/ready"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/persistence/limits"
	"turnstone/protocol"
)

// allowAll is a limiter that allows every request.
type allowAll struct{}

func (allowAll) Take(context.Context, string, string) (limits.Decision, error) {
	return limits.Decision{Allowed: true}, nil
}

// fuzzRouter returns a Router with one route and without stores.
func fuzzRouter(f *testing.F, of route.Route) *router.Router {
	f.Helper()
	base := &url.URL{Scheme: "https", Host: "turnstone.example"}
	metrics, err := router.NewMetrics(nil)
	if err != nil {
		f.Fatal(err)
	}
	noLimits := exchange.NewLimits(allowAll{}, metrics.Limited)
	service, err := auth.New(auth.Config{BaseURL: base, Limits: noLimits, Log: zap.NewNop(), Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	rt, err := router.New(router.Config{Auth: service, Limits: noLimits, Readiness: ready.New(nil, "", zap.NewNop(), time.Now), Metrics: metrics, Log: zap.NewNop(), Now: time.Now, BaseURL: base}, route.Table{}.With(of))
	if err != nil {
		f.Fatal(err)
	}
	return rt
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
		`{"type":"approval","turn_id":"` + id + `","approval_id":"ap_01h455vb4pex5vsknk084sn02q","decision":"approve_with_edits","input_digest":"sha256:` + strings.Repeat("0", 64) + `","edited_input":{"a":[1, 2]}}`,
		`{"type":"input","type":"cancel"}`, `{"TYPE":"input"}`, `[]`, `null`, ``, `{`, "{\"type\":\"\xff\"}", `{"type":1e999}`, `{"input":[[[[[[]]]]]]}`,
	} {
		f.Add([]byte(body))
	}
	var command *machine.Command
	s := fuzzRouter(f, route.Stream("POST", "/chat/steering", "steerTurn", "", route.Policy{Public: true}, func(w stdhttp.ResponseWriter, _ *stdhttp.Request, in *steeringInput) (err error) {
		if command, err = in.Body.command(); err == nil {
			w.WriteHeader(stdhttp.StatusAccepted)
		}
		return err
	}))
	f.Fuzz(func(t *testing.T, content []byte) {
		command = nil
		request := httptest.NewRequest("POST", "https://turnstone.example/chat/steering", bytes.NewReader(content))
		request.Header.Set("Content-Type", "application/json")
		response, p := httptest.NewRecorder(), response.Problem{}
		s.ServeHTTP(response, request)
		switch response.Code {
		case 400, 404, 413, 422:
			_ = json.Unmarshal(response.Body.Bytes(), &p)
			if p.Code == "" || p.RequestID == "" || !utf8.ValidString(p.Detail) {
				t.Errorf("%q: the problem document of the %d is incomplete: %+v", content, response.Code, p)
			}
			return
		case stdhttp.StatusAccepted:
		default:
			t.Fatalf("%q: %d %+v", content, response.Code, p)
		}
		switch command.Kind {
		case machine.CommandDecide:
			if command.ApprovalID.IsZero() || command.Decision == "" || command.Digest == "" || (command.Decision == protocol.ApproveWithEdits) != (len(command.EditedInput) > 0) {
				t.Errorf("%q became the decision %+v", content, command)
			}
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
