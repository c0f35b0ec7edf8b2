package router

import (
	"bytes"
	"encoding/hex"
	"io"
	"math/rand/v2"
	stdhttp "net/http"
	"net/http/httptest"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// headerHook calls a function when the header is written.
type headerHook struct {
	*httptest.ResponseRecorder
	written func()
}

func (h headerHook) WriteHeader(status int) {
	h.written()
	h.ResponseRecorder.WriteHeader(status)
}

// With its header, a response leaves the queue of heavy requests. By then it must be compressed, except for the last block.
func TestTheHeaderFollowsWhenTheBodyIsCompressed(t *testing.T) {
	body := make([]byte, 1<<20)
	if _, err := rand.NewChaCha8([32]byte{}).Read(body); err != nil {
		t.Fatal(err)
	}
	body = []byte(hex.EncodeToString(body))
	var c *compressor
	headers := 0
	hook := headerHook{httptest.NewRecorder(), func() {
		if headers++; c.packed.Len() < len(body)/3 {
			t.Errorf("%d of %d bytes were compressed before the header", c.packed.Len(), len(body))
		}
	}}
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	compress(hook, request, func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
		c = w.(*compressor)
		w.Header().Set("Content-Type", "application/json")
		for _, part := range [][]byte{body[:len(body)-5000], body[len(body)-5000:]} {
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Errorf("%d %v", n, err)
			}
		}
	})
	reader, err := gzip.NewReader(hook.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, body) || headers != 1 || hook.Code != stdhttp.StatusOK {
		t.Errorf("%d bytes, %v, %d headers, %d", len(got), err, headers, hook.Code)
	}
}
