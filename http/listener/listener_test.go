package listener

import (
	"fmt"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// deadlineRecorder is a response writer that records the size of each write and fails a write that has no new deadline.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	set    int
	pieces []int
}

func (d *deadlineRecorder) SetWriteDeadline(time.Time) error { d.set++; return nil }

func (d *deadlineRecorder) Write(b []byte) (int, error) {
	if d.pieces = append(d.pieces, len(b)); d.set < len(d.pieces) {
		return 0, fmt.Errorf("piece %d has no deadline of its own", len(d.pieces))
	}
	return d.ResponseRecorder.Write(b)
}

func TestProgressExtendsTheDeadlineOfAResponse(t *testing.T) {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	text := strings.Repeat("x", 3*writePiece+1)
	withStallTimeouts(stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}), Options{WriteStall: time.Second}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if len(w.pieces) != 4 || w.set != 5 || w.Body.String() != text {
		t.Errorf("pieces %v, %d deadlines", w.pieces, w.set)
	}
}
