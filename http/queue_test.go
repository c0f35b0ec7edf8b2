package http

import (
	"context"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/protocol"
)

// heldRoute is a route whose handler waits until proceed is closed. Each start sends to began; most is the largest number of
// handlers that ran at the same time.
type heldRoute struct {
	began, proceed chan struct{}
	running, most  atomic.Int32
}

func (h *heldRoute) serve(ctx context.Context, _ *resource.Nothing) (*resource.Body[echoOutput], error) {
	now := h.running.Add(1)
	defer h.running.Add(-1)
	for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
	}
	h.began <- struct{}{}
	select {
	case <-h.proceed:
	case <-ctx.Done():
	}
	return resource.OK(echoOutput{Title: "ok"}), nil
}

func TestHeavyRequestsOfAnAccountWaitForEachOther(t *testing.T) {
	t.Parallel()
	const requests = 24
	w := newWorld(t)
	held := &heldRoute{began: make(chan struct{}, requests), proceed: make(chan struct{})}
	server, err := newServer(w.Config, func(s *Server) route.Table {
		return s.table().With(route.Call("GET", "/heavy", "getHeavy", "", route.Lists, held.serve))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = server
	ada, eve := w.client().register("ada@example.com"), w.client().register("eve@example.com")
	replies := make(chan *reply, requests)
	for range requests {
		go func() { replies <- ada.twin().do("GET", "/heavy", nil) }()
	}
	<-held.began
	// Requests of another account do not wait, nor do requests that are not heavy.
	eve.expect(200, "GET", "/conversations", nil)
	ada.twin().expect(200, "GET", "/account/settings", nil)
	close(held.proceed)
	for range requests {
		if resp := <-replies; resp.status != 200 {
			t.Errorf("%d %s", resp.status, resp.body)
		}
	}
	if most := held.most.Load(); most != 1 {
		t.Errorf("%d lists ran at the same time, want 1", most)
	}
}

// stuckReader is a client that accepts no byte until proceed is closed.
type stuckReader struct {
	*httptest.ResponseRecorder
	began, proceed chan struct{}
}

func (s *stuckReader) WriteHeader(int) { // nothing more is known of the response
	s.began <- struct{}{}
	<-s.proceed
}

func TestAListWhoseReaderIsSlowHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.client().register("ada@example.com")
	began, proceed := make(chan struct{}), make(chan struct{})
	var reading sync.WaitGroup
	for range 2 { // one more than may be in the queue
		reading.Go(func() {
			request := httptest.NewRequest("GET", "https://"+w.BaseURL.Host+"/conversations", nil)
			request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: ada.token()})
			w.Server.ServeHTTP(&stuckReader{httptest.NewRecorder(), began, proceed}, request)
		})
		<-began
	}
	ada.twin().expect(200, "GET", "/conversations", nil)
	close(proceed)
	reading.Wait()
}

// TestEveryListIsHeavy checks that a route that reads pages of rows waits for others of its account.
func TestEveryListIsHeavy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range w.Routes() {
		if r.Method != "GET" || r.Policy.Public || r.Streams {
			continue
		}
		isPaged := slices.ContainsFunc(w.OpenAPI().Paths[r.Path].Get.Parameters, func(p *huma.Param) bool { return p.Name == "limit" })
		if isPaged && !r.Policy.Heavy {
			t.Errorf("GET %s is not heavy", r.Path)
		}
	}
}

func TestAQueueRefusesWhatWaitsTooLongAndForgetsAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues := exchange.NewQueues()
		ada, eve := protocol.NewAccountID(), protocol.NewAccountID()
		leave, err := queues.Enter(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := queues.Enter(t.Context(), ada); protocol.CodeOf(err) != protocol.CodeTooManyRequests {
			t.Errorf("a request that waited too long: %v", err)
		}
		other, err := queues.Enter(t.Context(), eve)
		if err != nil {
			t.Fatal(err)
		}
		other()
		leave()
		if open := queues.Open(); open != 0 {
			t.Errorf("%d accounts are kept", open)
		}
	})
}

// slowReader is a writer whose writes wait until accept is closed.
type slowReader struct{ accept chan struct{} }

func (s *slowReader) Write(content []byte) (int, error) {
	<-s.accept
	return len(content), nil
}

func TestAnExportWhoseReaderIsSlowHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues, account := exchange.NewQueues(), protocol.NewAccountID()
		slow := &slowReader{make(chan struct{})}
		written := func(to io.Writer) error { _, err := io.WriteString(to, "an export"); return err }
		first := make(chan error, 1)
		go func() { first <- queues.Produce(t.Context(), account, slow, written) }()
		synctest.Wait()
		if err := queues.Produce(t.Context(), account, io.Discard, written); err != nil {
			t.Errorf("another export: %v", err)
		}
		close(slow.accept)
		if err := <-first; err != nil {
			t.Errorf("the slow export: %v", err)
		}
		if open := queues.Open(); open != 0 {
			t.Errorf("%d accounts are kept", open)
		}
	})
}

// TestAnExportThatHasBegunWaitsAsLongAsItHasTo checks that a response that has begun is not cut because others of its
// account are in the queue.
func TestAnExportThatHasBegunWaitsAsLongAsItHasTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues, account := exchange.NewQueues(), protocol.NewAccountID()
		var leave func()
		written := 0
		between := func(content []byte) (int, error) { // another export takes the place, and keeps it for an hour
			if written += len(content); leave == nil {
				var err error
				if leave, err = queues.Enter(t.Context(), account); err != nil {
					t.Error(err)
				}
				time.AfterFunc(time.Hour, leave)
			}
			return len(content), nil
		}
		err := queues.Produce(t.Context(), account, writerFunc(between), func(to io.Writer) error {
			for range 2 {
				if _, err := io.WriteString(to, "half"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || written != 8 {
			t.Errorf("%d bytes, %v", written, err)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(content []byte) (int, error) { return w(content) }
