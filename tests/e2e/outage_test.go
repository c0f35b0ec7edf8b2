package e2e

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
	"turnstone/protocol/verify"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
	"turnstone/providers/model/modeltest"
)

// reconnectTime is the reconnection time that every stream requests.
const reconnectTime = 2 * time.Second

func TestWithoutPostgresNothingIsHalfDoneAndTurnsGoOnWhenItIsBack(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Start()
	postgres := embeddedtest.Postgres(t)
	t.Cleanup(func() { // the next test needs the server, even if this one fails
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.HangGuard)
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

func withoutPostgres(t *testing.T, s *sitetest.Site, postgres *embedded.Postgres, inject func(context.Context) error) {
	u := sitetest.NewUser(t, s.Base)
	idle, long, steered := u.NewConversation(t), u.NewConversation(t), u.NewConversation(t)
	first := u.Chat(t, sitetest.NewChatBody(sitetest.LongTurn).In(long))
	first.AwaitKind(t, "answer.delta")
	ended := u.FollowInBackground(t, first)
	other := u.Chat(t, sitetest.NewChatBody(sitetest.LongTurn).In(steered))
	other.AwaitKind(t, "answer.delta")
	otherEnded := u.FollowInBackground(t, other)

	over := u.Ledger.Plan()
	if err := inject(sitetest.Within(t, sitetest.HangGuard)); err != nil {
		t.Fatal(err)
	}
	failed := time.Now()
	sitetest.Eventually(t, "Postgres is unreachable", func() bool { return u.Do(t, http.MethodGet, "/conversations", nil).Status != http.StatusOK })
	u.WantRefused(t, []sitetest.Attempt{
		{Method: http.MethodGet, Path: "/conversations", Body: nil},
		{Method: http.MethodGet, Path: "/conversations/" + idle, Body: nil},
		{Method: http.MethodGet, Path: "/chat/turns/" + first.Turn, Body: nil},
		{Method: http.MethodPost, Path: "/conversations", Body: map[string]string{"title": "Half done"}},
		{Method: http.MethodPut, Path: "/conversations/" + idle + "/title", Body: map[string]string{"title": "Half done"}},
		{Method: http.MethodPost, Path: "/chat", Body: sitetest.NewChatBody("Half done?")},
		{Method: http.MethodPost, Path: "/chat/steering", Body: sitetest.SteeringBody(other.Turn, "half-done", "half done", "next_step")},
		{Method: http.MethodDelete, Path: "/conversations/" + idle, Body: nil},
	})
	if status, _, err := sitetest.Fetch(t, http.MethodGet, s.Base+"/health", ""); status != http.StatusOK || err != nil {
		t.Errorf("health: %d %v", status, err)
	}
	sitetest.AwaitDown(t, s.Internal, "persistence", failed)

	if err := postgres.Start(sitetest.Within(t, sitetest.HangGuard)); err != nil {
		t.Fatal(err)
	}
	repaired := time.Now()
	sitetest.Eventually(t, "the service responds again", func() bool {
		return u.Do(t, http.MethodGet, "/conversations", nil).Status == http.StatusOK
	})
	sitetest.AwaitReady(t, s.Internal, repaired)
	sitetest.AwaitEnd(t, ended)
	sitetest.AwaitEnd(t, otherEnded)
	over()
	u.WantCompleted(t, first.Turn, long, sitetest.ScriptedText(sitetest.LongTurn))
	wantUntouched(t, u, 3)
	settleSteering(t, u, other.Turn, steered, "half-done")
}

// wantUntouched checks that none of the refused changes was made.
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

// settleSteering repeats an input whose outcome a 503 left open. It checks that the outcome is then known and that the
// input was used at most once.
func settleSteering(t *testing.T, u *sitetest.User, turn, conversation, clientID string) {
	t.Helper()
	r, err := sitetest.SendUntilDecided(sitetest.Within(t, sitetest.HangGuard), u, sitetest.SteeringBody(turn, clientID, "half done", "next_step"))
	if err != nil {
		t.Fatal(err)
	}
	read := u.ReadTurn(t, turn)
	sitetest.Report(t, turn, read.CheckCommands([]verify.Command{r.Of(clientID)}))
	if err := checkReturned(u.Page(t, conversation).FollowUps, read.Inputs[clientID]); err != nil {
		t.Error(err)
	}
}

func TestWithoutRedisProtectedRoutesRefuseAndTurnsDoNotNotice(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	redis := embeddedtest.Redis(t)
	t.Cleanup(func() {
		_ = redis.Resume() // it may be stopped
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.HangGuard)
		defer cancel()
		if err := redis.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, outage := range []struct {
		name           string
		inject, repair func(context.Context) error
	}{
		{"stopped", redis.Stop, redis.Start},
		{"frozen", func(context.Context) error { return redis.Pause() }, func(context.Context) error { return redis.Resume() }},
	} {
		t.Run(outage.name, func(t *testing.T) {
			conversation := u.NewConversation(t)
			live := u.Chat(t, sitetest.NewChatBody(sitetest.LongTurn).In(conversation))
			live.AwaitKind(t, "answer.delta")
			over := u.Ledger.Plan()
			if err := outage.inject(sitetest.Within(t, sitetest.HangGuard)); err != nil {
				t.Fatal(err)
			}
			failed := time.Now()
			u.WantRefused(t, []sitetest.Attempt{
				{Method: http.MethodPost, Path: "/conversations", Body: map[string]string{"title": "Unprotected"}},
				{Method: http.MethodPut, Path: "/conversations/" + conversation + "/title", Body: map[string]string{"title": "Unprotected"}},
				{Method: http.MethodPost, Path: "/chat", Body: sitetest.NewChatBody("Unprotected?")},
				{Method: http.MethodPost, Path: "/chat/steering", Body: sitetest.SteeringBody(live.Turn, outage.name, "unprotected", "next_step")},
				{Method: http.MethodPost, Path: "/auth/login", Body: map[string]string{"email": u.Email, "password": sitetest.GoodPassword}},
			})
			var session protocol.SessionInfo
			u.Get(t, "/auth/session", &session) // reads continue: their limit is counted in the process
			_, end := live.ReadToEnd(t)
			if live.Retry() != reconnectTime {
				t.Errorf("the stream requests a reconnection time of %s", live.Retry())
			}
			if end.Status != protocol.TurnCompleted {
				t.Errorf("the turn ended %s", end.Status)
			}
			if status, checks := sitetest.Readiness(t, s.Internal); status != http.StatusServiceUnavailable || checks["cache"] != "down" {
				t.Errorf("ready, %s after the failure: %d %v", time.Since(failed), status, checks)
			}
			if err := outage.repair(sitetest.Within(t, sitetest.HangGuard)); err != nil {
				t.Fatal(err)
			}
			sitetest.Eventually(t, "the limiter decides again", func() bool {
				return u.Do(t, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": "Protected"}).Status == http.StatusOK
			})
			over()
			u.WantCompleted(t, live.Turn, conversation, sitetest.ScriptedText(sitetest.LongTurn))
			if page := u.Page(t, conversation); page.Title != "Protected" || len(page.FollowUps) != 0 {
				t.Errorf("%q with %d follow-ups", page.Title, len(page.FollowUps))
			}
		})
	}
}

// TestWhenTheModelIsDownTheTurnSaysSoAndTheMessageIsKept uses a model that is down and one that breaks off. The turn
// must end with a named, retryable error, and no text of the user or the model may be lost.
func TestWhenTheModelIsDownTheTurnSaysSoAndTheMessageIsKept(t *testing.T) {
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: func(modeltest.Request) modeltest.Step {
		return modeltest.Step{Text: []string{"One ", "two ", "three "}, Fault: modeltest.Cut, After: 2}
	}})
	t.Cleanup(server.Close)
	for _, outage := range []struct {
		name, address string
		ends          protocol.TurnState
		message       protocol.MessageStatus
		says          string
	}{
		{"down", "http://" + sitetest.FreeAddress(t), protocol.TurnFailed, protocol.MessageFailed, ""},
		{"breaks off", server.URL, protocol.TurnIncomplete, protocol.MessageIncomplete, "One two "},
	} {
		t.Run(outage.name, func(t *testing.T) {
			s := sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+outage.address, "TURNSTONE_MODEL_BALANCED=some-model")
			s.Start()
			u := sitetest.NewUser(t, s.Base)
			conversation := u.NewConversation(t)
			for turns := 1; turns <= 2; turns++ { // the next turn can be started at once
				_, end := u.Chat(t, sitetest.NewChatBody("Is anybody there?").In(conversation)).ReadToEnd(t)
				if end.Status != outage.ends || end.Error == nil || end.Error.Code != "model_unavailable" || !end.Error.Retryable {
					t.Fatalf("the turn ended %+v, %+v", end, end.Error)
				}
				messages := u.Messages(t, conversation)
				if len(messages) != 2*turns {
					t.Fatalf("%d messages", len(messages))
				}
				question, reply := messages[2*turns-2], messages[2*turns-1]
				if sitetest.Texts(question.Parts)[0] != sitetest.Canary+" Is anybody there?" || question.Status != protocol.MessageComplete {
					t.Errorf("the question is %+v", question)
				}
				if reply.Status != outage.message || strings.Join(sitetest.Texts(reply.Parts), "") != outage.says {
					t.Errorf("the answer is %s: %+v", reply.Status, reply.Parts)
				}
			}
		})
	}
}

// TestADrainHandsTheTurnAndItsReadersOverToTheNextProcess sends SIGTERM while a turn runs that does not end within the
// grace. The streams request a reconnection time, and the next process continues the turn after the last event that
// their readers saw.
func TestADrainHandsTheTurnAndItsReadersOverToTheNextProcess(t *testing.T) {
	s := sitetest.NewSite(t, "TURNSTONE_DRAIN_GRACE=300ms")
	p := s.Start()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	started := u.Chat(t, sitetest.NewChatBody(sitetest.LongTurn).In(conversation))
	started.AwaitKind(t, "answer.delta")
	resumed, refused, err := u.Follow(sitetest.Within(t, sitetest.HangGuard), started.Turn, 2, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	t.Cleanup(resumed.Close)
	over := u.Ledger.Plan()
	if started.Retry() != reconnectTime {
		t.Errorf("the reconnection time is %s", started.Retry())
	}
	p.Signal(syscall.SIGTERM)
	for _, reader := range []*sitetest.Stream{started, resumed} {
		if err := untilHandedOver(reader); err != nil {
			t.Errorf("a reader: %v", err)
		}
		if reader.Retry() >= time.Second {
			t.Errorf("after a drain the reconnection time is %s, want less than a second", reader.Retry())
		}
	}
	if code := p.Exit(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.Stderr())
	}
	s.Start()
	if err := u.Watch(sitetest.Within(t, sitetest.HangGuard), started.Turn, nil, nil); err != nil {
		t.Fatal(err)
	}
	over()
	events := u.WantCompleted(t, started.Turn, conversation, sitetest.ScriptedText(sitetest.LongTurn))
	if sitetest.CountKind(events, "turn.recovering") != 1 {
		t.Errorf("%d takeovers, want 1", sitetest.CountKind(events, "turn.recovering"))
	}
	for _, e := range events {
		if recovering, ok := e.Payload().(*protocol.TurnRecoveringEvent); ok && recovering.Cause != "drain" {
			t.Errorf("taken over because of %s", recovering.Cause)
		}
	}
}

// untilHandedOver reads up to the end of the body. It returns an error unless the body ends between two events and
// before the turn does.
func untilHandedOver(s *sitetest.Stream) error {
	for {
		_, err := s.Next()
		switch {
		case errors.Is(err, io.EOF) && !s.Finished():
			return nil
		case err != nil:
			return err
		case s.Finished():
			return errors.New("the turn ended in this process")
		}
	}
}
