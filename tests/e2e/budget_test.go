package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// untilTomorrow returns the number of seconds until the next UTC day, rounded up.
func untilTomorrow(now time.Time) int {
	now = now.UTC()
	return int(now.Truncate(24*time.Hour).Add(24*time.Hour).Sub(now)/time.Second) + 1
}

func TestATurnOverTheBudgetOfTokensEndsAndTheNextStartsAreRefusedUntilTheDayEnds(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t, "TURNSTONE_TOKENS_PER_DAY=1000")
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	_, end := u.Chat(t, sitetest.NewChatBody("[[script tokens=5000 ttft=0 interval=0ms]]").In(conversation)).ReadToEnd(t)
	if end.Status != protocol.TurnIncomplete || end.StopReason != protocol.StopBudgetReached || end.Usage.OutputTokens == 0 {
		t.Fatalf("the turn ended %+v", end)
	}
	if messages := u.Messages(t, conversation); len(messages) != 2 || messages[1].Status != protocol.MessageIncomplete {
		t.Errorf("messages: %+v", messages)
	}
	u.Do(t, http.MethodPut, "/memory-sources/files/consent", map[string]bool{"granted": true}).Want(t, http.StatusOK, nil)
	for name, start := range map[string]struct {
		path string
		body any
	}{
		"in the conversation": {"/chat", sitetest.NewChatBody("again").In(conversation)},
		"in a new one":        {"/chat", sitetest.NewChatBody("again")},
		"a follow-up":         {"/conversations/" + conversation + "/follow-ups", map[string]string{"content": "again"}},
		"a research task":     {"/conversations/" + conversation + "/research-tasks", map[string]any{"question": "again", "sources": []string{"files"}}},
	} {
		before := time.Now()
		refused := u.Do(t, http.MethodPost, start.path, start.body, "Idempotency-Key", "over-the-budget")
		problem := refused.WantProblem(t, http.StatusTooManyRequests, protocol.CodeBudgetReached)
		wait, err := strconv.Atoi(refused.Header.Get("Retry-After"))
		if err != nil || wait > untilTomorrow(before) || wait < untilTomorrow(time.Now()) {
			t.Errorf("%s: Retry-After %q, the day ends in %d s", name, refused.Header.Get("Retry-After"), untilTomorrow(before))
		}
		if !strings.Contains(problem.Detail, "resets at "+before.UTC().Truncate(24*time.Hour).Add(24*time.Hour).Format(time.RFC3339)) {
			t.Errorf("%s: %s", name, problem.Detail)
		}
	}
	if messages := u.Messages(t, conversation); len(messages) != 2 {
		t.Errorf("a refused start stored %d messages", len(messages)-2)
	}
	if _, end := sitetest.NewUser(t, s.Base).Chat(t, sitetest.NewChatBody(shortTurn)).ReadToEnd(t); end.Status != protocol.TurnCompleted {
		t.Errorf("the turn of another account ended %s", end.Status)
	}
}

// TestATitleThatTheBudgetRefusesDoesNoHarm runs a turn that leaves less of the budget than a title needs.
func TestATitleThatTheBudgetRefusesDoesNoHarm(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t, "TURNSTONE_TOKENS_PER_DAY=400")
	p := s.Start()
	u := sitetest.NewUser(t, s.Base)
	live := u.Chat(t, sitetest.NewChatBody("[[script tokens=300 ttft=0 interval=0ms]]"))
	_, end := live.ReadToEnd(t)
	if end.Status != protocol.TurnCompleted {
		t.Fatalf("the turn ended %+v", end)
	}
	p.AwaitLog("no title was generated")
	var turn protocol.Turn
	u.Get(t, "/chat/turns/"+live.Turn, &turn)
	conversation := turn.ConversationID.String()
	if page := u.Page(t, conversation); page.Title != sitetest.Canary+" [[script tokens=300 ttft=0 interval=0ms]]" || page.TitleSource != "auto" || page.LiveTurn != nil || page.Version != 1 {
		t.Errorf("the conversation: %+v", page.Conversation)
	}
	if messages := u.Messages(t, conversation); len(messages) != 2 || messages[1].Status != protocol.MessageComplete {
		t.Errorf("messages: %+v", messages)
	}
	var usage protocol.List[protocol.UsageRecord]
	u.Get(t, "/conversations/"+conversation+"/usage", &usage)
	if len(usage.Data) != 1 || usage.Data[0].TurnID == nil || usage.Data[0].TurnID.String() != live.Turn {
		t.Errorf("usage: %+v", usage.Data)
	}
	u.Do(t, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": "By hand"}).Want(t, http.StatusOK, nil)
}
