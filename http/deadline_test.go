package http

import (
	"context"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/http/resource"
	"turnstone/http/route"
)

// slowBody sends one byte of a text at a time, with a pause before each.
type slowBody struct {
	text  *strings.Reader
	pause time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	<-time.After(b.pause) // virtual time: the test runs in a synctest bubble
	return b.text.Read(p[:1])
}

func TestReadingTheBodyDoesNotCountTowardsTheTimeout(t *testing.T) {
	type input struct {
		Body struct {
			Text string `json:"text"`
		}
	}
	left := make(chan time.Duration, 1)
	s := frameServer(t, Config{}, route.Call("POST", "/echo", "echo", "Returns the text.", route.Policy{Public: true},
		func(ctx context.Context, in *input) (*resource.Body[string], error) {
			deadline, _ := ctx.Deadline()
			left <- time.Until(deadline)
			return resource.OK(in.Body.Text), ctx.Err()
		}))
	synctest.Test(t, func(t *testing.T) {
		text := `{"text":"` + strings.Repeat("x", 9) + `"}`
		const pause = time.Second // of each byte: more than the timeout for all of them
		request := httptest.NewRequestWithContext(t.Context(), stdhttp.MethodPost, "http://localhost/echo",
			io.NopCloser(&slowBody{strings.NewReader(text), pause}))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, request)
		if recorder.Code != stdhttp.StatusOK {
			t.Fatalf("%d %s", recorder.Code, recorder.Body)
		}
		const timeout = 10 * time.Second // of a public route
		if remaining := <-left; remaining != timeout {
			t.Errorf("after the body %s were left, want %s", remaining, timeout)
		}
	})
}
