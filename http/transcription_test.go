package http

import (
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"turnstone/http/transcriptions"
	"turnstone/protocol"
	"turnstone/providers/transcription"
)

// transcribing returns a world with a server that turns speech into text.
func transcribing(t *testing.T, handle stdhttp.HandlerFunc) *world {
	t.Helper()
	return newWorld(t, func(c *testConfig) { c.Transcriber = transcriber(t, handle) })
}

// transcriber returns the client of a server that turns speech into text.
func transcriber(t *testing.T, handle stdhttp.HandlerFunc) *transcription.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return transcription.New(transcription.Options{URL: server.URL, Model: "whisper-1"})
}

// hearing returns the client of a server that returns the same text for every recording.
func hearing(t *testing.T) *transcription.Client {
	t.Helper()
	return transcriber(t, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		if _, _, err := r.FormFile("file"); err != nil {
			w.WriteHeader(stdhttp.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, `{"text":"Hello."}`)
	})
}

func TestARecordingBecomesText(t *testing.T) {
	t.Parallel()
	w := transcribing(t, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		file, _, err := r.FormFile("file")
		if err != nil {
			w.WriteHeader(400)
			return
		}
		content, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"text":"`+string(content)+" "+r.FormValue("language")+`"}`)
	})
	c := w.client().register("a@example.com")
	const path = "/transcriptions"
	var got protocol.Transcription
	resp := c.expect(200, "POST", path+"?language=de", rawBody("two tides"), "Content-Type", "audio/webm;codecs=opus")
	if resp.into(t, &got); got.Text != "two tides de" || resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%+v %v", got, resp.header)
	}
	for media, status := range map[string]int{"": 415, "text/plain": 415, "video/webm": 415, "multipart/form-data": 415, "audio/mp4": 200} {
		c.expect(status, "POST", path, rawBody("a"), "Content-Type", media)
	}
	c.expect(415, "POST", path, rawBody("a"), "Content-Type", "audio/webm", "Content-Encoding", "gzip")
	c.expect(400, "POST", path, rawBody(""), "Content-Type", "audio/webm")
	c.expect(422, "POST", path+"?language=German", rawBody("a"), "Content-Type", "audio/webm")
	c.expect(413, "POST", path, rawBody(strings.Repeat("a", transcriptions.MaxBytes+1)), "Content-Type", "audio/webm")
	w.client().expect(401, "POST", path, rawBody("a"), "Content-Type", "audio/webm")
}

func TestAServerForSpeechThatFailsIsUnavailable(t *testing.T) {
	t.Parallel()
	w := transcribing(t, func(w stdhttp.ResponseWriter, _ *stdhttp.Request) { w.WriteHeader(500) })
	c := w.client().register("a@example.com")
	resp := c.expect(503, "POST", "/transcriptions", rawBody("a"), "Content-Type", "audio/webm")
	if resp.Code != protocol.CodeUnavailable || resp.header.Get("Retry-After") == "" {
		t.Errorf("%s %v", resp.body, resp.header)
	}
}

func TestWithoutAServerForSpeechTheResponseSaysSo(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client().register("a@example.com")
	if resp := c.expect(403, "POST", "/transcriptions", rawBody("a"), "Content-Type", "audio/webm"); resp.Code != protocol.CodeTranscriptionNotConfigured {
		t.Errorf("%s", resp.body)
	}
}
