package conversations_test

import (
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestInvalidBranchRequestsAreRefused(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	c := storetest.NewConversation(t, db, account, "")
	id := c.ConversationID
	messages := addMessages(t, db, account, id, "question", "answer")
	branch := func(message protocol.MessageID, mode string) error {
		_, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: message, Mode: mode}, "")
		return err
	}
	storetest.WantCode(t, branch(messages[1], protocol.BranchEdit), protocol.CodeInvalid)
	storetest.WantCode(t, branch(messages[0], protocol.BranchRegenerate), protocol.CodeInvalid)
	storetest.WantCode(t, branch(protocol.NewMessageID(), protocol.BranchEdit), protocol.CodeNotFound)

	turn, assistant := liveTurn(t, db, account, id, "more")
	storetest.WantCode(t, branch(messages[0], protocol.BranchEdit), protocol.CodeTurnInProgress)
	_, err := db.Conversations.SetActiveBranch(t.Context(), account, id, c.ActiveBranchID, &c.Version)
	storetest.WantCode(t, err, protocol.CodeTurnInProgress)
	_, err = db.Conversations.ForkConversation(t.Context(), account, id, assistant, "", nil)
	storetest.WantCode(t, err, protocol.CodeTurnInProgress)
	if current := err.(*protocol.Error).Current.(map[string]protocol.TurnID); current["turn_id"] != turn {
		t.Errorf("current is %v", current)
	}
	if _, err := db.Conversations.ForkConversation(t.Context(), account, id, messages[1], "", nil); err != nil {
		t.Errorf("a fork at a complete message while a turn is live: %v", err)
	}
}

func TestSwitchingBranchesNeedsAVersionAndMovesIt(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	c := storetest.NewConversation(t, db, account, "")
	id, trunk := c.ConversationID, c.ActiveBranchID
	messages := addMessages(t, db, account, id, "question", "answer")
	branch, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: messages[1], Mode: protocol.BranchRegenerate}, "again")
	if err != nil || branch.Name != "again" || *branch.BaseMessageID != messages[0] || *branch.HeadMessageID != messages[0] {
		t.Fatalf("%+v (%v)", branch, err)
	}
	if c = read(t, db, account, id); c.Version != 2 || c.ActiveBranchID != branch.BranchID || *c.HeadMessageID != messages[0] {
		t.Errorf("after branching %+v", c)
	}
	activity := c.LastActivityAt
	_, err = db.Conversations.SetActiveBranch(t.Context(), account, id, trunk, nil)
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	stale := int64(1)
	_, err = db.Conversations.SetActiveBranch(t.Context(), account, id, trunk, &stale)
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	if c, err = db.Conversations.SetActiveBranch(t.Context(), account, id, trunk, &c.Version); err != nil || c.Version != 3 || *c.HeadMessageID != messages[1] || !c.LastActivityAt.Equal(activity) {
		t.Errorf("switched to %+v (%v)", c, err)
	}
	_, err = db.Conversations.SetActiveBranch(t.Context(), account, id, protocol.NewBranchID(), &c.Version)
	storetest.WantCode(t, err, protocol.CodeNotFound)

	first, next, err := db.Conversations.ListBranches(t.Context(), account, id, protocol.BranchID{}, 1)
	if err != nil || next == nil || len(first) != 1 || first[0].BranchID != trunk || !first[0].Active || first[0].BaseMessageID != nil {
		t.Fatalf("%+v %v (%v)", first, next, err)
	}
	second, next, err := db.Conversations.ListBranches(t.Context(), account, id, *next, 1)
	if err != nil || next != nil || len(second) != 1 || second[0].BranchID != branch.BranchID || second[0].Active {
		t.Errorf("%+v %v (%v)", second, next, err)
	}
}

func TestAForkIsIndependentOfItsOriginal(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	c := storetest.NewConversation(t, db, account, strings.Repeat("T", 199))
	id := c.ConversationID
	messages := addMessages(t, db, account, id, "one", "two", "three", "four")
	if _, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: messages[2], Mode: protocol.BranchEdit}, ""); err != nil {
		t.Fatal(err)
	}
	again := addMessages(t, db, account, id, "three again", "four again", "five")

	fork, err := db.Conversations.ForkConversation(t.Context(), account, id, again[1], "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if fork.Title != strings.Repeat("T", 193)+" (copy)" || fork.MessageCount != 4 || fork.Version != 1 || fork.Unread {
		t.Errorf("%+v", fork)
	}
	found, err := wholePath(t.Context(), db, account, conversations.MessageQuery{ConversationID: fork.ConversationID, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i, m := range found {
		texts = append(texts, m.Parts[0].Text)
		if slices.Contains(messages, m.MessageID) || m.ConversationID != fork.ConversationID || m.SiblingCount != 1 ||
			i > 0 && (m.ParentMessageID == nil || *m.ParentMessageID != found[i-1].MessageID) {
			t.Errorf("copy %+v", m)
		}
	}
	if want := []string{"one", "two", "three again", "four again"}; !slices.Equal(texts, want) || *fork.HeadMessageID != found[3].MessageID {
		t.Errorf("the copy is %q, want %q", texts, want)
	}
	named, err := db.Conversations.ForkConversation(t.Context(), account, id, messages[0], "Mine", nil)
	if err != nil || named.Title != "Mine" || named.TitleSource != "user" || named.MessageCount != 1 {
		t.Errorf("%+v (%v)", named, err)
	}

	if _, err := db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: id}); err != nil {
		t.Fatal(err)
	}
	purge(t, db, account, id, 1000)
	if found, err = wholePath(t.Context(), db, account, conversations.MessageQuery{ConversationID: fork.ConversationID, Limit: 3}); err != nil || len(found) != 4 {
		t.Errorf("after the original was purged: %d messages (%v)", len(found), err)
	}
	if messages := addMessages(t, db, account, fork.ConversationID, "five of my own"); len(messages) != 1 {
		t.Error("no message can be added to the copy")
	}
}
