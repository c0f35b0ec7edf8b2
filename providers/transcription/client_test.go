package transcription

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
)

// server starts a server that answers each request with a handler, and returns a client of it.
func server(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return New(Options{URL: s.URL + "/v1/", Key: "secret", Model: "whisper-1"})
}

func TestARecordingIsSentAsTheFormOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{5, -1} {
		client := server(t, func(w http.ResponseWriter, r *http.Request) {
			file, header, err := r.FormFile("file")
			if err != nil {
				t.Error(err)
				return
			}
			content, err := io.ReadAll(file)
			if err != nil || string(content) != "audio" || header.Filename != "audio.webm" {
				t.Errorf("the file %s has %q (%v)", header.Filename, content, err)
			}
			if r.Method != "POST" || r.URL.Path != "/v1/audio/transcriptions" || r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
			}
			if r.FormValue("model") != "whisper-1" || r.FormValue("response_format") != "json" || r.FormValue("language") != "en" {
				t.Errorf("%v", r.Form)
			}
			_, _ = io.WriteString(w, `{"text":" Why are there two tides? \n"}`)
		})
		text, err := client.Transcribe(t.Context(), strings.NewReader("audio"), size, "webm", "en")
		if err != nil || text != "Why are there two tides?" {
			t.Errorf("size %d: %q, %v", size, text, err)
		}
	}
}

func TestStrangeAnswersAreErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		status int
		body   string
		text   string
		code   protocol.Code
	}{
		"nothing was understood": {200, `{"text":""}`, "", ""},
		"a NUL":                  {200, `{"text":"a\u0000b"}`, "ab", ""},
		"more members":           {200, `{"text":"a","usage":{"seconds":1},"segments":null}`, "a", ""},
		"no text":                {200, `{}`, "", protocol.CodeUnavailable},
		"null":                   {200, `null`, "", protocol.CodeUnavailable},
		"a number":               {200, `{"text":1}`, "", protocol.CodeUnavailable},
		"HTML":                   {200, "<html><body>Sign in</body></html>", "", protocol.CodeUnavailable},
		"an empty body":          {200, "", "", protocol.CodeUnavailable},
		"10 MB":                  {200, `{"text":"` + strings.Repeat("a", 10<<20) + `"}`, "", protocol.CodeUnavailable},
		"500":                    {500, `{"error":{"message":"CUDA"}}`, "", protocol.CodeUnavailable},
		"a wrong key":            {401, `{"error":{"message":"secret"}}`, "", protocol.CodeUnavailable},
		"another path":           {404, "", "", protocol.CodeUnavailable},
		"its limit":              {429, "", "", protocol.CodeUnavailable},
		"a redirect":             {302, "", "", protocol.CodeUnavailable},
		"another format":         {400, `{"error":{"message":"Invalid file format."}}`, "", protocol.CodeInvalidBody},
		"too long for it":        {413, "", "", protocol.CodeTooLarge},
	} {
		client := server(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if one.status == http.StatusFound {
				w.Header().Set("Location", "http://127.0.0.1:1/")
			}
			w.WriteHeader(one.status)
			_, _ = io.WriteString(w, one.body)
		})
		text, err := client.Transcribe(t.Context(), strings.NewReader("audio"), 5, "webm", "")
		if text != one.text || protocol.CodeOf(err) != one.code && (err != nil || one.code != "") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "CUDA")) {
			t.Errorf("%s: the error has words of the server: %v", name, err)
		}
	}
}

func TestAServerThatIsDownIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := New(Options{URL: "http://" + listener.Addr().String(), Model: "whisper-1"})
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var problem *protocol.Error
	_, err = client.Transcribe(t.Context(), strings.NewReader("audio"), 5, "webm", "")
	if !errors.As(err, &problem) || problem.Code != protocol.CodeUnavailable || problem.RetryAfter == 0 || strings.Contains(problem.Detail, "127.0.0.1") {
		t.Errorf("%+v", err)
	}
}

func TestAServerThatDoesNotAnswerIsLeft(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		close(left)
	}))
	t.Cleanup(silent.Close)
	client := New(Options{URL: silent.URL, Model: "whisper-1", Timeout: 50 * time.Millisecond})
	if _, err := client.Transcribe(t.Context(), strings.NewReader("audio"), 5, "webm", ""); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("%v", err)
	}
	<-left
}

// failing is a recording that has an error after its first bytes.
type failing struct {
	from io.Reader
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if errors.Is(err, io.EOF) {
		err = f.err
	}
	return n, err
}

func TestTheErrorOfARecordingIsReturned(t *testing.T) {
	t.Parallel()
	client := server(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	lost := protocol.Errorf(protocol.CodeTooLarge, "too large")
	for _, size := range []int64{1 << 20, -1} {
		_, err := client.Transcribe(t.Context(), &failing{bytes.NewReader(make([]byte, 1000)), lost}, size, "webm", "")
		if !errors.Is(err, lost) {
			t.Errorf("size %d: %v", size, err)
		}
	}
}
