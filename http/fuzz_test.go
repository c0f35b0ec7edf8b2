package http

import (
	"bytes"
	"encoding/base64"
	stdhttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"turnstone/actors/turn"
	"turnstone/http/auth"
	"turnstone/http/response"
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

// callerWith returns a signed-in caller of an account.
func callerWith(account protocol.AccountID) *auth.Caller {
	return &auth.Caller{Account: protocol.Account{AccountID: account}, SessionID: protocol.SessionID(account)}
}

// FuzzCursor checks that a cursor opens only for the account and the list for which it was created, and that no other
// text opens.
func FuzzCursor(f *testing.F) {
	f.Add("", "messages", 0, 3, true)
	f.Add("garbage", "", 5, -1, false)
	f.Add(strings.Repeat("A", 16), "a", 1, 2, false)
	f.Add(strings.Repeat("A", 1023), "a", 1, 2, false)
	f.Add("a=b+/", "\x00", 1<<30, 9, true)
	s := fuzzServer(f)
	account, other := protocol.NewAccountID(), protocol.NewAccountID()
	f.Fuzz(func(t *testing.T, text, scope string, depth, flip int, newer bool) {
		mine, theirs := callerWith(account), callerWith(other)
		if at, err := openCursor[messagePosition](mine, s.messages.keys, text, scope); text != "" && (at != nil || protocol.CodeOf(err) != protocol.CodeInvalid) {
			t.Errorf("%q opens to %v (%v)", text, at, err)
		}
		want := messagePosition{Branch: protocol.BranchID(account), Depth: depth, Newer: newer}
		sealed := *sealCursor(mine, s.messages.keys, scope, &want)
		if at, err := openCursor[messagePosition](mine, s.messages.keys, sealed, scope); err != nil || *at != want {
			t.Errorf("%v came back as %v (%v)", want, at, err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(sealed)
		if err != nil {
			t.Fatal(err)
		}
		raw[uint(flip)%uint(len(raw))] ^= 1 << (uint(depth) % 8)
		for name, open := range map[string]func() (*messagePosition, error){
			"of another account": func() (*messagePosition, error) {
				return openCursor[messagePosition](theirs, s.messages.keys, sealed, scope)
			},
			"of another list": func() (*messagePosition, error) {
				return openCursor[messagePosition](mine, s.messages.keys, sealed, scope+"x")
			},
			"with a bit changed": func() (*messagePosition, error) {
				return openCursor[messagePosition](mine, s.messages.keys, encode(raw), scope)
			},
			"with text appended": func() (*messagePosition, error) {
				return openCursor[messagePosition](mine, s.messages.keys, sealed+"A", scope)
			},
		} {
			if at, err := open(); at != nil || protocol.CodeOf(err) != protocol.CodeInvalid {
				t.Errorf("a cursor %s opens to %v (%v)", name, at, err)
			}
		}
	})
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
	var command *turn.Command
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
		case turn.CommandInput:
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
		case turn.CommandCancel:
			if command.Scope != "turn" && command.Scope != "turn_and_follow_ups" || command.Seen != nil && *command.Seen < 0 {
				t.Errorf("%q cancels %q after %v", content, command.Scope, command.Seen)
			}
		case turn.CommandWithdraw, turn.CommandApply:
			if command.SteeringID.IsZero() {
				t.Errorf("%q became a command without a steering ID", content)
			}
		default:
			t.Errorf("%q became a command of kind %v", content, command.Kind)
		}
	})
}

// FuzzVersionHeader checks that If-Match accepts only one spelling of each version, with W/ or without.
func FuzzVersionHeader(f *testing.F) {
	for _, text := range []string{`"v3"`, `W/"v3"`, `"v03"`, `"v-1"`, `v3`, `"v3`, `*`, `"v3", "v4"`, `W/W/"v3"`, `"v9223372036854775808"`, `"v+3"`, "\"v3\"\x00"} {
		f.Add(text, int64(3), true)
	}
	f.Fuzz(func(t *testing.T, text string, inBody int64, both bool) {
		var body *int64
		if both {
			body = &inBody
		}
		version, err := IfMatch{text}.version(body)
		switch {
		case text == "":
			if version != body || err != nil {
				t.Errorf("without a header: %v (%v)", version, err)
			}
		case err != nil:
			if protocol.CodeOf(err) != protocol.CodeInvalid {
				t.Errorf("%q: %v", text, err)
			}
		case strings.TrimPrefix(text, "W/") != response.ETagOf(*version) || both && *version != inBody:
			t.Errorf("%q and %d give the version %d", text, inBody, *version)
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
		cursor, err := (&ResumeInput{LastEventID: header, After: query}).cursor()
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

// FuzzConfirmation checks that a token confirms only the subject for which it was issued, and only until it expires.
func FuzzConfirmation(f *testing.F) {
	f.Add("", []byte("subject"), 0)
	f.Add(strings.Repeat("A", 54), []byte{}, 3)
	f.Add("garbage==", []byte("x"), -7)
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, token string, subject []byte, flip int) {
		if s.conversations.confirmations.confirmed(token, subject) {
			t.Errorf("%q confirms %q", token, subject)
		}
		made := s.conversations.confirmations.confirmationToken(0, s.now().Add(confirmationLifetime).Unix(), subject)
		if !s.conversations.confirmations.confirmed(made, subject) || s.conversations.confirmations.confirmed(made, append(bytes.Clone(subject), 0)) {
			t.Errorf("a token of %q does not confirm it, or confirms another subject", subject)
		}
		if s.conversations.confirmations.confirmed(s.conversations.confirmations.confirmationToken(0, s.now().Unix()-1, subject), subject) {
			t.Error("an expired token confirms")
		}
		raw, _ := base64.RawURLEncoding.DecodeString(made)
		raw[uint(flip)%uint(len(raw))] ^= 1
		if s.conversations.confirmations.confirmed(encode(raw), subject) {
			t.Errorf("a token with a bit changed confirms %q", subject)
		}
	})
}
