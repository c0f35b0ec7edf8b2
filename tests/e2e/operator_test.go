package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
)

const corruptLogSQL = `
update turn_events set frames = 'noise'
where turn_id = $1 and first_sequence = (select min(first_sequence) from turn_events where turn_id = $1 and first_sequence > 1)`

// corruptLog makes the log of a live turn unreadable. It damages a row that the turn's readers have already seen.
func corruptLog(t *testing.T, s *sitetest.Site, turn string) {
	t.Helper()
	changed, err := superuser(t, s).Exec(t.Context(), corruptLogSQL, protocol.NodeID(idtest.Parse[protocol.TurnID](t, turn)).String())
	if err != nil || changed.RowsAffected() != 1 {
		t.Fatalf("%d rows were damaged: %v", changed.RowsAffected(), err)
	}
}

// queueBehind queues a message behind the live turn of a conversation.
func queueBehind(t *testing.T, u *sitetest.User, conversation string) {
	t.Helper()
	u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("queued").In(conversation).With("if_busy", "queue")).Want(t, http.StatusAccepted, nil)
}

// wantFreeAndHeld checks that a conversation has no live turn and that its only queued message is held, both now and
// after its next turn.
func wantFreeAndHeld(t *testing.T, u *sitetest.User, conversation string) {
	t.Helper()
	held := func(when string) {
		t.Helper()
		page := u.Page(t, conversation)
		if page.LiveTurn != nil || len(page.FollowUps) != 1 || page.FollowUps[0].State != protocol.FollowUpHeld {
			t.Errorf("%s: live turn %+v, queue %+v", when, page.LiveTurn, page.FollowUps)
		}
	}
	held("after the end")
	if _, end := u.Chat(t, sitetest.NewChatBody(shortTurn).In(conversation)).ReadToEnd(t); end.Status != protocol.TurnCompleted {
		t.Errorf("the next turn ended %s", end.Status)
	}
	held("after the next turn")
}

// wantRepairedLog reads the repaired log of a turn from its first event. It uses a new witness, because one that
// recorded the damaged events would report the repaired ones as changed. Events may be missing from the parts.
func wantRepairedLog(t *testing.T, u *sitetest.User, turn string) ([]sitetest.Event, *protocol.TurnFinished) {
	t.Helper()
	reader := *u
	reader.Witness = sitetest.NewWitness(t)
	s, refused, err := reader.FollowAgain(sitetest.Within(t, sitetest.HangGuard), turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("following %s: %v %+v", turn, err, refused)
	}
	defer s.Close()
	return s.ReadToEnd(t)
}

func TestATurnWhoseLogIsUnreadableFailsAtTheThirdAdoptionAndFreesItsConversation(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	p := s.Start()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	live := u.Live(t, conversation, endlessTurn)
	live.AwaitKind(t, "answer.delta") // an event after the row that will be damaged
	queueBehind(t, u, conversation)
	over := u.Ledger.Plan()
	ended := u.FollowInBackground(t, live)
	p.Kill()
	corruptLog(t, s, live.Turn)
	p = s.Start()
	over()
	sitetest.AwaitEnd(t, ended)
	_, end := wantRepairedLog(t, u, live.Turn)
	if end.Status != protocol.TurnFailed || end.Error == nil || end.Error.Code != "unrecoverable" {
		t.Errorf("the turn ended %s, %+v", end.Status, end.Error)
	}
	var adoptions int
	row := superuser(t, s).QueryRow(t.Context(), `select adoptions from turns where turn_id = $1`, protocol.NodeID(idtest.Parse[protocol.TurnID](t, live.Turn)).String())
	if err := row.Scan(&adoptions); err != nil || adoptions != 3 {
		t.Errorf("%d adoptions, %v", adoptions, err)
	}
	if log := p.Stderr(); strings.Count(log, "a turn's log cannot be read") != 2 || strings.Count(log, "a turn whose log cannot be read is ended") != 1 {
		t.Error("the log does not contain two failed adoptions and the one that ended the turn")
	}
	if last := u.Messages(t, conversation)[1]; last.Status != protocol.MessageFailed {
		t.Errorf("its message is %s", last.Status)
	}
	wantFreeAndHeld(t, u, conversation)
}

func TestAnOperatorCancelsTurnsByHand(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	cancel := func(t *testing.T, want int, state string, arguments ...string) {
		t.Helper()
		code, stdout, stderr := sitetest.Finish(t, s.Environment, append([]string{"turn", "cancel"}, arguments...)...)
		if code != want || want == 0 && !strings.Contains(stdout, `"state":"`+state+`"`) {
			t.Fatalf("turn cancel %v: %d %q %q", arguments, code, stdout, stderr)
		}
	}
	check := func(t *testing.T, turn, conversation string, events []sitetest.Event, end *protocol.TurnFinished) {
		t.Helper()
		var request *protocol.TurnCancelRequested
		for _, e := range events {
			if payload, is := e.Payload().(*protocol.TurnCancelRequested); is {
				request = payload
			}
		}
		if end.Status != protocol.TurnCancelled || request == nil || request.By != protocol.CancelledByOperator || request.Scope != protocol.CancelTurn {
			t.Errorf("the turn ended %s, cancel request %+v", end.Status, request)
		}
		wantFreeAndHeld(t, u, conversation)
		for _, arguments := range [][]string{{turn}, {turn, "--force"}} {
			cancel(t, 1, "", arguments...) // the turn has ended
		}
	}
	t.Run("a healthy turn", func(t *testing.T) {
		conversation := u.NewConversation(t)
		live := u.Live(t, conversation, endlessTurn)
		queueBehind(t, u, conversation)
		cancel(t, 0, "cancelling", live.Turn)
		events, end := live.ReadToEnd(t)
		check(t, live.Turn, conversation, events, end)
	})
	t.Run("a turn whose log cannot be read", func(t *testing.T) {
		conversation := u.NewConversation(t)
		live := u.Live(t, conversation, endlessTurn)
		live.AwaitKind(t, "answer.delta")
		queueBehind(t, u, conversation)
		corruptLog(t, s, live.Turn)
		ended := u.FollowInBackground(t, live)
		cancel(t, 0, "cancelled", live.Turn, "--force")
		sitetest.AwaitEnd(t, ended)
		events, end := wantRepairedLog(t, u, live.Turn)
		check(t, live.Turn, conversation, events, end)
	})
}

func TestDisablingAnAccountEndsItsStreamsItsTurnItsResearchAndItsSessionsAndHoldsItsQueue(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t, "TURNSTONE_SEARCH_PROVIDERS=bundled")
	s.Start()
	u, other := sitetest.NewUser(t, s.Base), sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	live := u.Live(t, conversation, endlessTurn)
	task := u.Research(t, sitetest.ResearchBody{"question": endlessTurn}) // a plan without an end
	queueBehind(t, u, conversation)
	untouched := other.Live(t, other.NewConversation(t), endlessTurn)
	second, refused, err := u.Device(t).Follow(sitetest.Within(t, sitetest.HangGuard), live.Turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("%v %+v", err, refused)
	}
	defer second.Close()
	second.AwaitKind(t, "answer.delta")
	ends := make(chan error, 2)
	for _, stream := range []*sitetest.Stream{live, second} {
		go func() { ends <- stream.Drain(nil) }()
	}
	user := func(arguments ...string) {
		t.Helper()
		if code, _, stderr := sitetest.Finish(t, s.Environment, append([]string{"user"}, arguments...)...); code != 0 {
			t.Fatalf("user %v: %d %s", arguments, code, stderr)
		}
	}
	user("disable", u.Email)
	for range 2 {
		select {
		case err := <-ends:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(sitetest.HangGuard):
			t.Fatal("a stream did not end")
		}
	}
	for _, path := range []string{"/conversations", "/chat/turns/" + live.Turn + "/events"} {
		u.Do(t, http.MethodGet, path, nil).WantProblem(t, http.StatusUnauthorized, protocol.CodeUnauthenticated)
	}
	code, stdout, stderr := sitetest.Finish(t, s.Environment, "turn", "events", live.Turn, "--follow")
	if code != 0 || !strings.Contains(stdout, `"by":"operator","scope":"turn"`) {
		t.Errorf("turn events: %d %s", code, stderr)
	}
	var finished protocol.TurnFinished
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &finished); err != nil || finished.Status != protocol.TurnCancelled {
		t.Errorf("its turn ended %s, %v", finished.Status, err)
	}
	user("enable", u.Email)
	again := u.Device(t)
	if err := again.FollowResearch(sitetest.Within(t, sitetest.HangGuard), task.TaskID.String(), nil); err != nil {
		t.Error(err)
	}
	again.Get(t, "/research-tasks/"+task.TaskID.String(), task)
	if task.State != protocol.ResearchCancelled {
		t.Errorf("its research task is %s", task.State)
	}
	if messages := again.Messages(t, conversation); len(messages) != 2 {
		t.Errorf("%d messages: enabling the account has started a turn", len(messages))
	}
	wantFreeAndHeld(t, again, conversation)
	if _, err := untouched.Next(); err != nil {
		t.Errorf("the stream of another account: %v", err)
	}
	other.Cancel(t, untouched)
}

func TestAnOperatorSignsOutOneDeviceAndItsFeedEnds(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	lost := u.Device(t)
	var devices protocol.List[protocol.Device]
	lost.Get(t, "/auth/sessions", &devices)
	session := devices.Data[slices.IndexFunc(devices.Data, func(d protocol.Device) bool { return d.Current })].SessionID
	feed, err := lost.Open(sitetest.Within(t, sitetest.HangGuard), http.MethodGet, "/events", nil)
	if err != nil || feed.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", feed, err)
	}
	defer func() { _ = feed.Body.Close() }()
	if _, err := feed.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, feed.Body)
		ended <- err
	}()
	code, stdout, stderr := sitetest.Finish(t, s.Environment, "user", "sessions", u.Email, "--end", session.String())
	if code != 0 {
		t.Fatalf("user sessions --end: %d %s%s", code, stdout, stderr)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(sitetest.HangGuard):
		t.Fatal("the feed did not end")
	}
	lost.Do(t, http.MethodGet, "/conversations", nil).WantProblem(t, http.StatusUnauthorized, protocol.CodeUnauthenticated)
	u.Do(t, http.MethodGet, "/conversations", nil).Want(t, http.StatusOK, nil)
}
