package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// caller writes the requests of a user by hand.
type caller struct{ cookie, token string }

func callerOf(t *testing.T, u *sitetest.User) caller {
	t.Helper()
	header := request(t, u, "POST", "/", nil).Header
	return caller{header.Get("Cookie"), header.Get("X-CSRF-Token")}
}

// post returns the header of a request that would create a conversation, without its end.
func (c caller) post(version string, lines ...string) string {
	return "POST /conversations HTTP/" + version + "\r\nHost: localhost\r\nCookie: " + c.cookie + "\r\nX-CSRF-Token: " + c.token +
		"\r\nContent-Type: application/json\r\n" + strings.Join(lines, "\r\n")
}

const chunked = "Transfer-Encoding: chunked"

// malformedRequest is what a client sends, and the code of the 400 that it gets. The service closes the connection then.
type malformedRequest struct {
	what, sent string
	code       protocol.Code
	ends       bool // the client sends no more
}

// malformedRequests are requests that are not valid HTTP/1, or whose end is unclear. Each would create a conversation.
func malformedRequests(c caller) []malformedRequest {
	header, body := protocol.CodeInvalidHeader, protocol.CodeInvalidBody
	const noBody = "\r\n\r\n"
	return []malformedRequest{
		{"a length and an encoding", c.post("1.1", "Content-Length: 2", chunked, "", "2\r\n{}\r\n0\r\n\r\n"), header, false},
		{"an encoding and a length that hides a request", c.post("1.1", "transfer-encoding:chunked", "content-length:5", "", "0\r\n\r\n"+c.post("1.1", "Content-Length: 2", "", "{}")), header, false},
		{"two lengths", c.post("1.1", "Content-Length: 2", "Content-Length: 3", "", "{} "), header, false},
		{"a length with a sign", c.post("1.1", "Content-Length: +2", "", "{}"), header, false},
		{"a length on a folded line", c.post("1.1", "Content-Length:", " 2", "", "{}"), header, false},
		{"two encodings", c.post("1.1", "Transfer-Encoding: gzip, chunked", "", "2\r\n{}\r\n0\r\n\r\n"), header, false},
		{"two lines with an encoding", c.post("1.1", chunked, chunked, "", "2\r\n{}\r\n0\r\n\r\n"), header, false},
		{"an unknown encoding", c.post("1.1", "Transfer-Encoding: identity", "", "{}"), header, false},
		{"an unknown expectation", c.post("1.1", "Expect: nothing", "Content-Length: 2", "", "{}"), header, false},
		{"an unknown version", c.post("3.0", "Content-Length: 2", "", "{}"), header, false},
		{"no version", "GET /health" + noBody, header, false},
		{"no host", "GET /health HTTP/1.1" + noBody, header, false},
		{"two hosts", "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: other.example" + noBody, header, false},
		{"a line without a colon", c.post("1.1", "Content-Length: 2", "nonsense", "", "{}"), header, false},
		{"a space before the colon", c.post("1.1", "Content-Length : 2", "", "{}"), header, false},
		{"a folded first line", "GET /health HTTP/1.1\r\n Host: localhost" + noBody, header, false},
		{"a control character", c.post("1.1", "Content-Length: 2", "X-Something: \x00", "", "{}"), header, false},
		{"a header that is too long", c.post("1.1", "Content-Length: 2", "X-Something: "+strings.Repeat("x", 40<<10), "", "{}"), header, false},
		{"a chunk without a size", c.post("1.1", chunked, "", "zz\r\n{}\r\n0\r\n\r\n"), body, false},
		{"a chunk longer than its size", c.post("1.1", chunked, "", "1\r\n{}\r\n0\r\n\r\n"), body, false},
		{"a trailer without a colon", c.post("1.1", chunked, "", "2\r\n{}\r\n0\r\nnonsense\r\n\r\n"), body, false},
		{"a trailer that is too long", c.post("1.1", chunked, "", "2\r\n{}\r\n0\r\nX-Something: "+strings.Repeat("x", 8<<10)+"\r\n\r\n"), body, false},
		{"a body shorter than its length", c.post("1.1", "Content-Length: 3", "", "{}"), body, true},
		{"chunks without an end", c.post("1.1", chunked, "", "2\r\n{}\r\n"), body, true},
		{"an encoding in HTTP/1.0", c.post("1.0", chunked, "", "2\r\n{}\r\n0\r\n\r\n"), body, false},
	}
}

// malformedHTTP sends malformed requests. Each gets one complete problem, and has no effect.
func (s *errorSite) malformedHTTP(t *testing.T) {
	u := sitetest.NewUser(t, s.Base)
	for _, m := range malformedRequests(callerOf(t, u)) {
		t.Run(m.what, func(t *testing.T) {
			w := dialWire(t, s.Base)
			w.wantUsable(t, nil) // the request is not the first one of its connection
			w.write(t, m.sent)
			if m.ends {
				if err := w.Conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			got := w.read(t)
			got.wantProblem(t, http.StatusBadRequest, m.code)
			if !got.Close && !m.ends {
				t.Error("the response does not say that the connection is closed")
			}
			w.wantClosed(t)
		})
	}
	wantNoConversations(t, u)
}

func wantNoConversations(t *testing.T, u *sitetest.User) {
	t.Helper()
	var list protocol.List[protocol.Conversation]
	if u.Get(t, "/conversations", &list); len(list.Data) != 0 {
		t.Errorf("%d conversations were created", len(list.Data))
	}
}

// unusualHTTP sends requests that RFC 9112 lets a server accept.
func (s *errorSite) unusualHTTP(t *testing.T) {
	c := callerOf(t, s.ada)
	states := `{"file_ids":["` + protocol.DeriveFileID(protocol.NewUploadID()).String() + `"]}`
	post := strings.Replace(c.post("1.1"), "/conversations", "/files/attachment-states", 1)
	for _, row := range []struct {
		what, sent string
		closes     bool
	}{
		{"lines that end with LF", "GET /health HTTP/1.1\nHost: localhost\n\n", false},
		{"a folded line", "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Something: a\r\n b\r\n\r\n", false},
		{"the same length twice", "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", false},
		{"a body of a GET", "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", false},
		{"HTTP/1.0", "GET /health HTTP/1.0\r\n\r\n", true},
		{"chunks, with a trailer", post + fmt.Sprintf("%s\r\n\r\n%x;name=value\r\n%s\r\n0\r\nX-Something: x\r\n\r\n", chunked, len(states), states), true},
	} {
		t.Run(row.what, func(t *testing.T) {
			w := dialWire(t, s.Base)
			w.write(t, row.sent)
			got := w.read(t)
			if got.StatusCode != http.StatusOK || got.Close != row.closes {
				t.Errorf("%d %s, closes: %v", got.StatusCode, got.body, got.Close)
			}
			w.wantUsable(t, got)
		})
	}
}

// expectations sends requests that wait for 100 Continue. Only a request whose body is read gets it.
func (s *errorSite) expectations(t *testing.T) {
	const expect = "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n"
	t.Run("refused", func(t *testing.T) {
		w := dialWire(t, s.Base)
		w.write(t, caller{}.post("1.1")+expect)
		w.read(t).wantProblem(t, http.StatusUnauthorized, protocol.CodeUnauthenticated)
		w.wantClosed(t)
	})
	t.Run("continued", func(t *testing.T) {
		w := dialWire(t, s.Base)
		w.write(t, callerOf(t, s.ada).post("1.1")+expect)
		if got := w.read(t); got.StatusCode != http.StatusContinue {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
		w.write(t, "{")
		got := w.read(t)
		got.wantProblem(t, http.StatusBadRequest, protocol.CodeInvalidBody)
		w.wantUsable(t, got)
	})
}

// compressed sends compressed bodies to a route of JSON and to one of content.
func (s *errorSite) compressed(t *testing.T) {
	u := sitetest.NewUser(t, s.Base)
	upload := startUpload(t, u)
	for _, encoding := range []string{"gzip", "deflate", "br", "identity, gzip"} {
		for what, r := range map[string]*http.Request{"JSON": request(t, u, "POST", "/conversations", jsonObject{}), "content": putContent(t, u, upload)} {
			t.Run(encoding+" "+what, func(t *testing.T) {
				r.Header.Set("Content-Encoding", encoding)
				w := dialWire(t, s.Base)
				if err := r.Write(w); err != nil {
					t.Fatal(err)
				}
				got := w.read(t)
				got.wantProblem(t, http.StatusUnsupportedMediaType, protocol.CodeUnsupportedMedia)
				w.wantUsable(t, got)
			})
		}
	}
	wantNoConversations(t, u)
	if state := u.Do(t, "GET", upload.Path(), nil).Text(t, http.StatusOK, "state"); state != "pending" {
		t.Errorf("the upload is %s", state)
	}
}

// steeringLengths steers with the longest text, and with one that is a character longer.
func (s *errorSite) steeringLengths(t *testing.T) {
	turn := live(t, s.ada, s.ada.NewConversation(t)).Turn
	body := func(length int) jsonObject {
		return jsonObject{"type": "input", "turn_id": turn, "client_steering_id": fmt.Sprint(length), "input": []any{jsonObject{"type": "text", "text": strings.Repeat("ä", length)}}}
	}
	problem := s.ada.Do(t, "POST", "/chat/steering", body(protocol.MaxSteeringRunes+1)).WantProblem(t, http.StatusUnprocessableEntity, protocol.CodeInvalid)
	if len(problem.Errors) != 1 || !strings.HasPrefix(problem.Errors[0].Field, "body.input") {
		t.Errorf("%+v", problem)
	}
	s.ada.Do(t, "POST", "/chat/steering", body(protocol.MaxSteeringRunes)).Want(t, http.StatusAccepted, nil)
}

// waits waits for changes of an upload.
func (s *errorSite) waits(t *testing.T) {
	upload := startUpload(t, s.ada)
	path := upload.Path() + "?wait="
	for _, wait := range []string{"x", "20", "-1s", "30.1s", "1h"} {
		problem := s.ada.Do(t, "GET", path+wait, nil).WantProblem(t, http.StatusUnprocessableEntity, protocol.CodeInvalid)
		if len(problem.Errors) != 1 || problem.Errors[0].Field != "query.wait" {
			t.Errorf("%s: %+v", wait, problem)
		}
	}
	const short = 200 * time.Millisecond
	unchanged := s.ada.Do(t, "GET", path+short.String(), nil)
	if state := unchanged.Text(t, http.StatusOK, "state"); state != "pending" || unchanged.Took < short {
		t.Errorf("%s after %s", state, unchanged.Took)
	}
	const wait, guard = "30s", 20 * time.Second // a response that comes only after the wait misses the guard
	ctx := sitetest.Within(t, guard)
	changed := make(chan error, 1)
	go func() { changed <- s.wantCancelled(ctx, path+wait) }()
	s.awaitWaiting(t, 1)
	s.ada.Do(t, "DELETE", upload.Path(), nil).Want(t, http.StatusOK, nil)
	if err := <-changed; err != nil {
		t.Error(err)
	}
	if err := s.wantCancelled(ctx, path+wait); err != nil { // an upload that has ended does not change
		t.Error(err)
	}
	sitetest.NewUser(t, s.Base).Do(t, "GET", path+wait, nil).WantProblem(t, http.StatusNotFound, protocol.CodeNotFound)
}

func (s *errorSite) wantCancelled(ctx context.Context, path string) error {
	got, err := s.ada.Request(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	var upload protocol.Upload
	if err := got.Decode(http.StatusOK, &upload); err != nil || upload.State != protocol.UploadCancelled {
		return fmt.Errorf("the upload is %s: %w", upload.State, err)
	}
	return nil
}
