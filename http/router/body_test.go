package router

import (
	"errors"
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
	_, err := readStalling(w, r, 1<<20)
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeInvalidBody {
		t.Fatalf("error %v, expected %s", err, protocol.CodeInvalidBody)
	}
	if got := w.Header().Get("Connection"); got != "close" {
		t.Fatalf("Connection %q, expected close", got)
	}
}
