package e2e

import (
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// askedTurn asks for an approval.
const askedTurn = "[[script approval=high:irreversible tokens=4]]"

// asked starts a turn that waits for an approval, and returns the approval and the stream.
func asked(t *testing.T, u *sitetest.User) (*protocol.Approval, *sitetest.Stream) {
	t.Helper()
	s := u.Chat(t, sitetest.NewChatBody(askedTurn))
	s.Await(t, "the turn waits", func(e sitetest.Event) bool { return strings.Contains(e.Data, `"state":"requires_action"`) })
	var turn protocol.Turn
	u.Get(t, "/chat/turns/"+s.Turn, &turn)
	if len(turn.PendingApprovals) != 1 {
		t.Fatalf("%d approvals are pending", len(turn.PendingApprovals))
	}
	return &turn.PendingApprovals[0], s
}

// decisionBody is the body of a decision on an approval.
func decisionBody(a *protocol.Approval, decision protocol.Decision) map[string]any {
	return map[string]any{"type": "approval", "turn_id": a.TurnID, "approval_id": a.ApprovalID, "decision": decision, "input_digest": a.InputDigest}
}

// A turn that waits for an approval has no actor. It survives kills, and the decision counts once, however often it is sent.
func TestAnApprovalSurvivesKillsAndCountsOnce(t *testing.T) {
	t.Parallel()
	site := sitetest.NewSite(t)
	p := site.Start()
	u := sitetest.NewUser(t, site.Base)
	a, s := asked(t, u)
	waits := func() bool {
		var turn protocol.Turn
		u.Get(t, "/chat/turns/"+a.TurnID.String(), &turn)
		return turn.State == protocol.TurnRequiresAction && len(turn.PendingApprovals) == 1
	}
	for range 2 {
		p.Kill()
		p = site.Start()
		storetest.Eventually(t, waits)
	}
	var receipts []string
	for range 3 {
		got := u.Do(t, "POST", "/chat/steering", decisionBody(a, protocol.ApproveOnce))
		if got.Status != 202 {
			t.Fatalf("the decision: %d %s", got.Status, got.Body)
		}
		receipts = append(receipts, got.Text(t, 202, "steering_id"))
	}
	if receipts[0] != receipts[1] || receipts[0] != receipts[2] {
		t.Errorf("the receipts are %v", receipts)
	}
	// The first stream ended with the process.
	again, response, err := u.Follow(t.Context(), s.Turn, 0, "")
	if err != nil || again == nil {
		t.Fatalf("following again: %+v, %v", response, err)
	}
	events, end := again.ReadToEnd(t)
	var log strings.Builder
	for _, e := range events {
		log.WriteString(e.Data + "\n")
	}
	if end.Status != protocol.TurnCompleted || strings.Count(log.String(), `"type":"approval.resolved"`) != 1 || strings.Count(log.String(), `"type":"tool.completed"`) != 1 || !strings.Contains(log.String(), `"outcome":"ok"`) {
		t.Errorf("the turn ended as %s: %s", end.Status, log.String())
	}
	if got := u.Do(t, "POST", "/chat/steering", decisionBody(a, protocol.RejectCall)); got.Status != 409 {
		t.Errorf("another decision: %d %s", got.Status, got.Body)
	}
}
