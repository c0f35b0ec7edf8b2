package http

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/protocol"
)

// frameServer returns a Server with only these routes and without dependencies.
func frameServer(t *testing.T, config Config, routes ...route.Route) *Server {
	t.Helper()
	if config.BaseURL == nil {
		config.BaseURL = &url.URL{Scheme: "http", Host: "localhost:8080"}
	}
	config.Secrets = [][]byte{bytes.Repeat([]byte("k"), minSecret)}
	s, err := newServer(config, func(*Server) route.Table { return route.Table{Routes: routes} })
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

func echo(_ context.Context, in *echoInput) (*resource.Body[echoOutput], error) {
	return resource.OK(echoOutput{Title: in.Body.Title}), nil
}

func echoRoute() route.Route {
	return route.Call("POST", "/echo", "echo", "", route.Policy{Public: true}, echo)
}

func post(s *Server, path, contentType string, content io.Reader) (*stdhttp.Response, response.Problem) {
	request := httptest.NewRequest("POST", "http://localhost"+path, content)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return ask(s, request)
}

func ask(s *Server, request *stdhttp.Request) (*stdhttp.Response, response.Problem) {
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, request)
	var p response.Problem
	_ = json.Unmarshal(recorder.Body.Bytes(), &p)
	return recorder.Result(), p
}

func TestInvalidBodiesAreRefusedWithTheMatchingCode(t *testing.T) {
	t.Parallel()
	s := frameServer(t, Config{}, echoRoute())
	const media = "application/json"
	reasons := map[string]string{
		"duplicate name": "two members with the same name", "not UTF-8": "valid UTF-8", "half a surrogate pair": "half of a surrogate pair", "truncated JSON": "valid JSON", "a name that looks like a reason": "valid JSON",
	}
	for _, test := range []struct {
		name, media string
		body        io.Reader
		status      int
		code        protocol.Code
		field       string
	}{
		{"a name that looks like a reason", media, strings.NewReader(`{"UTF-8 surrogate":tru}`), 400, protocol.CodeInvalidBody, "body"},
		{"half a surrogate pair", media, strings.NewReader(`{"title":"\ud800"}`), 400, protocol.CodeInvalidBody, "body"},
		{"valid", media, strings.NewReader(`{"title":"x","unknown":1}`), 200, "", ""},
		{"charset", media + "; charset=utf-8", strings.NewReader(`{"title":"x"}`), 200, "", ""},
		{"no media type", "", strings.NewReader(`{"title":"x"}`), 415, protocol.CodeUnsupportedMedia, ""},
		{"form", "application/x-www-form-urlencoded", strings.NewReader(`{"title":"x"}`), 415, protocol.CodeUnsupportedMedia, ""},
		{"truncated JSON", media, strings.NewReader(`{"title":"x"`), 400, protocol.CodeInvalidBody, "body"},
		{"empty", media, strings.NewReader(``), 400, protocol.CodeInvalidBody, ""},
		{"duplicate name", media, strings.NewReader(`{"title":"x","title":"y"}`), 400, protocol.CodeInvalidBody, "body"},
		{"not UTF-8", media, strings.NewReader("{\"title\":\"\xff\"}"), 400, protocol.CodeInvalidBody, "body"},
		{"name in another case", media, strings.NewReader(`{"TITLE":"x"}`), 422, protocol.CodeInvalid, "body.title"},
		{"too long", media, strings.NewReader(`{"title":"123456"}`), 422, protocol.CodeInvalid, "body.title"},
		{"bad identifier", media, strings.NewReader(`{"title":"x","message_id":"msg_x"}`), 422, protocol.CodeInvalid, "body.message_id"},
		{"NUL", media, strings.NewReader(`{"title":"\u0000"}`), 422, protocol.CodeInvalid, "body.title"},
		{"backslash, not NUL", media, strings.NewReader(`{"title":"\\u00"}`), 200, "", ""},
		{"too large", media, strings.NewReader(`{"title":"` + strings.Repeat("x", 1<<20) + `"}`), 413, protocol.CodeTooLarge, ""},
		{"broken connection", media, io.MultiReader(strings.NewReader(`{"title":`), brokenReader{}), 400, protocol.CodeInvalidBody, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, p := post(s, "/echo", test.media, test.body)
			if response.StatusCode != test.status || p.Code != test.code {
				t.Fatalf("%d %s, want %d %s (%+v)", response.StatusCode, p.Code, test.status, test.code, p)
			}
			if test.status >= 400 && (response.Header.Get("Content-Type") != "application/problem+json" || p.RequestID == "" || p.Title == "" || p.Status != test.status) {
				t.Errorf("the problem document is incomplete: %+v", p)
			}
			if test.field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != test.field) {
				t.Errorf("fields %+v, want %s", p.Errors, test.field)
			}
			if want := reasons[test.name]; !strings.Contains(p.Detail, want) {
				t.Errorf("the detail is %q, want %q in it", p.Detail, want)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestResponsesFollowTheContract(t *testing.T) {
	t.Parallel()
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
		"Content-Security-Policy": apiPolicy, "Cache-Control": "private, no-cache", "Strict-Transport-Security": "",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAPanicBecomesAProblemThatHidesItsCause(t *testing.T) {
	t.Parallel()
	s := frameServer(t, Config{}, route.Call("GET", "/boom", "boom", "", route.Policy{Public: true},
		func(context.Context, *resource.Nothing) (*resource.Nothing, error) { panic("secret") }))
	response, p := ask(s, httptest.NewRequest("GET", "http://localhost/boom", nil))
	if response.StatusCode != 500 || p.Code != protocol.CodeInternal || strings.Contains(p.Detail, "secret") || p.RequestID == "" {
		t.Errorf("%d %+v", response.StatusCode, p)
	}
}

func jsonUnmarshal(text []byte, v any) error { return json.Unmarshal(text, v) }
