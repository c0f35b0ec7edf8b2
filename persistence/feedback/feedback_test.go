package feedback_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"turnstone/persistence/conversations"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

var up = &protocol.Feedback{Rating: protocol.RatingUp, Reasons: []protocol.FeedbackReason{protocol.ReasonClear}, Comment: "Thanks"}

// fixture is a conversation with feedback.
type fixture struct {
	*storetest.World
	id protocol.ConversationID
}

// answer runs a turn to an end of this status and returns its answer.
func (f *fixture) answer(status protocol.MessageStatus) protocol.MessageID {
	f.Helper()
	conversation := &f.id
	if f.id.IsZero() {
		conversation = nil
	}
	turn := f.Start(f.Request(conversation, "hello"))
	f.id = turn.Spec.ConversationID
	turn.End(func(finish *turnlog.Finish) { finish.Status = status })
	return turn.Spec.AssistantMessageID
}

// want sets feedback and checks that it applies to the response latest.
func (f *fixture) want(latest protocol.MessageID, feedback *protocol.Feedback) {
	f.Helper()
	rated, err := f.DB.Feedback.Set(f.Context(), f.Account, f.id, nil, feedback)
	f.Must(err)
	message, err := f.DB.Conversations.GetMessage(f.Context(), f.Account, latest)
	f.Must(err)
	if *rated.MessageID != latest || !reflect.DeepEqual(rated.Feedback, feedback) || !reflect.DeepEqual(message.Feedback, feedback) {
		f.Fatalf("%+v; the message has %+v", rated, message.Feedback)
	}
}

// refused checks that feedback on a message is refused, and that the conflict names the latest response.
func (f *fixture) refused(message *protocol.MessageID, latest *protocol.MessageID, feedback *protocol.Feedback) {
	f.Helper()
	_, err := f.DB.Feedback.Set(f.Context(), f.Account, f.id, message, feedback)
	storetest.WantCode(f, err, protocol.CodeConflict)
	var conflict *protocol.Error
	if errors.As(err, &conflict); !reflect.DeepEqual(conflict.Current.(*protocol.RatedResponse).MessageID, latest) {
		f.Errorf("current is %+v, want %v", conflict.Current, latest)
	}
}

func TestFeedbackAppliesToTheLatestEligibleResponse(t *testing.T) {
	f := &fixture{World: storetest.NewWorld(t)}
	failed := f.answer(protocol.MessageFailed)
	f.refused(nil, nil, up)
	f.refused(&failed, nil, up)
	f.refused(nil, nil, nil)
	complete := f.answer(protocol.MessageComplete)
	f.want(complete, up)
	f.answer(protocol.MessageFailed)
	cancelled := f.answer(protocol.MessageCancelled)
	f.want(complete, nil)
	f.want(complete, nil)
	f.refused(&cancelled, &complete, up)
	incomplete := f.answer(protocol.MessageIncomplete)
	f.want(incomplete, &protocol.Feedback{Rating: protocol.RatingDown, Reasons: []protocol.FeedbackReason{}})
	f.refused(&complete, &incomplete, up)
	missing := protocol.NewMessageID()
	f.refused(&missing, &incomplete, up)

	live := f.Start(f.Request(&f.id, "one more"))
	f.want(incomplete, up)
	f.refused(&live.Spec.AssistantMessageID, &incomplete, up)
	live.End(nil)
	f.want(live.Spec.AssistantMessageID, up)
}

func TestFeedbackFollowsTheActiveBranch(t *testing.T) {
	f := &fixture{World: storetest.NewWorld(t)}
	first, second := f.answer(protocol.MessageComplete), f.answer(protocol.MessageComplete)
	f.want(second, up)
	branch, err := f.DB.Conversations.CreateBranch(t.Context(), f.Account, f.id, &protocol.BranchRequest{MessageID: second, Mode: protocol.BranchRegenerate}, "")
	f.Must(err)
	f.want(first, up)
	f.refused(&second, &first, up)
	regenerated := f.answer(protocol.MessageComplete) // on the new branch, which shows first
	f.want(regenerated, up)
	page, err := f.DB.Conversations.Conversation(t.Context(), f.Account, f.id)
	f.Must(err)
	if page.ActiveBranchID != branch.BranchID {
		t.Fatal("the branch is not active")
	}
}

func TestFeedbackStaysWithItsAccountAndItsMessage(t *testing.T) {
	f := &fixture{World: storetest.NewWorld(t)}
	answer := f.answer(protocol.MessageComplete)
	_, err := f.DB.Feedback.Set(t.Context(), f.OtherAccount(), f.id, &answer, up)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	f.want(answer, up)
	fork, err := f.DB.Conversations.ForkConversation(t.Context(), f.Account, f.id, answer, "", nil)
	f.Must(err)
	if n := f.Count(`select count(*) from messages where feedback is not null`); n != 1 {
		t.Errorf("%d messages have feedback after a fork", n)
	}
	original := f.id
	f.id = fork.ConversationID
	f.want(*fork.HeadMessageID, up)
	f.id = original
	_, err = f.DB.Conversations.DeleteConversation(t.Context(), f.Account, &conversations.Deletion{ConversationID: original})
	f.Must(err)
	_, err = f.DB.Feedback.Set(t.Context(), f.Account, original, nil, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	for done := false; !done; {
		done, err = f.DB.Conversations.PurgeConversation(t.Context(), f.Account, original, 100)
		f.Must(err)
	}
	if n := f.Count(`select count(*) from messages where feedback is not null`); n != 1 {
		t.Errorf("%d messages have feedback after a purge", n)
	}
}

func TestTheTableAcceptsTheFeedbackOfTheProtocolOnly(t *testing.T) {
	f := &fixture{World: storetest.NewWorld(t)}
	f.answer(protocol.MessageComplete)
	conn := f.AdminConn()
	store := func(role, feedback string) error {
		_, err := conn.Exec(t.Context(), `update messages set feedback = $1 where role = $2`, feedback, role)
		return err
	}
	for rating, reasons := range protocol.ReasonsFor {
		for _, reason := range reasons {
			f.Must(store("assistant", `{"rating": "`+string(rating)+`", "reasons": ["`+string(reason)+`"], "comment": "`+strings.Repeat("é", protocol.MaxFeedbackComment)+`"}`))
		}
	}
	for _, wrong := range []string{
		`null`, `{}`, `{"rating": "sideways", "reasons": [], "comment": ""}`, `{"rating": "up", "reasons": ["lucky"], "comment": ""}`,
		`{"rating": "up", "reasons": "clear", "comment": ""}`, `{"rating": "up", "reasons": []}`, `{"rating": "up", "comment": ""}`,
		`{"rating": "up", "reasons": [], "comment": "` + strings.Repeat("x", protocol.MaxFeedbackComment+1) + `"}`,
	} {
		if store("assistant", wrong) == nil {
			t.Errorf("the table accepts %s", wrong)
		}
	}
	if store("user", `{"rating": "up", "reasons": [], "comment": ""}`) == nil {
		t.Error("the table accepts feedback on a message of the user")
	}
}
