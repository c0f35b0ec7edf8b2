package http

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"turnstone/protocol"
)

// frameServer is a Server with only the routes of a test, without any dependency.
func frameServer(t *testing.T, config Config, routes ...route) *Server {
	t.Helper()
	if config.BaseURL == nil {
		config.BaseURL = &url.URL{Scheme: "http", Host: "localhost:8080"}
	}
	config.Secrets = [][]byte{bytes.Repeat([]byte("k"), minSecret)}
	s, err := newServer(config, func(*Server) []route { return routes })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type echoInput struct {
	Body struct {
		Title string              `json:"title" maxLength:"5"`
		ID    *protocol.MessageID `json:"message_id,omitempty"`
	}
}

type echoOutput struct {
	Title string   `json:"title"`
	Names []string `json:"names"`
}

func echo(_ context.Context, in *echoInput) (*body[echoOutput], error) {
	return ok(echoOutput{Title: in.Body.Title}), nil
}

func echoRoute() route {
	return call("POST", "/echo", "echo", "", Policy{Public: true}, echo)
}

func post(s *Server, path, contentType string, content io.Reader) (*stdhttp.Response, Problem) {
	request := httptest.NewRequest("POST", "http://localhost"+path, content)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return ask(s, request)
}

func ask(s *Server, request *stdhttp.Request) (*stdhttp.Response, Problem) {
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, request)
	var p Problem
	_ = json.Unmarshal(recorder.Body.Bytes(), &p)
	return recorder.Result(), p
}

func TestBodiesAreRefusedByWhatIsWrongWithThem(t *testing.T) {
	s := frameServer(t, Config{}, echoRoute())
	const media = "application/json"
	for _, test := range []struct {
		name, media string
		body        io.Reader
		status      int
		code        protocol.Code
		field       string
	}{
		{"right", media, strings.NewReader(`{"title":"x","unknown":1}`), 200, "", ""},
		{"charset", media + "; charset=utf-8", strings.NewReader(`{"title":"x"}`), 200, "", ""},
		{"no type", "", strings.NewReader(`{"title":"x"}`), 415, protocol.CodeUnsupportedMedia, ""},
		{"form", "application/x-www-form-urlencoded", strings.NewReader(`{"title":"x"}`), 415, protocol.CodeUnsupportedMedia, ""},
		{"cut JSON", media, strings.NewReader(`{"title":"x"`), 400, protocol.CodeInvalidBody, "body"},
		{"empty", media, strings.NewReader(``), 400, protocol.CodeInvalidBody, ""},
		{"name twice", media, strings.NewReader(`{"title":"x","title":"y"}`), 400, protocol.CodeInvalidBody, "body"},
		{"not UTF-8", media, strings.NewReader("{\"title\":\"\xff\"}"), 400, protocol.CodeInvalidBody, "body"},
		{"other case", media, strings.NewReader(`{"TITLE":"x"}`), 422, protocol.CodeInvalid, "body"},
		{"too long", media, strings.NewReader(`{"title":"123456"}`), 422, protocol.CodeInvalid, "body.title"},
		{"bad identifier", media, strings.NewReader(`{"title":"x","message_id":"msg_x"}`), 422, protocol.CodeInvalid, "body.message_id"},
		{"NUL", media, strings.NewReader(`{"title":"\u0000"}`), 422, protocol.CodeInvalid, "body.title"},
		{"backslash, not NUL", media, strings.NewReader(`{"title":"\\u00"}`), 200, "", ""},
		{"too large", media, strings.NewReader(`{"title":"` + strings.Repeat("x", maxBody) + `"}`), 413, protocol.CodeTooLarge, ""},
		{"breaks off", media, io.MultiReader(strings.NewReader(`{"title":`), brokenReader{}), 400, protocol.CodeInvalidBody, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, p := post(s, "/echo", test.media, test.body)
			if response.StatusCode != test.status || p.Code != test.code {
				t.Fatalf("%d %s, want %d %s (%+v)", response.StatusCode, p.Code, test.status, test.code, p)
			}
			if test.status >= 400 && (response.Header.Get("Content-Type") != "application/problem+json" || p.RequestID == "" || p.Title == "" || p.Status != test.status) {
				t.Errorf("not a whole problem: %+v", p)
			}
			if test.field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != test.field) {
				t.Errorf("fields %+v, want %s", p.Errors, test.field)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAnswersAreWrittenAsTheContractSays(t *testing.T) {
	s := frameServer(t, Config{}, echoRoute())
	request := httptest.NewRequest("POST", "http://localhost/echo", strings.NewReader(`{"title":"<a>"}`))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Request-Id", "mine")
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, request)
	if got := recorder.Body.String(); got != "{\"title\":\"<a>\",\"names\":[]}\n" {
		t.Errorf("body %q", got)
	}
	header := recorder.Result().Header
	if id := header.Get("X-Request-Id"); id == "mine" || id == "" {
		t.Errorf("request id %q", id)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": contentSecurityPolicy, "Cache-Control": "private, no-cache", "Strict-Transport-Security": "",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAPanicIsAProblemWithoutItsCause(t *testing.T) {
	s := frameServer(t, Config{}, call("GET", "/boom", "boom", "", Policy{Public: true},
		func(context.Context, *nothing) (*nothing, error) { panic("secret") }))
	response, p := ask(s, httptest.NewRequest("GET", "http://localhost/boom", nil))
	if response.StatusCode != 500 || p.Code != protocol.CodeInternal || strings.Contains(p.Detail, "secret") || p.RequestID == "" {
		t.Errorf("%d %+v", response.StatusCode, p)
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for code, status := range statuses {
		p := problemOf(protocol.Errorf(code, "detail"))
		if p.Status != status || p.Code != code {
			t.Errorf("%s becomes %d %s", code, p.Status, p.Code)
		}
		if (status == 409) != (p.Current != nil) {
			t.Errorf("%s: current is %s", code, p.Current)
		}
	}
}

func TestTheClientsAddressIsBelievedOnlyOfTrustedProxies(t *testing.T) {
	s := frameServer(t, Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, test := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:5", "203.0.113.9", "192.0.2.1"},
		{"10.1.1.1:5", "203.0.113.9", "203.0.113.9"},
		{"10.1.1.1:5", "1.1.1.1, 203.0.113.9, 10.2.2.2", "203.0.113.9"},
		{"10.1.1.1:5", "1.1.1.1, garbage", "unknown"},
		{"10.1.1.1:5", "", "10.1.1.1"},
		{"[2001:db8:1:2:3::1]:5", "", "2001:db8:1:2::/64"},
		{"[::ffff:192.0.2.7]:5", "", "192.0.2.7"},
	} {
		request := httptest.NewRequest("GET", "/", nil)
		request.RemoteAddr = test.peer
		if test.forwarded != "" {
			request.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if got := addressKey(s.clientAddress(request)); got != test.want {
			t.Errorf("%s behind %q: %s, want %s", test.peer, test.forwarded, got, test.want)
		}
	}
}

func jsonUnmarshal(text []byte, v any) error { return json.Unmarshal(text, v) }
