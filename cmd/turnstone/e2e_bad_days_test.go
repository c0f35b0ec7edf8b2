package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/protocol"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

// longTurn streams for about three seconds.
const longTurn = "[[script tokens=150 ttft=0 interval=20ms]]"

func longText() string {
	script, _ := scripted.Parse(longTurn)
	return script.Text()
}

// The refusals have to come within one second, and within 300 ms; on a machine that runs other tests too, what is held
// is that nobody waits for one of the longer timeouts behind them (5 s for a request, 2 s for a connection).
const (
	postgresRefusal = 1800 * time.Millisecond
	redisRefusal    = 1500 * time.Millisecond
)

// attempt is a request on a bad day.
type attempt struct {
	method, path string
	body         any
}

// refuse holds every attempt against 503: at once, with a time to come back, and as a problem.
func (u *user) refuse(t *testing.T, limit time.Duration, attempts []attempt) {
	t.Helper()
	slowest := time.Duration(0)
	for _, a := range attempts {
		got := u.do(t, a.method, a.path, a.body)
		got.wantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
		if after, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || after < 1 {
			t.Errorf("%s: Retry-After %q", got.request, got.header.Get("Retry-After"))
		}
		if slowest = max(slowest, got.took); got.took > limit {
			t.Errorf("%s was refused after %s", got.request, got.took)
		}
	}
	t.Logf("%d refusals, the slowest after %s", len(attempts), slowest.Round(time.Millisecond))
}

// following watches a turn to its end beside the test.
func (u *user) following(t *testing.T, s *stream) (ended <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	ctx := within(t, patience)
	go func() { done <- u.watch(ctx, s.turn, s, nil) }()
	return done
}

func awaitEnd(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the turn does not end")
	}
}

// wantWhole holds a turn that met a bad day against one that did not.
func (u *user) wantWhole(t *testing.T, turn, conversation, text string) []event {
	t.Helper()
	events, end := u.wholeLog(t, turn)
	if end.Status != protocol.TurnCompleted || strings.Join(texts(fold(events)), "") != text {
		t.Errorf("it ended %s (%+v) and says %q", end.Status, end.Error, texts(fold(events)))
	}
	messages := u.messages(t, conversation)
	if last := messages[len(messages)-1]; last.Status != protocol.MessageComplete || strings.Join(texts(last.Parts), "") != text {
		t.Errorf("the message is %s and says %q", last.Status, texts(last.Parts))
	}
	return events
}

func readiness(t *testing.T, internal string) (status int, checks map[string]string) {
	t.Helper()
	status, body, err := fetch(t, http.MethodGet, "http://"+internal+"/ready", "")
	var verdict struct{ Checks map[string]string }
	if err != nil || json.Unmarshal([]byte(body), &verdict) != nil {
		t.Fatalf("/ready: %v %s", err, body)
	}
	return status, verdict.Checks
}

func TestWithoutPostgresNothingIsHalfDoneAndTurnsGoOnWhenItIsBack(t *testing.T) {
	s := newSite(t)
	s.up()
	postgres := embeddedtest.Postgres(t)
	t.Cleanup(func() { // whatever happens here, the next test has its server
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := postgres.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("stopped", func(t *testing.T) { withoutPostgres(t, s, postgres, postgres.Stop) })
	t.Run("killed", func(t *testing.T) {
		withoutPostgres(t, s, postgres, func(context.Context) error { return postgres.Kill() })
	})
}

func withoutPostgres(t *testing.T, s *site, postgres *embedded.Postgres, strike func(context.Context) error) {
	u := newUser(t, s.base)
	kept, long, steered := u.newConversation(t), u.newConversation(t), u.newConversation(t)
	first := u.chat(t, saying(longTurn).in(long))
	first.awaitKind(t, "answer.delta")
	ended := u.following(t, first)
	other := u.chat(t, saying(longTurn).in(steered))
	other.awaitKind(t, "answer.delta")
	otherEnded := u.following(t, other)

	if err := strike(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Postgres is away", func() bool { return u.do(t, http.MethodGet, "/conversations", nil).status != http.StatusOK })
	u.refuse(t, postgresRefusal, []attempt{
		{http.MethodGet, "/conversations", nil},
		{http.MethodGet, "/conversations/" + kept, nil},
		{http.MethodGet, "/chat/turns/" + first.turn, nil},
		{http.MethodPost, "/conversations", map[string]string{"title": "Half done"}},
		{http.MethodPut, "/conversations/" + kept + "/title", map[string]string{"title": "Half done"}},
		{http.MethodPost, "/chat", saying("Half done?")},
		{http.MethodPost, "/chat/steering", steering(other.turn, "half-done", "half done", "next_step")},
		{http.MethodDelete, "/conversations/" + kept, nil},
	})
	if status, _, err := fetch(t, http.MethodGet, s.base+"/health", ""); status != http.StatusOK || err != nil {
		t.Errorf("health: %d %v", status, err)
	}
	if status, checks := readiness(t, s.internal); status != http.StatusServiceUnavailable || checks["persistence"] != "down" {
		t.Errorf("ready: %d %v", status, checks)
	}

	if err := postgres.Start(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service answers again", func() bool {
		return u.do(t, http.MethodGet, "/conversations", nil).status == http.StatusOK
	})
	eventually(t, "the service is ready again", func() bool {
		status, _ := readiness(t, s.internal)
		return status == http.StatusOK
	})
	awaitEnd(t, ended)
	awaitEnd(t, otherEnded)
	u.wantWhole(t, first.turn, long, longText())
	u.wantUntouched(t, 3)
	u.settleSteering(t, other.turn, steered, "half-done")
}

// wantUntouched: nothing of what was refused was done.
func (u *user) wantUntouched(t *testing.T, conversations int) {
	t.Helper()
	var list protocol.List[protocol.Conversation]
	u.get(t, "/conversations", &list)
	if len(list.Data) != conversations {
		t.Errorf("%d conversations, want %d", len(list.Data), conversations)
	}
	for _, one := range list.Data {
		if strings.Contains(one.Title, "Half") {
			t.Errorf("a refused change was made: %s", one.ConversationID)
		}
	}
}

// settleSteering: what came of an input is not known after a 503; asked again, it is, and it is in one place at most.
func (u *user) settleSteering(t *testing.T, turn, conversation, clientID string) {
	t.Helper()
	r, err := insist(within(t, soon), u, steering(turn, clientID, "half done", "next_step"))
	if err != nil {
		t.Fatal(err)
	}
	events, _ := u.wholeLog(t, turn)
	f := fateOf(events, clientID)
	if accepted := r.status == http.StatusAccepted; accepted != (f.accepted == 1) || f.accepted != f.applied+f.returned {
		t.Errorf("the input was answered %d, the log says %+v", r.status, f)
	}
	if err := checkParked(u.page(t, conversation).FollowUps, f); err != nil {
		t.Error(err)
	}
}

func TestWithoutRedisProtectedRoutesRefuseAndTurnsDoNotNotice(t *testing.T) {
	s := newSite(t)
	s.up()
	u := newUser(t, s.base)
	redis := embeddedtest.Redis(t)
	t.Cleanup(func() {
		_ = redis.Resume() // it may be stopped
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := redis.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, day := range []struct {
		name        string
		strike, fix func(context.Context) error
	}{
		{"stopped", redis.Stop, redis.Start},
		{"frozen", func(context.Context) error { return redis.Pause() }, func(context.Context) error { return redis.Resume() }},
	} {
		t.Run(day.name, func(t *testing.T) {
			conversation := u.newConversation(t)
			live := u.chat(t, saying(longTurn).in(conversation))
			live.awaitKind(t, "answer.delta")
			if err := day.strike(within(t, patience)); err != nil {
				t.Fatal(err)
			}
			u.refuse(t, redisRefusal, []attempt{
				{http.MethodPost, "/conversations", map[string]string{"title": "Unprotected"}},
				{http.MethodPut, "/conversations/" + conversation + "/title", map[string]string{"title": "Unprotected"}},
				{http.MethodPost, "/chat", saying("Unprotected?")},
				{http.MethodPost, "/chat/steering", steering(live.turn, day.name, "unprotected", "next_step")},
				{http.MethodPost, "/auth/login", map[string]string{"email": u.email, "password": goodPassword}},
			})
			var session protocol.SessionInfo
			u.get(t, "/auth/session", &session) // reads go on: their limit is kept in the process
			_, end := live.toTheEnd(t)
			if len(live.retries) != 1 {
				t.Errorf("the stream was told to come back: %v", live.retries)
			}
			if end.Status != protocol.TurnCompleted {
				t.Errorf("the turn ended %s", end.Status)
			}
			if status, checks := readiness(t, s.internal); status != http.StatusServiceUnavailable || checks["cache"] != "down" {
				t.Errorf("ready: %d %v", status, checks)
			}
			if err := day.fix(within(t, patience)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the limiter decides again", func() bool {
				return u.do(t, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": "Protected"}).status == http.StatusOK
			})
			u.wantWhole(t, live.turn, conversation, longText())
			if page := u.page(t, conversation); page.Title != "Protected" || len(page.FollowUps) != 0 {
				t.Errorf("%q with %d follow-ups", page.Title, len(page.FollowUps))
			}
		})
	}
}

// A model that is down, and one that breaks off: the turn ends with a named error that may be tried again, and nothing
// of what the user or the model said is lost.
func TestWhenTheModelIsDownTheTurnSaysSoAndTheMessageIsKept(t *testing.T) {
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{React: func(modeltest.Request) modeltest.Step {
		return modeltest.Step{Text: []string{"One ", "two ", "three "}, Fault: modeltest.Cut, After: 2}
	}})
	t.Cleanup(server.Close)
	for _, day := range []struct {
		name, address string
		ends          protocol.TurnState
		message       protocol.MessageStatus
		says          string
	}{
		{"down", "http://" + freeAddress(t), protocol.TurnFailed, protocol.MessageFailed, ""},
		{"breaks off", server.URL, protocol.TurnIncomplete, protocol.MessageIncomplete, "One two "},
	} {
		t.Run(day.name, func(t *testing.T) {
			s := newSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+day.address, "TURNSTONE_MODEL_BALANCED=some-model")
			s.up()
			u := newUser(t, s.base)
			conversation := u.newConversation(t)
			for turns := 1; turns <= 2; turns++ { // the next one may be begun at once
				_, end := u.chat(t, saying("Is anybody there?").in(conversation)).toTheEnd(t)
				if end.Status != day.ends || end.Error == nil || end.Error.Code != "model_unavailable" || !end.Error.Retryable {
					t.Fatalf("it ended %+v, %+v", end, end.Error)
				}
				messages := u.messages(t, conversation)
				if len(messages) != 2*turns {
					t.Fatalf("%d messages", len(messages))
				}
				question, reply := messages[2*turns-2], messages[2*turns-1]
				if texts(question.Parts)[0] != canary+" Is anybody there?" || question.Status != protocol.MessageComplete {
					t.Errorf("the question is %+v", question)
				}
				if reply.Status != day.message || strings.Join(texts(reply.Parts), "") != day.says {
					t.Errorf("the answer is %s: %+v", reply.Status, reply.Parts)
				}
			}
		})
	}
}

// SIGTERM with a turn that will not end in time: its readers are told when to come again, and the next process goes on
// with it, after the last event that they saw.
func TestADrainHandsTheTurnAndItsReadersOn(t *testing.T) {
	s := newSite(t, "TURNSTONE_DRAIN_GRACE=300ms")
	p := s.up()
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	asked := u.chat(t, saying(longTurn).in(conversation))
	asked.awaitKind(t, "answer.delta")
	resumed, refused, err := u.follow(within(t, patience), asked.turn, 2, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	t.Cleanup(resumed.close)
	p.signal(syscall.SIGTERM)
	for _, reader := range []*stream{asked, resumed} {
		if err := untilHandedOn(reader); err != nil {
			t.Errorf("a reader: %v", err)
		}
		if n := len(reader.retries); n != 2 || reader.retries[0] != 2000 || reader.retries[1] >= 1000 {
			t.Errorf("retries %v: the second has to be soon", reader.retries)
		}
	}
	if code := p.exit(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.complaints())
	}
	s.up()
	if err := u.watch(within(t, patience), asked.turn, nil, nil); err != nil {
		t.Fatal(err)
	}
	events := u.wantWhole(t, asked.turn, conversation, longText())
	if countKind(events, "turn.recovering") != 1 {
		t.Errorf("%d takeovers, want 1", countKind(events, "turn.recovering"))
	}
	for _, e := range events {
		if recovering, ok := e.payload().(*protocol.TurnRecoveringEvent); ok && recovering.Cause != "drain" {
			t.Errorf("taken over because of %s", recovering.Cause)
		}
	}
}

// untilHandedOn reads to the end of a body that ends between two events and before the turn does.
func untilHandedOn(s *stream) error {
	for {
		_, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && !s.finished:
			return nil
		case err != nil:
			return err
		case s.finished:
			return errors.New("the turn ended here")
		}
	}
}
