package http

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors/upload"
	"turnstone/protocol"
)

// retries is the number of sessions whose content is sent again right after connections were cut.
const retries = 40

func TestAContentThatIsSentAgainRightAfterACutIsReceivedOrConflicts(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	server := httptest.NewServer(w)
	defer server.Close()
	address := server.Listener.Addr().String()
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	random := rand.New(rand.NewPCG(1, 2))
	length := fmt.Sprintf("Content-Length: %d", len(content))
	for range retries {
		u := c.startUpload(len(content))
		var all sync.WaitGroup
		for range 2 {
			cut := c.rawUpload(address, u, length)
			_, _ = cut.Write(content[:random.IntN(len(content))])
			_ = cut.Close()
		}
		for range 2 {
			all.Go(func() {
				for status := ""; status != "200"; {
					conn := c.rawUpload(address, u, length)
					_, _ = conn.Write(content)
					status = answerOf(t, conn)
					if status == "409" && c.upload(u).State == protocol.UploadReady {
						return
					}
					if status != "200" && status != "409" {
						return
					}
				}
			})
		}
		all.Wait()
		if current := c.upload(u); current.State != protocol.UploadReady || t.Failed() {
			t.Fatalf("%+v", current)
		}
	}
}

// answerOf reads the response to an upload, and closes the connection. A status other than 200 and 409 is an error.
func answerOf(t *testing.T, conn net.Conn) string {
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
	var all bytes.Buffer
	buffer := make([]byte, 4<<10)
	for !strings.Contains(all.String(), "}") {
		n, err := conn.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			t.Errorf("no response: %v after %s", err, all.String())
			return ""
		}
	}
	status := strings.TrimPrefix(all.String(), "HTTP/1.1 ")[:3]
	if status != fmt.Sprint(stdhttp.StatusOK) && status != fmt.Sprint(stdhttp.StatusConflict) {
		t.Errorf("the response is %s", all.String())
	}
	return status
}
