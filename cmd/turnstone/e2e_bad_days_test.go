package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
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

// The limits that the service promises for a refusal.
const (
	postgresRefusal = time.Second
	redisRefusal    = 300 * time.Millisecond
)

func TestWithoutPostgresNothingIsHalfDoneAndTurnsGoOnWhenItIsBack(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Up()
	postgres := embeddedtest.Postgres(t)
	t.Cleanup(func() { // whatever happens here, the next test has its server
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.Patience)
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

func withoutPostgres(t *testing.T, s *sitetest.Site, postgres *embedded.Postgres, strike func(context.Context) error) {
	u := sitetest.NewUser(t, s.Base)
	kept, long, steered := u.NewConversation(t), u.NewConversation(t), u.NewConversation(t)
	first := u.Chat(t, sitetest.Saying(longTurn).In(long))
	first.AwaitKind(t, "answer.delta")
	ended := u.Following(t, first)
	other := u.Chat(t, sitetest.Saying(longTurn).In(steered))
	other.AwaitKind(t, "answer.delta")
	otherEnded := u.Following(t, other)

	over := u.Ledger.Plan()
	if err := strike(sitetest.Within(t, sitetest.Patience)); err != nil {
		t.Fatal(err)
	}
	failed := time.Now()
	sitetest.Eventually(t, "Postgres is away", func() bool { return u.Do(t, http.MethodGet, "/conversations", nil).Status != http.StatusOK })
	u.Refuse(t, postgresRefusal, []sitetest.Attempt{
		{Method: http.MethodGet, Path: "/conversations", Body: nil},
		{Method: http.MethodGet, Path: "/conversations/" + kept, Body: nil},
		{Method: http.MethodGet, Path: "/chat/turns/" + first.Turn, Body: nil},
		{Method: http.MethodPost, Path: "/conversations", Body: map[string]string{"title": "Half done"}},
		{Method: http.MethodPut, Path: "/conversations/" + kept + "/title", Body: map[string]string{"title": "Half done"}},
		{Method: http.MethodPost, Path: "/chat", Body: sitetest.Saying("Half done?")},
		{Method: http.MethodPost, Path: "/chat/steering", Body: sitetest.Steering(other.Turn, "half-done", "half done", "next_step")},
		{Method: http.MethodDelete, Path: "/conversations/" + kept, Body: nil},
	})
	if status, _, err := sitetest.Fetch(t, http.MethodGet, s.Base+"/health", ""); status != http.StatusOK || err != nil {
		t.Errorf("health: %d %v", status, err)
	}
	sitetest.AwaitDown(t, s.Internal, "persistence", failed)

	if err := postgres.Start(sitetest.Within(t, sitetest.Patience)); err != nil {
		t.Fatal(err)
	}
	repaired := time.Now()
	sitetest.Eventually(t, "the service answers again", func() bool {
		return u.Do(t, http.MethodGet, "/conversations", nil).Status == http.StatusOK
	})
	sitetest.AwaitReady(t, s.Internal, repaired)
	sitetest.AwaitEnd(t, ended)
	sitetest.AwaitEnd(t, otherEnded)
	over()
	u.WantWhole(t, first.Turn, long, longText())
	wantUntouched(t, u, 3)
	settleSteering(t, u, other.Turn, steered, "half-done")
}

// wantUntouched: nothing of what was refused was done.
func wantUntouched(t *testing.T, u *sitetest.User, conversations int) {
	t.Helper()
	var list protocol.List[protocol.Conversation]
	u.Get(t, "/conversations", &list)
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
func settleSteering(t *testing.T, u *sitetest.User, turn, conversation, clientID string) {
	t.Helper()
	r, err := sitetest.Insist(sitetest.Within(t, sitetest.Soon), u, sitetest.Steering(turn, clientID, "half done", "next_step"))
	if err != nil {
		t.Fatal(err)
	}
	events, _ := u.WholeLog(t, turn)
	f := fateOf(events, clientID)
	if accepted := r.Status == http.StatusAccepted; accepted != (f.accepted == 1) || f.accepted != f.applied+f.returned {
		t.Errorf("the input was answered %d, the log says %+v", r.Status, f)
	}
	if err := checkParked(u.Page(t, conversation).FollowUps, f); err != nil {
		t.Error(err)
	}
}

func TestWithoutRedisProtectedRoutesRefuseAndTurnsDoNotNotice(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Up()
	u := sitetest.NewUser(t, s.Base)
	redis := embeddedtest.Redis(t)
	t.Cleanup(func() {
		_ = redis.Resume() // it may be stopped
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.Patience)
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
			conversation := u.NewConversation(t)
			live := u.Chat(t, sitetest.Saying(longTurn).In(conversation))
			live.AwaitKind(t, "answer.delta")
			over := u.Ledger.Plan()
			if err := day.strike(sitetest.Within(t, sitetest.Patience)); err != nil {
				t.Fatal(err)
			}
			failed := time.Now()
			u.Refuse(t, redisRefusal, []sitetest.Attempt{
				{Method: http.MethodPost, Path: "/conversations", Body: map[string]string{"title": "Unprotected"}},
				{Method: http.MethodPut, Path: "/conversations/" + conversation + "/title", Body: map[string]string{"title": "Unprotected"}},
				{Method: http.MethodPost, Path: "/chat", Body: sitetest.Saying("Unprotected?")},
				{Method: http.MethodPost, Path: "/chat/steering", Body: sitetest.Steering(live.Turn, day.name, "unprotected", "next_step")},
				{Method: http.MethodPost, Path: "/auth/login", Body: map[string]string{"email": u.Email, "password": sitetest.GoodPassword}},
			})
			var session protocol.SessionInfo
			u.Get(t, "/auth/session", &session) // reads go on: their limit is kept in the process
			_, end := live.ToTheEnd(t)
			if len(live.Retries) != 1 {
				t.Errorf("the stream was told to come back: %v", live.Retries)
			}
			if end.Status != protocol.TurnCompleted {
				t.Errorf("the turn ended %s", end.Status)
			}
			if status, checks := sitetest.Readiness(t, s.Internal); status != http.StatusServiceUnavailable || checks["cache"] != "down" {
				t.Errorf("ready, %s after the failure: %d %v", time.Since(failed), status, checks)
			}
			if err := day.fix(sitetest.Within(t, sitetest.Patience)); err != nil {
				t.Fatal(err)
			}
			sitetest.Eventually(t, "the limiter decides again", func() bool {
				return u.Do(t, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": "Protected"}).Status == http.StatusOK
			})
			over()
			u.WantWhole(t, live.Turn, conversation, longText())
			if page := u.Page(t, conversation); page.Title != "Protected" || len(page.FollowUps) != 0 {
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
		{"down", "http://" + sitetest.FreeAddress(t), protocol.TurnFailed, protocol.MessageFailed, ""},
		{"breaks off", server.URL, protocol.TurnIncomplete, protocol.MessageIncomplete, "One two "},
	} {
		t.Run(day.name, func(t *testing.T) {
			s := sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+day.address, "TURNSTONE_MODEL_BALANCED=some-model")
			s.Up()
			u := sitetest.NewUser(t, s.Base)
			conversation := u.NewConversation(t)
			for turns := 1; turns <= 2; turns++ { // the next one may be begun at once
				_, end := u.Chat(t, sitetest.Saying("Is anybody there?").In(conversation)).ToTheEnd(t)
				if end.Status != day.ends || end.Error == nil || end.Error.Code != "model_unavailable" || !end.Error.Retryable {
					t.Fatalf("it ended %+v, %+v", end, end.Error)
				}
				messages := u.Messages(t, conversation)
				if len(messages) != 2*turns {
					t.Fatalf("%d messages", len(messages))
				}
				question, reply := messages[2*turns-2], messages[2*turns-1]
				if sitetest.Texts(question.Parts)[0] != sitetest.Canary+" Is anybody there?" || question.Status != protocol.MessageComplete {
					t.Errorf("the question is %+v", question)
				}
				if reply.Status != day.message || strings.Join(sitetest.Texts(reply.Parts), "") != day.says {
					t.Errorf("the answer is %s: %+v", reply.Status, reply.Parts)
				}
			}
		})
	}
}

// SIGTERM with a turn that will not end in time: its readers are told when to come again, and the next process goes on
// with it, after the last event that they saw.
func TestADrainHandsTheTurnAndItsReadersOn(t *testing.T) {
	s := sitetest.NewSite(t, "TURNSTONE_DRAIN_GRACE=300ms")
	p := s.Up()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	asked := u.Chat(t, sitetest.Saying(longTurn).In(conversation))
	asked.AwaitKind(t, "answer.delta")
	resumed, refused, err := u.Follow(sitetest.Within(t, sitetest.Patience), asked.Turn, 2, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	t.Cleanup(resumed.Close)
	over := u.Ledger.Plan()
	p.Signal(syscall.SIGTERM)
	for _, reader := range []*sitetest.Stream{asked, resumed} {
		if err := untilHandedOn(reader); err != nil {
			t.Errorf("a reader: %v", err)
		}
		if n := len(reader.Retries); n != 2 || reader.Retries[0] != 2000 || reader.Retries[1] >= 1000 {
			t.Errorf("retries %v: the second has to be soon", reader.Retries)
		}
	}
	if code := p.Exit(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.Complaints())
	}
	s.Up()
	if err := u.Watch(sitetest.Within(t, sitetest.Patience), asked.Turn, nil, nil); err != nil {
		t.Fatal(err)
	}
	over()
	events := u.WantWhole(t, asked.Turn, conversation, longText())
	if sitetest.CountKind(events, "turn.recovering") != 1 {
		t.Errorf("%d takeovers, want 1", sitetest.CountKind(events, "turn.recovering"))
	}
	for _, e := range events {
		if recovering, ok := e.Payload().(*protocol.TurnRecoveringEvent); ok && recovering.Cause != "drain" {
			t.Errorf("taken over because of %s", recovering.Cause)
		}
	}
}

// untilHandedOn reads to the end of a body that ends between two events and before the turn does.
func untilHandedOn(s *sitetest.Stream) error {
	for {
		_, err := s.Next()
		switch {
		case errors.Is(err, io.EOF) && !s.Finished:
			return nil
		case err != nil:
			return err
		case s.Finished:
			return errors.New("the turn ended here")
		}
	}
}
