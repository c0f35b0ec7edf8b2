package transfer

import (
	"bytes"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"
)

// deadlines is a response writer that records the read deadlines that are set on its connection.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

func newUpload(content []byte) (*Upload, *deadlines) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	return &Upload{from: iotest.OneByteReader(bytes.NewReader(content)), control: stdhttp.NewResponseController(w)}, w
}

// A client that sends single bytes must not move the deadline with each of them.
func TestTheDeadlineMovesOnlyWithEachStep(t *testing.T) {
	u, w := newUpload(make([]byte, 2*readStep+1))
	if n, err := io.Copy(io.Discard, u); err != nil || n != 2*readStep+1 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if len(w.set) != 4 { // one for each step that begins, and none after the end
		t.Fatalf("%d deadlines were set", len(w.set))
	}
	for i, at := range w.set[:3] {
		if left := time.Until(at); left <= 0 || left > readStall {
			t.Errorf("deadline %d is in %s", i, left)
		}
	}
	if !w.set[3].IsZero() {
		t.Errorf("after the end, the deadline is %s", w.set[3])
	}
}

func TestAfterStopNothingIsRead(t *testing.T) {
	u, w := newUpload(make([]byte, 3*readStep))
	if _, err := io.ReadFull(u, make([]byte, readStep)); err != nil {
		t.Fatal(err)
	}
	u.Stop()
	if last := w.set[len(w.set)-1]; last.After(time.Now()) {
		t.Errorf("a read that waits would go on until %s", last)
	}
	if n, err := u.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if last := w.set[len(w.set)-1]; last.After(time.Now()) {
		t.Error("a read moved the deadline after Stop")
	}
}

// After the end of the body, the connection serves other requests: Stop must not touch it.
func TestStopAfterTheEndChangesNothing(t *testing.T) {
	u, w := newUpload([]byte("abc"))
	if _, err := io.Copy(io.Discard, u); err != nil {
		t.Fatal(err)
	}
	before := len(w.set)
	u.Stop()
	if len(w.set) != before {
		t.Error("Stop set a deadline")
	}
}
