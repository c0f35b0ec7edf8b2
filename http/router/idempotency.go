package router

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	stdhttp "net/http"

	"go.uber.org/zap"

	"turnstone/http/exchange"
	"turnstone/http/route"
	"turnstone/persistence/idempotency"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

const keyHeader = "Idempotency-Key"

// Idempotency stores the first response to each creating request with an Idempotency-Key.
type Idempotency interface {
	FindResponse(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*idempotency.StoredResponse, error)
	ClaimKey(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*idempotency.KeyClaim, *idempotency.StoredResponse, error)
}

// storedHeaders are the headers of the first response that are stored and repeated; the others are set again.
var storedHeaders = []string{"Content-Type", "Location", "ETag"}

// idempotencyKey returns the key of a request that may have one, and reads the body, to which the key is bound; nil: no
// key. checkForm has checked the form of the key.
func idempotencyKey(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState, policy route.Policy) (*protocol.IdempotencyKey, error) {
	text := r.Header.Get(keyHeader)
	if !policy.Idempotent || text == "" {
		return nil, nil // most requests have none
	}
	if policy.Streamed {
		return &protocol.IdempotencyKey{Method: r.Method, Path: r.URL.Path, Key: text, Streamed: true}, nil
	}
	if _, err := takeBody(w, r, ex); err != nil {
		return nil, err
	}
	return &protocol.IdempotencyKey{Method: r.Method, Path: r.URL.Path, Key: text, BodyHash: sha256.Sum256(ex.Body)}, nil
}

// replays runs requests with an idempotency key once, and repeats their responses.
type replays struct {
	store   Idempotency
	created func(path string, status int, resource any) (*idempotency.StoredResponse, error) // see Config.Created
	log     *zap.Logger
}

// replay responds with the stored response to an earlier request with the same key. It runs before the limit, so a
// repeat uses no quota.
func (re *replays) replay(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState, key *protocol.IdempotencyKey) (replayed bool, err error) {
	if key == nil {
		return false, nil
	}
	stored, err := re.store.FindResponse(r.Context(), ex.Caller.AccountID, *key)
	if err != nil || stored == nil {
		return false, err
	}
	err = repeat(w, r, ex, key, stored)
	return err == nil, err
}

// repeat writes a stored response. Of a body that is streamed, the hash is known only now.
func repeat(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState, key *protocol.IdempotencyKey, stored *idempotency.StoredResponse) error {
	if key.Streamed {
		leave, err := ex.router.heavy[route.BucketWrites].Enter(r.Context(), ex.Caller.AccountID) // one such body of an account at a time
		if err != nil {
			return err
		}
		defer leave()
		hash, err := ex.router.hashBody(w, r, ex.maxBody)
		if err != nil {
			return err
		}
		if err := idempotency.SameBody(stored.BodyHash, hash); err != nil {
			return err
		}
	}
	return writeStored(w, ex, stored)
}

func writeStored(w stdhttp.ResponseWriter, ex *requestState, stored *idempotency.StoredResponse) error {
	body := stored.Body
	if ex.restore != nil {
		var err error
		if body, err = ex.restore(body); err != nil {
			return err
		}
	}
	for name, value := range stored.Headers {
		w.Header().Set(name, value)
	}
	w.Header().Set(exchange.ReplayedHeader, "true")
	w.WriteHeader(stored.Status)
	_, _ = w.Write(body) // the client may have disconnected again
	return nil
}

// runOnce runs the handler for one of all requests with the same key. The store stores a successful response in the
// transaction of its effect; other successful responses are stored before they are sent. After a failure, the key is
// free again.
func (re *replays) runOnce(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState, key *protocol.IdempotencyKey, handler stdhttp.HandlerFunc) error {
	if key == nil {
		handler(w, r)
		return nil
	}
	claim, stored, err := re.store.ClaimKey(r.Context(), ex.Caller.AccountID, *key)
	if err != nil {
		return err
	}
	if stored != nil {
		return repeat(w, r, ex, key, stored)
	}
	hash := sha256.New()
	if key.Streamed {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, hash), r.Body}
	}
	build := func(resource any) (*idempotency.StoredResponse, error) {
		if key.Streamed { // the body was read to its end
			claim.Bind([sha256.Size]byte(hash.Sum(nil)))
		}
		return re.created(r.URL.Path, ex.success, resource)
	}
	buffered := &bufferedResponse{ResponseWriter: w}
	defer re.settle(r.Context(), ex, claim, buffered)
	if err := failpoint.Before(failpoint.IdemAfterClaim); err != nil {
		return err
	}
	handler(buffered, r.WithContext(idempotency.WithResponseStorer(r.Context(), &idempotency.ResponseStorer{Claim: claim, Build: build})))
	if err := failpoint.After(failpoint.IdemAfterClaim, nil); err != nil {
		buffered.status = 0
		return err
	}
	return nil
}

// settle ends the claim on a key and sends the buffered response. It also runs when the handler has panicked.
func (re *replays) settle(ctx context.Context, ex *requestState, claim *idempotency.KeyClaim, buffered *bufferedResponse) {
	ctx = context.WithoutCancel(ctx) // a committed response is stored even if the client has disconnected
	var err error
	succeeded := buffered.status >= stdhttp.StatusOK && buffered.status < stdhttp.StatusMultipleChoices
	switch {
	case succeeded && ex.restore != nil: // it is stored already, without its secret
	case succeeded:
		err = claim.Complete(ctx, buffered.stored())
	default:
		err = claim.Release(ctx)
	}
	if err != nil {
		re.log.Warn("an idempotency key could not be settled", zap.String("request_id", ex.ID), zap.Error(err))
	}
	buffered.send()
}

// bufferedResponse buffers a response until its key is settled.
type bufferedResponse struct {
	stdhttp.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *bufferedResponse) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *bufferedResponse) Write(b []byte) (int, error) {
	h.WriteHeader(stdhttp.StatusOK)
	return h.body.Write(b)
}

func (h *bufferedResponse) Unwrap() stdhttp.ResponseWriter { return h.ResponseWriter }

func (h *bufferedResponse) stored() *idempotency.StoredResponse {
	stored := &idempotency.StoredResponse{Status: h.status, Headers: map[string]string{}, Body: h.body.Bytes()}
	for _, name := range storedHeaders {
		if value := h.Header().Get(name); value != "" {
			stored.Headers[name] = value
		}
	}
	return stored
}

func (h *bufferedResponse) send() {
	if h.status == 0 { // the handler panicked: Router.recover responds
		return
	}
	h.ResponseWriter.WriteHeader(h.status)
	_, _ = h.ResponseWriter.Write(h.body.Bytes()) // the client may have disconnected
}
