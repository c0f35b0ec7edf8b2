package transfer

import (
	"bytes"
	"errors"
	"io"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"turnstone/protocol/clock"
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

func newBody(content []byte) (*Body, *deadlines) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	return &Body{from: iotest.OneByteReader(bytes.NewReader(content)), control: stdhttp.NewResponseController(w)}, w
}

// connection is a response writer that sets the read deadline of a connection.
type connection struct {
	*httptest.ResponseRecorder
	from net.Conn
}

func (c connection) SetReadDeadline(at time.Time) error { return c.from.SetReadDeadline(at) }

// receiveFrom returns the body that send sends, in a bubble of package synctest.
func receiveFrom(t *testing.T, send func(to net.Conn)) *Body {
	t.Helper()
	client, server := net.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		send(client)
		_ = client.Close()
	}()
	t.Cleanup(func() {
		_ = server.Close() // ends a Write that still waits
		<-sent
	})
	return &Body{from: server, control: stdhttp.NewResponseController(connection{httptest.NewRecorder(), server})}
}

func TestAClientGetsNewTimeWithEachStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		piece int
		each  time.Duration
		fails bool
	}{
		{"a step at the end of its time", readStep, readStall - time.Second, false},
		{"single bytes", 1, readStall / 15, true},
		{"nothing", 0, 2 * readStall, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := receiveFrom(t, func(to net.Conn) {
					for range 20 {
						_ = clock.Sleep(t.Context(), c.each)   // an error: the test is over
						_, _ = to.Write(make([]byte, c.piece)) // fails after the reader has closed
					}
				})
				began := time.Now()
				n, err := io.Copy(io.Discard, u)
				if took := time.Since(began); c.fails && (!errors.Is(err, os.ErrDeadlineExceeded) || took != readStall) {
					t.Errorf("after %s: %d bytes, %v", took, n, err)
				}
				if !c.fails && (err != nil || n != 20*readStep) {
					t.Errorf("%d bytes, %v", n, err)
				}
			})
		})
	}
}

// The stores may take longer than the client may: their time is not that of the client.
func TestTheTimeBetweenTwoReadsIsNotThatOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := receiveFrom(t, func(to net.Conn) { _, _ = to.Write(make([]byte, readStep)) })
		for range 4 {
			if _, err := io.ReadFull(u, make([]byte, readStep/4)); err != nil {
				t.Fatal(err)
			}
			if err := clock.Sleep(t.Context(), 2*readStall); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := u.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the end is %v", err)
		}
	})
}

// While nothing reads, the body has no deadline: HTTP/2 would end it.
func TestThereIsADeadlineOnlyDuringARead(t *testing.T) {
	u, w := newBody([]byte("abc"))
	for range 4 { // the last one reads the end
		_, _ = u.Read(make([]byte, 1))
		during, after := w.set[len(w.set)-2], w.set[len(w.set)-1]
		if left := time.Until(during); left <= 0 || left > readStall || !after.IsZero() {
			t.Errorf("the deadline is in %s, and then at %s", left, after)
		}
	}
}

func TestAfterStopNothingIsRead(t *testing.T) {
	u, w := newBody(make([]byte, 3*readStep))
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
	u, w := newBody([]byte("abc"))
	if _, err := io.Copy(io.Discard, u); err != nil {
		t.Fatal(err)
	}
	before := len(w.set)
	u.Stop()
	if len(w.set) != before {
		t.Error("Stop set a deadline")
	}
}
