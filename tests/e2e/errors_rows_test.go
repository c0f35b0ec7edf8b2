package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/providers/embedded/embeddedtest"
)

type jsonObject = map[string]any

// provocations are the errors that concern only the request, or a row of its account. The first one takes five seconds.
var provocations = []provocation{
	{code: protocol.CodeIdempotencyBusy, status: 409, provoke: whileAnotherIsInProgress},
	{code: protocol.CodeInvalidBody, status: 400, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "POST", "/conversations", client.Content("{"), "Content-Type", "application/json")
	}},
	{code: protocol.CodeInvalidHeader, status: 400, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "GET", "/conversations", nil, "Accept-Language", "\xff")
	}},
	{code: protocol.CodeUnauthenticated, status: 401, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, sitetest.NewGuest(t, s.Base), "GET", "/conversations", nil)
	}},
	{code: protocol.CodeCSRF, status: 403, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "POST", "/conversations", jsonObject{}, "X-CSRF-Token", "wrong")
	}},
	{code: protocol.CodeOrigin, status: 403, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "POST", "/conversations", jsonObject{}, "Origin", "https://other.example")
	}},
	{code: protocol.CodeReauthRequired, status: 403, provoke: longAfterSigningIn},
	{code: protocol.CodeRegistrationClosed, status: 403, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, sitetest.NewGuest(t, s.strict), "POST", "/auth/register", registration(uuid.NewString()+"@example.org"))
	}},
	{code: protocol.CodeMailNotConfigured, status: 403, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, sitetest.NewGuest(t, s.Base), "POST", "/auth/password/forgot", jsonObject{"email": "ada@example.org"})
	}},
	{code: protocol.CodeTranscriptionNotConfigured, status: 403, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "POST", "/transcriptions", jsonObject{}, "Content-Type", "audio/webm")
	}},
	{code: protocol.CodeNotFound, status: 404, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "GET", "/conversations/"+protocol.NewConversationID().String(), nil)
	}},
	{code: protocol.CodeMethodNotAllowed, status: 405, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "DELETE", "/conversations", nil)
	}, check: func(t *testing.T, got *rawResponse) {
		if allowed := got.Header.Values("Allow"); strings.Join(allowed, ";") != "GET, HEAD, POST" {
			t.Errorf("Allow: %v", allowed)
		}
	}},
	{code: protocol.CodeConflict, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "PUT", "/conversations/"+s.ada.NewConversation(t)+"/feedback", jsonObject{"rating": "up"}) // of no response
	}},
	{code: protocol.CodeStaleVersion, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "PUT", "/conversations/"+s.ada.NewConversation(t)+"/pin", jsonObject{"pinned": true}, "If-Match", `"v9"`)
	}},
	{code: protocol.CodeVersionRequired, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "PUT", "/conversations/"+s.ada.NewConversation(t)+"/pin", jsonObject{"pinned": true})
	}},
	{code: protocol.CodeConfirmation, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		project := s.ada.Do(t, "POST", "/projects", jsonObject{"name": "To delete"}).Text(t, 201, "project_id")
		return request(t, s.ada, "DELETE", "/projects/"+project, nil, "If-Match", `"v1"`)
	}},
	{code: protocol.CodeConsentRequired, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "GET", "/conversations/"+s.ada.NewConversation(t)+"/location-context", nil)
	}},
	{code: protocol.CodeTurnInProgress, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		conversation := s.ada.NewConversation(t)
		live(t, s.ada, conversation)
		return request(t, s.ada, "POST", "/chat", sitetest.NewChatBody("too early").In(conversation))
	}},
	{code: protocol.CodeHeadMoved, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "POST", "/chat", sitetest.NewChatBody("stale").In(s.ada.NewConversation(t)).With("expected_head_message_id", protocol.NewMessageID().String()))
	}},
	{code: protocol.CodeSteeringClosed, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		ended := s.ada.Chat(t, sitetest.NewChatBody(shortTurn).In(s.ada.NewConversation(t)))
		ended.ReadToEnd(t)
		return request(t, s.ada, "POST", "/chat/steering", sitetest.SteeringBody(ended.Turn, "late", "late", "next_step"))
	}},
	{code: protocol.CodeNotDeliverable, status: 409, provoke: afterTheLastInput},
	{code: protocol.CodeApprovalChanged, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		a, _ := asked(t, s.ada)
		a.InputDigest = "sha256:" + strings.Repeat("0", 64)
		return request(t, s.ada, "POST", "/chat/steering", decisionBody(a, protocol.ApproveOnce))
	}},
	{code: protocol.CodeApprovalDecided, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		a, stream := asked(t, s.ada)
		s.ada.Do(t, "POST", "/chat/steering", decisionBody(a, protocol.RejectCall))
		stream.ReadToEnd(t)
		return request(t, s.ada, "POST", "/chat/steering", decisionBody(a, protocol.ApproveOnce))
	}},
	{code: protocol.CodeSequenceAhead, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "GET", "/chat/turns/"+live(t, s.ada, s.ada.NewConversation(t)).Turn+"/events?after=1000", nil)
	}},
	{code: protocol.CodeNameTaken, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		s.ada.Do(t, "POST", "/prompts", jsonObject{"name": "greet", "text": "Hello"}).Want(t, http.StatusCreated, nil)
		return request(t, s.ada, "POST", "/prompts", jsonObject{"name": "GREET", "text": "Hi"})
	}},
	{code: protocol.CodeEmailTaken, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, sitetest.NewGuest(t, s.Base), "POST", "/auth/register", registration(s.ada.Email))
	}},
	{code: protocol.CodeUploadFinished, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		upload := startUpload(t, s.ada)
		s.ada.Do(t, "DELETE", upload.Path(), nil).Want(t, 200, nil)
		return putContent(t, s.ada, upload)
	}},
	{code: protocol.CodeIdempotencyReused, status: 409, provoke: func(t *testing.T, s *errorSite) *http.Request {
		s.ada.Do(t, "POST", "/files/uploads", newUpload("first.txt"), "Idempotency-Key", "an-upload").Want(t, 201, nil)
		return request(t, s.ada, "POST", "/files/uploads", newUpload("second.txt"), "Idempotency-Key", "an-upload")
	}},
	{code: protocol.CodeUploadExpired, status: 410, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := s.ada.Via(t, s.strict)
		upload := startUpload(t, u)
		sitetest.Eventually(t, "the upload expires", func() bool { return u.Do(t, "GET", upload.Path(), nil).Text(t, 200, "state") == "expired" })
		return putContent(t, u, upload)
	}},
	{code: protocol.CodeTooLarge, status: 413, provoke: func(t *testing.T, s *errorSite) *http.Request {
		upload := newUpload("large.txt")
		upload["size"] = int64(1) << 40
		return request(t, s.ada, "POST", "/files/uploads", upload)
	}},
	{code: protocol.CodeUnsupportedMedia, status: 415, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "POST", "/conversations", client.Content("{}"), "Content-Type", "text/plain")
	}},
	{code: protocol.CodeRange, status: 416, provoke: func(t *testing.T, s *errorSite) *http.Request {
		file := uploaded(t, s.ada, "tides.txt", "text/plain", "Tides rise.\n").FileID.String()
		return request(t, s.ada, "GET", "/files/"+file+"/content", nil, "Range", "bytes=1000-")
	}},
	{code: protocol.CodeWrongHost, status: 421, provoke: func(t *testing.T, s *errorSite) *http.Request {
		r := request(t, s.ada, "GET", "/conversations", nil)
		r.Host = "other.example"
		return r
	}},
	{code: protocol.CodeInvalid, status: 422, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "GET", "/conversations?limit=101", nil)
	}},
	{code: protocol.CodeIdempotencyMismatch, status: 422, provoke: func(t *testing.T, s *errorSite) *http.Request {
		s.ada.Do(t, "POST", "/conversations", jsonObject{"title": "First"}, "Idempotency-Key", "a-conversation").Want(t, 201, nil)
		return request(t, s.ada, "POST", "/conversations", jsonObject{"title": "Second"}, "Idempotency-Key", "a-conversation")
	}},
	{code: protocol.CodeRateLimited, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		s.ada.Do(t, "GET", "/search?q=tides", nil).Want(t, 200, nil)
		return request(t, s.ada, "GET", "/search?q=tides", nil)
	}},
	{code: protocol.CodeTooManyLiveTurns, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := sitetest.NewUser(t, s.Base)
		for range maxLiveTurns {
			live(t, u, u.NewConversation(t))
		}
		return request(t, u, "POST", "/chat", sitetest.NewChatBody("one more"))
	}},
	{code: protocol.CodeBudgetReached, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := sitetest.NewUser(t, s.Base).Via(t, s.strict)
		u.Chat(t, sitetest.NewChatBody("[[script tokens=5000 ttft=0 interval=0ms]]").In(u.NewConversation(t))).ReadToEnd(t)
		return request(t, u, "POST", "/chat", sitetest.NewChatBody("tomorrow"))
	}},
	{code: protocol.CodeTooManyStreams, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := sitetest.NewUser(t, s.Base)
		for range maxStreams {
			open, err := u.Open(t.Context(), "GET", "/events", nil)
			if err != nil || open.StatusCode != 200 {
				t.Fatalf("%+v %v", open, err)
			}
			t.Cleanup(func() { _ = open.Body.Close() })
		}
		return request(t, u, "GET", "/events", nil)
	}},
	{code: protocol.CodeTooManyInputs, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		turn := live(t, s.ada, s.ada.NewConversation(t)).Turn
		for n := range protocol.MaxPendingInputs {
			steer(t, s.ada, turn, n)
		}
		return request(t, s.ada, "POST", "/chat/steering", sitetest.SteeringBody(turn, "one more", "one more", "next_step"))
	}},
	{code: protocol.CodeTooManyFollowUps, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		conversation := s.ada.NewConversation(t)
		live(t, s.ada, conversation)
		queue := "/conversations/" + conversation + "/follow-ups"
		concurrently(t, protocol.MaxFollowUps, func(ctx context.Context, _ int) error {
			return created(s.ada.Request(ctx, "POST", queue, jsonObject{"content": "And then?"}))
		})
		return request(t, s.ada, "POST", queue, jsonObject{"content": "One more?"})
	}},
	{code: protocol.CodeTooManyUploads, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := sitetest.NewUser(t, s.Base)
		startUploads(t, u, 100)
		return request(t, u, "POST", "/files/uploads", newUpload("one more.txt"))
	}},
	{code: protocol.CodeTooManyFiles, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := sitetest.NewUser(t, s.Base)
		for n := range 2 {
			uploaded(t, u, "tides.txt", "text/plain", fmt.Sprintf("Tides rise %d times.\n", n))
		}
		startUploads(t, u, maxFiles-2)
		return request(t, u, "POST", "/files/uploads", newUpload("one more.txt"))
	}},
	{code: protocol.CodeTooManyShares, status: 429, provoke: withAllShares},
	{code: protocol.CodeTooManyPrompts, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := sitetest.NewUser(t, s.Base)
		s.execute(t, `insert into prompts (account_id, prompt_id, name, text)
			select account_id, gen_random_uuid(), 'p' || n, 'x' from accounts, generate_series(1, $2) n where email = $1`, u.Email, protocol.MaxPrompts)
		return request(t, u, "POST", "/prompts", jsonObject{"name": "one-more", "text": "x"})
	}},
	{code: protocol.CodeTooManyTasks, status: 429, provoke: func(t *testing.T, s *errorSite) *http.Request {
		u := sitetest.NewUser(t, s.Base)
		u.Do(t, "PUT", "/memory-sources/files/consent", jsonObject{"granted": true}).Want(t, http.StatusOK, nil)
		path := "/conversations/" + u.NewConversation(t) + "/research-tasks"
		task := jsonObject{"question": "How do tides differ? " + heldTurn, "sources": []string{"files"}}
		concurrently(t, protocol.MaxResearchWaiting, func(ctx context.Context, _ int) error {
			return accepted(u.Request(ctx, "POST", path, task))
		})
		return request(t, u, "POST", path, task)
	}},
	{code: protocol.CodeSourceUnavailable, status: 503, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada, "POST", "/conversations/"+s.ada.NewConversation(t)+"/research-tasks", jsonObject{"question": "How do tides differ?"})
	}},
	{code: protocol.CodeTooManyRequests, status: 429, provoke: whileAllSlotsAreTaken},
	{code: protocol.CodeInternal, status: 500, provoke: func(t *testing.T, s *errorSite) *http.Request {
		return request(t, s.ada.Device(t).Via(t, s.strict), "POST", "/auth/logout", nil)
	}},
}

// faults are the errors whose fault other requests would meet too.
var faults = []provocation{
	{code: protocol.CodeUnavailable, status: 503, provoke: whileNothingIsStored, check: func(t *testing.T, got *rawResponse) {
		if !strings.Contains(got.body, `"detail":"`+protocol.OutcomeUnknown+`"`) {
			t.Errorf("%s", got.body)
		}
	}},
	{code: protocol.CodeUnavailable, status: 503, provoke: func(t *testing.T, s *errorSite) *http.Request {
		r := request(t, s.ada, "POST", "/conversations", jsonObject{})
		redis := embeddedtest.Redis(t)
		if err := redis.Kill(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // other tests need the server
			if err := redis.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		return r
	}},
}

func registration(email string) jsonObject {
	return jsonObject{"email": email, "password": sitetest.GoodPassword, "display_name": "Somebody"}
}

// live starts a turn that lasts until the end of the test, which cancels it.
func live(t *testing.T, u *sitetest.User, conversation string) *sitetest.Stream {
	t.Helper()
	s := u.Live(t, conversation, heldTurn)
	t.Cleanup(func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(t.Context()), sitetest.HangGuard)
		defer done()
		got, err := u.Request(ctx, "POST", "/chat/steering", sitetest.CancelBody(s.Turn))
		if err != nil || got.Status != 202 {
			t.Errorf("cancelling a turn: %+v %v", got, err)
		}
	})
	return s
}

// steer sends an input, which stays pending, and returns the identifier that the service gave it.
func steer(t *testing.T, u *sitetest.User, turn string, n int) (input string) {
	t.Helper()
	return u.Do(t, "POST", "/chat/steering", sitetest.SteeringBody(turn, fmt.Sprint("input ", n), "steered", "next_step")).Text(t, 202, "steering_id")
}

// afterTheLastInput has a turn accept as many inputs as a turn may. Each one is withdrawn, so that few of them are
// pending.
func afterTheLastInput(t *testing.T, s *errorSite) *http.Request {
	turn := live(t, s.ada, s.ada.NewConversation(t)).Turn
	for n := range protocol.MaxTurnInputs {
		input := steer(t, s.ada, turn, n)
		s.ada.Do(t, "POST", "/chat/steering", jsonObject{"type": "withdraw", "turn_id": turn, "steering_id": input}).Want(t, 202, nil)
	}
	return request(t, s.ada, "POST", "/chat/steering", sitetest.SteeringBody(turn, "one more", "one more", "next_step"))
}

// whileAnotherIsInProgress sends a request to the strict process, which is in progress until that process is killed, and
// returns another one with its key.
func whileAnotherIsInProgress(t *testing.T, s *errorSite) *http.Request {
	u := s.ada.Via(t, s.strict)
	again := func() *http.Request {
		return request(t, u, "POST", "/conversations", jsonObject{}, "Idempotency-Key", "in-progress")
	}
	if err := again().Write(dialWire(t, s.strict)); err != nil {
		t.Fatal(err)
	}
	sitetest.Eventually(t, "the first request has the key", func() bool {
		return strings.Contains(s.internal(t, "GET", s.strictInternal, "/failpoints", ""), `"idem.after_claim_before_work":1`)
	})
	return again()
}

func longAfterSigningIn(t *testing.T, s *errorSite) *http.Request {
	s.execute(t, `update sessions set reauthenticated_at = now() - interval '11 minutes'
		where account_id = (select account_id from accounts where email = $1)`, s.ada.Email)
	return request(t, s.ada, "DELETE", "/account", nil)
}

func newUpload(name string) jsonObject {
	return jsonObject{"filename": name, "media_type": "text/plain", "size": 6, "purpose": "library"}
}

func startUpload(t *testing.T, u *sitetest.User) (upload protocol.Upload) {
	t.Helper()
	u.Do(t, "POST", "/files/uploads", newUpload("tides.txt")).Want(t, 201, &upload)
	return upload
}

func startUploads(t *testing.T, u *sitetest.User, count int) {
	t.Helper()
	concurrently(t, count, func(ctx context.Context, _ int) error {
		return created(u.Request(ctx, "POST", "/files/uploads", newUpload("tides.txt")))
	})
}

func putContent(t *testing.T, u *sitetest.User, upload protocol.Upload) *http.Request {
	t.Helper()
	return request(t, u, "PUT", upload.Path()+"/content", client.Content("Tides\n"), "Content-Type", "text/plain")
}

func created(got *sitetest.Response, err error) error {
	if err != nil {
		return err
	}
	return got.Decode(201, nil)
}

func accepted(got *sitetest.Response, err error) error {
	if err != nil {
		return err
	}
	return got.Decode(202, nil)
}

// concurrently calls f for the numbers below count, a few at a time, and fails the test if one call fails.
func concurrently(t *testing.T, count int, f func(ctx context.Context, n int) error) {
	t.Helper()
	const atOnce = 4
	ctx := sitetest.Within(t, sitetest.HangGuard)
	failures := make([]error, atOnce)
	var group sync.WaitGroup
	for first := range atOnce {
		group.Go(func() {
			for n := first; n < count; n += atOnce {
				failures[first] = errors.Join(failures[first], f(ctx, n))
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}

// withAllShares gives an account as many shares as it may have.
func withAllShares(t *testing.T, s *errorSite) *http.Request {
	conversation := s.ada.NewConversation(t)
	s.ada.Chat(t, sitetest.NewChatBody(shortTurn).In(conversation)).ReadToEnd(t)
	s.execute(t, `insert into shares (account_id, share_id, conversation_id, token_hash, title, message_count, page_count, expires_at)
		select account_id, gen_random_uuid(), conversation_id, sha256(gen_random_uuid()::text::bytea), 'Tides', 1, 1, now() + interval '1 day'
		from (select account_id, conversation_id from accounts join conversations using (account_id) where email = $1 limit 1) one, generate_series(1, $2)`,
		s.ada.Email, protocol.MaxShares)
	return request(t, s.ada, "POST", "/conversations/"+conversation+"/shares", jsonObject{})
}

// maxRequests is the number of requests of an account that may be in progress.
const maxRequests = 32

// whileAllSlotsAreTaken sends as many requests as an account may have in progress: each waits for a change of an upload.
func whileAllSlotsAreTaken(t *testing.T, s *errorSite) *http.Request {
	u := sitetest.NewUser(t, s.Base)
	upload := startUpload(t, u)
	for range maxRequests {
		if err := request(t, u, "GET", upload.Path()+"?wait=30s", nil).Write(dialWire(t, s.Base)); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitWaiting(t, maxRequests)
	return request(t, u, "GET", "/conversations", nil)
}

// awaitWaiting waits until a number of requests of the first process wait for a change of an upload.
func (s *errorSite) awaitWaiting(t *testing.T, count int) {
	t.Helper()
	sitetest.Eventually(t, "the requests wait", func() bool {
		return strings.Count(s.internal(t, "GET", s.Internal, "/debug/pprof/goroutine?debug=2", ""), "upload.(*Host).await(") == count
	})
}

// whileNothingIsStored sends an input to a turn whose journal stores nothing for longer than the request waits.
func whileNothingIsStored(t *testing.T, s *errorSite) *http.Request {
	u := sitetest.NewUser(t, s.Base).Via(t, s.strict)
	turn := u.Live(t, u.NewConversation(t), heldTurn).Turn
	s.internal(t, "PUT", s.strictInternal, "/failpoints", "journal.before_append=sleep:30s")
	return request(t, u, "POST", "/chat/steering", sitetest.SteeringBody(turn, "unknown", "unknown", "next_step"))
}
