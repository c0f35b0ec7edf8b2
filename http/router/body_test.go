package router

import (
	"bytes"
	"errors"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/iotest"

	"turnstone/protocol"
)

// net/http reads the rest of a body before it responds, so a client that does not send it would wait for two time limits.
func TestTheRestOfABodyThatStallsIsNotAwaited(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(stdhttp.MethodPost, "/projects", iotest.ErrReader(os.ErrDeadlineExceeded))
	_, err := readAll(w, r, 1<<20)
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeInvalidBody {
		t.Fatalf("error %v, expected %s", err, protocol.CodeInvalidBody)
	}
	if got := w.Header().Get("Connection"); got != "close" {
		t.Fatalf("Connection %q, expected close", got)
	}
}

// Over HTTP/2 a deadline ends one stream only: the response to a body that is not read to its end arrives, and the connection serves
// other requests.
func TestABodyThatIsTooLargeEndsNoHTTP2Connection(t *testing.T) {
	server := httptest.NewUnstartedServer(stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		body, err := readAll(w, r, 1<<10)
		if protocol.CodeOf(err) == protocol.CodeTooLarge {
			w.WriteHeader(stdhttp.StatusRequestEntityTooLarge)
			return
		}
		_, _ = w.Write(append(body, r.RemoteAddr...)) // the client reports what is missing
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	send := func(body io.Reader) (int, string) {
		request, err := stdhttp.NewRequestWithContext(t.Context(), stdhttp.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil || response.ProtoMajor != 2 {
			t.Fatalf("HTTP/%d, %v", response.ProtoMajor, err)
		}
		return response.StatusCode, string(content)
	}
	_, before := send(bytes.NewReader([]byte("{}")))
	unending, sending := io.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = sending.Write(make([]byte, 64<<10)) // ends with the request
	}()
	defer func() {
		_ = sending.Close()
		<-sent
	}()
	if status, _ := send(unending); status != stdhttp.StatusRequestEntityTooLarge {
		t.Fatalf("status %d", status)
	}
	if _, after := send(bytes.NewReader([]byte("{}"))); after != before {
		t.Errorf("%q after %q", after, before)
	}
}
