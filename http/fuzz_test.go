package http

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	stdhttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"turnstone/actors"
	"turnstone/protocol"
)

// Fuzz targets of what strangers may send. Their seeds and what was found stand in testdata/fuzz and run with every test;
// make fuzz goes on from there.

// fuzzServer is a Server without dependencies, for a caller that is signed in.
func fuzzServer(f *testing.F, routes ...route) *Server {
	f.Helper()
	s, err := newServer(Config{
		Limiter: newTestLimiter(),
		Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "https", Host: "turnstone.example"},
		AllowedOrigins: []string{"https://app.turnstone.example"}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}, func(*Server) []route { return routes })
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func asCaller(s *Server, account protocol.AccountID) context.Context {
	ex := &exchange{server: s, header: stdhttp.Header{}, caller: &Caller{Account: protocol.Account{AccountID: account}, SessionID: protocol.SessionID(account)}}
	return context.WithValue(context.Background(), exchangeKey{}, ex)
}

// sseEvent is what a reader of an event stream gets.
type sseEvent struct{ id, event, data string }

// parseSSE reads a stream as the HTML standard says, and is stricter where our writer promises more: each field once an
// event, no field that it does not know, no end within an event.
func parseSSE(stream []byte) (events []sseEvent, comments int, err error) {
	text := strings.ReplaceAll(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\r", "\n")
	if text != "" && !strings.HasSuffix(text, "\n\n") {
		return nil, 0, errors.New("the stream ends within an event")
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var event sseEvent
		seen := map[string]bool{}
		for line := range strings.SplitSeq(block, "\n") {
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			if seen[field] {
				return nil, 0, fmt.Errorf("%q comes twice in an event", field)
			}
			seen[field] = true
			switch field {
			case "id":
				event.id = value
			case "event":
				event.event = value
			case "data":
				event.data = value
			case "retry", "":
				comments++
			default:
				return nil, 0, fmt.Errorf("%q is no field", field)
			}
		}
		if seen["data"] || seen["id"] || seen["event"] {
			events = append(events, event)
		}
	}
	return events, comments, nil
}

// FuzzEventStream: whatever texts a turn says, a reader gets its events one by one, with their bytes.
func FuzzEventStream(f *testing.F) {
	f.Add("a", "b", int64(1), uint8(3))
	f.Add("a\n\ndata: b\n\nid: 9", "\r\r\nevent: turn.finished\n\n", int64(7), uint8(0))
	f.Add("\u2028\u2029\u0085\x00\x1f", `","sequence":1,"type":"x"`, int64(1<<40), uint8(255))
	f.Add("\xff\xc3(", "🐦: :", int64(2), uint8(9))
	turn, part := protocol.NewTurnID(), protocol.NewPartID()
	f.Fuzz(func(t *testing.T, first, second string, sequence int64, mix uint8) {
		sequence = max(1, sequence&(1<<53-1))
		payloads := []protocol.Payload{
			&protocol.AnswerDelta{PartID: part, Delta: first}, &protocol.CodeDelta{PartID: part, Delta: second},
			&protocol.Notice{PartID: part, Kind: second, Text: first}, &protocol.AnswerDelta{PartID: part, Delta: second, Obfuscation: first},
		}
		recorder := httptest.NewRecorder()
		out := sseWriter{w: recorder, control: stdhttp.NewResponseController(recorder)}
		var frames []byte
		var want []sseEvent
		for i, payload := range payloads {
			begin := len(frames)
			var err error
			if frames, err = protocol.AppendEvent(frames, turn, sequence+int64(i), time.Unix(0, 0), payload); err != nil {
				t.Fatal(err)
			}
			want = append(want, sseEvent{strconv.FormatInt(sequence+int64(i), 10), string(payload.EventType()), string(frames[begin:])})
			frames = append(frames, '\n')
			if mix&(1<<i) != 0 { // what else is written between events
				out.write(unframed(renderChunk(frames)))
				out.write([]byte(comment))
				out.write(appendRetry(nil, int(mix)))
				frames = frames[:0]
			}
		}
		out.write(appendEvents(nil, frames))
		if err := out.flush(); err != nil {
			t.Fatal(err)
		}
		got, _, err := parseSSE(recorder.Body.Bytes())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("a reader gets %q (%v), want %q", got, err, want)
		}
	})
}

// FuzzCursor: a cursor opens where it was made and nowhere else, and nothing else opens.
func FuzzCursor(f *testing.F) {
	f.Add("", "messages", 0, 3, true)
	f.Add("garbage", "", 5, -1, false)
	f.Add(strings.Repeat("A", 16), "a", 1, 2, false)
	f.Add(strings.Repeat("A", 1023), "a", 1, 2, false)
	f.Add("a=b+/", "\x00", 1<<30, 9, true)
	s := fuzzServer(f)
	account, other := protocol.NewAccountID(), protocol.NewAccountID()
	f.Fuzz(func(t *testing.T, text, scope string, depth, flip int, newer bool) {
		mine, theirs := asCaller(s, account), asCaller(s, other)
		if at, err := openCursor[messagePosition](mine, s, text, scope); text != "" && (at != nil || protocol.CodeOf(err) != protocol.CodeInvalid) {
			t.Errorf("%q opens to %v (%v)", text, at, err)
		}
		want := messagePosition{Branch: protocol.BranchID(account), Depth: depth, Newer: newer}
		sealed := *sealCursor(mine, s, scope, &want)
		if at, err := openCursor[messagePosition](mine, s, sealed, scope); err != nil || *at != want {
			t.Errorf("%v came back as %v (%v)", want, at, err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(sealed)
		if err != nil {
			t.Fatal(err)
		}
		raw[uint(flip)%uint(len(raw))] ^= 1 << (uint(depth) % 8)
		for name, open := range map[string]func() (*messagePosition, error){
			"of another account": func() (*messagePosition, error) { return openCursor[messagePosition](theirs, s, sealed, scope) },
			"of another list":    func() (*messagePosition, error) { return openCursor[messagePosition](mine, s, sealed, scope+"x") },
			"with a bit changed": func() (*messagePosition, error) { return openCursor[messagePosition](mine, s, encode(raw), scope) },
			"with more behind":   func() (*messagePosition, error) { return openCursor[messagePosition](mine, s, sealed+"A", scope) },
		} {
			if at, err := open(); at != nil || protocol.CodeOf(err) != protocol.CodeInvalid {
				t.Errorf("a cursor %s opens to %v (%v)", name, at, err)
			}
		}
	})
}

// FuzzSteering: whatever body comes, it is refused as the client's fault or becomes one command within its bounds.
func FuzzSteering(f *testing.F) {
	turn := protocol.NewTurnID().String()
	for _, body := range []string{
		`{"type":"input","turn_id":"` + turn + `","client_steering_id":"1","input":[{"type":"text","text":"faster"}]}`,
		`{"type":"input","turn_id":"` + turn + `","client_steering_id":" ","delivery":"interrupt","input":[{"type":"text","text":"\u0000"}]}`,
		`{"type":"input","turn_id":"` + turn + `","client_steering_id":"1","input":[{"type":"file","file_id":null}]}`,
		`{"type":"cancel","turn_id":"` + turn + `","seen_sequence":-1,"scope":"turn_and_follow_ups"}`,
		`{"type":"cancel","turn_id":"` + turn + `","seen_sequence":9223372036854775808}`,
		`{"type":"withdraw","turn_id":"` + turn + `","steering_id":"st_01h455vb4pex5vsknk084sn02q"}`,
		`{"type":"approval","turn_id":"` + turn + `","approval_id":"a","decision":"reject"}`,
		`{"type":"input","type":"cancel"}`, `{"TYPE":"input"}`, `[]`, `null`, ``, `{`, "{\"type\":\"\xff\"}", `{"type":1e999}`, `{"input":[[[[[[]]]]]]}`,
	} {
		f.Add([]byte(body))
	}
	var command *actors.Command
	var body steeringRequest
	s := fuzzServer(f, stream("POST", "/chat/steering", "steerTurn", "", Policy{Public: true}, func(w stdhttp.ResponseWriter, _ *stdhttp.Request, in *steeringInput) (err error) {
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
				t.Errorf("%q: %d is no whole problem: %+v", content, response.StatusCode, p)
			}
			return
		case stdhttp.StatusAccepted:
		default:
			t.Fatalf("%q: %d %+v", content, response.StatusCode, p)
		}
		if command == nil {
			if body.Type != "approval" || body.ApprovalID == "" || body.Decision == "" {
				t.Errorf("%q became nothing", content)
			}
			return
		}
		switch command.Kind {
		case actors.CommandInput:
			runes := utf8.RuneCountInString(command.Text)
			if runes == 0 || runes > protocol.MaxSteeringRunes || strings.Contains(command.Text, "\x00") || !utf8.ValidString(command.Text) {
				t.Errorf("%q became the text %q", content, command.Text)
			}
			if strings.TrimSpace(command.ClientID) == "" || utf8.RuneCountInString(command.ClientID) > protocol.MaxClientIDLength || strings.Contains(command.ClientID, "\x00") {
				t.Errorf("%q is named %q", content, command.ClientID)
			}
			if command.Delivery != protocol.DeliverNextStep && command.Delivery != protocol.DeliverInterrupt || command.Hash == "" {
				t.Errorf("%q is delivered %q", content, command.Delivery)
			}
		case actors.CommandCancel:
			if command.Scope != "turn" && command.Scope != "turn_and_follow_ups" || command.Seen != nil && *command.Seen < 0 {
				t.Errorf("%q cancels %q after %v", content, command.Scope, command.Seen)
			}
		case actors.CommandWithdraw:
			if command.SteeringID.IsZero() {
				t.Errorf("%q withdraws nothing", content)
			}
		default:
			t.Errorf("%q became a command of kind %v", content, command.Kind)
		}
	})
}

// FuzzIdempotencyKey: a key is 1 to 128 visible ASCII characters, and belongs to its body.
func FuzzIdempotencyKey(f *testing.F) {
	f.Add("key", []byte(`{}`))
	f.Add(strings.Repeat("k", 128), []byte{})
	f.Add(strings.Repeat("k", 129), []byte(`{`))
	f.Add("a b", []byte(`{}`))
	f.Add("ä\x00\r\n", []byte(`{}`))
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		ctx := asCaller(s, protocol.NewAccountID())
		request := httptest.NewRequestWithContext(ctx, "POST", "https://turnstone.example/conversations", bytes.NewReader(body))
		if text != "" {
			request.Header[keyHeader] = []string{text}
		}
		var key *protocol.IdempotencyKey
		err := checkHeaders(request.Header)
		if err == nil {
			key, err = s.idempotencyKey(httptest.NewRecorder(), request, exchangeOf(ctx), creates)
		}
		good := len(text) >= 1 && len(text) <= 128
		for i := range len(text) {
			good = good && text[i] > ' ' && text[i] < 0x7f
		}
		switch {
		case text == "" && (key != nil || err != nil):
			t.Errorf("no key is %v (%v)", key, err)
		case text != "" && good && len(body) <= maxBody && (err != nil || key.Key != text || key.Method != "POST" || key.Path != "/conversations"):
			t.Errorf("%q is %v (%v)", text, key, err)
		case text != "" && !good && (key != nil || protocol.CodeOf(err) != protocol.CodeInvalid):
			t.Errorf("%q is %v (%v)", text, key, err)
		}
	})
}

// FuzzForm: behind the entry all text of a request's head is UTF-8 without control characters, and its path is the one
// that the router saw.
func FuzzForm(f *testing.F) {
	for _, text := range []string{"", "ok", "\xff", "\x00", "a\x1fb", "\u0085", "é", "\xed\xa0\x80", "a\tb", "a b", "%", "%00", "%ff", "%zz", ";"} {
		f.Add(text, "/chat", "a=1")
		f.Add("key", "/conversations/"+text+"/usage", "a=1")
		f.Add("key", "/chat", text+"=1&b="+text)
	}
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, header, path, query string) {
		for name := range readHeaders {
			request := &stdhttp.Request{Method: "POST", Header: stdhttp.Header{}, RemoteAddr: "192.0.2.1:1"}
			request.Header.Set(name, header)
			var err error
			if request.URL, err = url.ParseRequestURI("/" + strings.TrimLeft(path, "/") + "?" + query); err != nil {
				return // net/http refuses it
			}
			recorder, passed := httptest.NewRecorder(), false
			s.begin(s.checkForm(stdhttp.HandlerFunc(func(stdhttp.ResponseWriter, *stdhttp.Request) { passed = true }))).ServeHTTP(recorder, request)
			good := printable(strings.ReplaceAll(header, "\t", "")) && printable(request.URL.Path) && printable(request.URL.RawPath)
			values, malformed := url.ParseQuery(request.URL.RawQuery)
			for key, list := range values {
				good = good && printable(key+strings.Join(list, ""))
			}
			if name == keyHeader {
				good = good && isKey(header)
			}
			if good = good && malformed == nil; passed != good {
				t.Errorf("%s: %q of %q?%q: passed %t, status %d", name, header, path, query, passed, recorder.Code)
			}
			if !passed && !slices.Contains([]int{400, 401, 422}, recorder.Code) {
				t.Errorf("%s: %q of %q?%q is refused with %d", name, header, path, query, recorder.Code)
			}
		}
	})
}

// FuzzUserAgent: whatever a client calls itself, what is stored is short, printable UTF-8.
func FuzzUserAgent(f *testing.F) {
	for _, text := range []string{"", "Mozilla/5.0 (é)", "caf\xe9", "\xff\xfe\x85\x00", "a\tb\r\n", "\u0085\x7f", strings.Repeat("\xe9", 300), strings.Repeat("é", 300), "\xed\xa0\x80"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if clean := cleanUserAgent(text); !printable(clean) || len(clean) > maxUserAgent || cleanUserAgent(clean) != clean {
			t.Errorf("%q is kept as %q", text, clean)
		}
	})
}

// printable says whether a text is UTF-8 without control characters.
func printable(text string) bool {
	for _, c := range text {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return false
		}
	}
	return utf8.ValidString(text)
}

// FuzzVersionHeader: If-Match has one spelling of each version, with W/ or without.
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
		case strings.TrimPrefix(text, "W/") != ETagOf(*version) || both && *version != inBody:
			t.Errorf("%q and %d are %d", text, inBody, *version)
		}
	})
}

// FuzzResume: Last-Event-ID, or after, is a whole number from 0 in its one spelling.
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
			t.Errorf("%q is %d", text, cursor)
		}
	})
}

// FuzzConfirmation: a token confirms what it was made for, until it expires, and nothing else does.
func FuzzConfirmation(f *testing.F) {
	f.Add("", []byte("subject"), 0)
	f.Add(strings.Repeat("A", 54), []byte{}, 3)
	f.Add("garbage==", []byte("x"), -7)
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, token string, subject []byte, flip int) {
		if s.confirmed(token, subject) {
			t.Errorf("%q confirms %q", token, subject)
		}
		made := s.confirmationToken(0, s.now().Add(confirmationLife).Unix(), subject)
		if !s.confirmed(made, subject) || s.confirmed(made, append(bytes.Clone(subject), 0)) {
			t.Errorf("a token of %q does not confirm it, or confirms more", subject)
		}
		if s.confirmed(s.confirmationToken(0, s.now().Unix()-1, subject), subject) {
			t.Error("an expired token confirms")
		}
		raw, _ := base64.RawURLEncoding.DecodeString(made)
		raw[uint(flip)%uint(len(raw))] ^= 1
		if s.confirmed(encode(raw), subject) {
			t.Errorf("a token with a bit changed confirms %q", subject)
		}
	})
}

// FuzzOrigin: an unsafe request passes only when nothing about it says that another site made it, and no CSRF token but
// the session's own is good.
func FuzzOrigin(f *testing.F) {
	for _, origin := range []string{
		"", "null", "https://turnstone.example", "http://turnstone.example", "https://app.turnstone.example", "https://evil.example",
		"https://turnstone.example.evil.example", "https://turnstone.example:443", "https://turnstone.example@evil.example", "HTTPS://TURNSTONE.EXAMPLE",
		"https://turnstone.example/", "//turnstone.example", "https://turnstone.example#", "\x00", "https://[::1",
	} {
		f.Add("POST", origin, "", "")
		f.Add("DELETE", origin, "cross-site", "a.b")
		f.Add("PUT", origin, "same-site", ".")
		f.Add("GET", origin, "same-origin", "")
	}
	s := fuzzServer(f)
	const host, own, approved = "turnstone.example", "https://turnstone.example", "https://app.turnstone.example"
	f.Fuzz(func(t *testing.T, method, origin, site, token string) {
		request := (&stdhttp.Request{Method: method, Host: host, URL: &url.URL{Path: "/"}, Header: stdhttp.Header{}}).WithContext(asCaller(s, protocol.AccountID{}))
		for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site, csrfHeader: token} {
			if value != "" {
				request.Header[stdhttp.CanonicalHeaderKey(name)] = []string{value}
			}
		}
		ex := exchangeOf(request.Context())
		ex.caller = nil // the refusal is counted, not stored
		err := s.checkOrigin(request, ex)
		if err != nil && protocol.CodeOf(err) != protocol.CodeOrigin {
			t.Errorf("%v", err)
		}
		trusted := origin == own || origin == approved
		switch {
		case err != nil || safe(method) || method == "OPTIONS":
		case site != "" && site != "same-origin" && site != "none" && !trusted:
			t.Errorf("%q %q from %q passes", method, origin, site)
		case site == "" && origin != "" && !trusted && !sameOrigin(origin, host):
			t.Errorf("%q of %q passes", method, origin)
		}
	})
}

// sameOrigin says whether an origin is https and of a host, in any spelling of the URL.
func sameOrigin(origin, host string) bool {
	parsed, err := url.Parse(origin)
	return err == nil && parsed.Scheme == "https" && parsed.Host == host
}

// FuzzForwardedAddress: the address of a client is one that a trusted proxy named, the peer's own, or nobody's.
func FuzzForwardedAddress(f *testing.F) {
	for _, forwarded := range []string{"", "203.0.113.9", "1.1.1.1, 10.0.0.1", "garbage", "::1%eth0", "[::1]:80", ",,", "::ffff:1.2.3.4", "1.1.1.1,\x00"} {
		f.Add("10.0.0.1:1", forwarded)
		f.Add("192.0.2.1:1", forwarded)
	}
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		request := &stdhttp.Request{RemoteAddr: peer, Header: stdhttp.Header{"X-Forwarded-For": {forwarded}}}
		address := s.clientAddress(request)
		key := addressKey(address)
		if key == "" || strings.ContainsAny(key, " ,%\x00") {
			t.Errorf("%q behind %q is %q", forwarded, peer, key)
		}
		from, err := netip.ParseAddrPort(peer)
		if err == nil && !s.trusts(from.Addr().Unmap().WithZone("")) && address != from.Addr().Unmap().WithZone("") {
			t.Errorf("a peer that nobody trusts, %q, is %v by %q", peer, address, forwarded)
		}
	})
}
