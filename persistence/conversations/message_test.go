package conversations_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// tree is the naive model of a conversation: every branch is the list of all its messages.
type tree struct {
	paths    map[protocol.BranchID][]protocol.MessageID
	bases    map[protocol.BranchID]int // number of messages in the path when its branch was created
	active   protocol.BranchID
	parents  map[protocol.MessageID]protocol.MessageID
	children map[protocol.MessageID][]protocol.MessageID // in order of creation
}

func (m *tree) add(ids ...protocol.MessageID) {
	for _, id := range ids {
		path := m.paths[m.active]
		var parent protocol.MessageID
		if len(path) > 0 {
			parent = path[len(path)-1]
		}
		m.parents[id] = parent
		m.children[parent] = append(m.children[parent], id)
		m.paths[m.active] = append(slices.Clip(path), id)
	}
}

func TestPagesAgreeWithANaiveModelOnEveryBranch(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	checks := 0
	rapid.Check(t, func(r *rapid.T) {
		if checks++; bits.OnesCount(uint(checks)) == 1 { // plans for empty tables read all messages of the account
			database.Admin(t, "analyze messages, branches, branch_segments")
		}
		conversation := storetest.NewConversation(t, db, account, "")
		id := conversation.ConversationID
		model := &tree{
			paths: map[protocol.BranchID][]protocol.MessageID{}, parents: map[protocol.MessageID]protocol.MessageID{},
			children: map[protocol.MessageID][]protocol.MessageID{}, bases: map[protocol.BranchID]int{}, active: conversation.ActiveBranchID,
		}
		grow := func(most int) {
			texts := make([]string, rapid.IntRange(1, most).Draw(r, "messages"))
			for i := range texts {
				texts[i] = fmt.Sprint("text ", i)
			}
			model.add(addMessages(t, db, account, id, texts...)...)
		}
		const firstMost, laterMost = 120, 30 // about 300 messages if every draw is large
		grow(firstMost)
		for range rapid.IntRange(0, 6).Draw(r, "branches") {
			path := model.paths[model.active]
			if rapid.Bool().Draw(r, "switch") {
				model.active = rapid.SampledFrom(sortedBranches(model)).Draw(r, "to")
				c := read(t, db, account, id)
				if _, err := db.Conversations.SetActiveBranch(t.Context(), account, id, model.active, &c.Version); err != nil {
					t.Fatal(err)
				}
				path = model.paths[model.active]
			}
			if len(path) == 0 {
				grow(laterMost)
				continue
			}
			depth := rapid.IntRange(0, len(path)-1).Draw(r, "depth")
			mode := protocol.BranchEdit // a path starts with a message of the user
			if depth%2 == 1 {
				mode = protocol.BranchRegenerate
			}
			branch, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: path[depth], Mode: mode}, "")
			if err != nil {
				t.Fatal(err)
			}
			if !branch.Active {
				t.Error("the new branch is not active")
			}
			model.active = branch.BranchID
			model.paths[branch.BranchID], model.bases[branch.BranchID] = path[:depth:depth], depth
			if rapid.Bool().Draw(r, "grow") {
				grow(laterMost)
			}
		}
		for branch, path := range model.paths {
			comparePages(t, r, db, account, id, model, branch, path)
		}
	})
}

func sortedBranches(m *tree) []protocol.BranchID {
	branches := make([]protocol.BranchID, 0, len(m.paths))
	for branch := range m.paths {
		branches = append(branches, branch)
	}
	slices.SortFunc(branches, func(a, b protocol.BranchID) int { return slices.Compare(a[:], b[:]) })
	return branches
}

func comparePages(t *testing.T, r *rapid.T, db *persistence.Stores, account protocol.AccountID, id protocol.ConversationID, model *tree,
	branch protocol.BranchID, path []protocol.MessageID,
) {
	const mostPages = 8
	limit := max(rapid.IntRange(1, 100).Draw(r, "limit"), len(path)/mostPages)
	for _, newer := range []bool{false, true} {
		query := conversations.MessageQuery{ConversationID: id, BranchID: &branch, Newer: newer, Limit: limit}
		found, err := wholePath(t.Context(), db, account, query)
		if err != nil {
			t.Fatal(err)
		}
		compareMessages(t, model, path, found)
	}
	if len(path) == 0 {
		return
	}
	at := rapid.IntRange(0, len(path)-1).Draw(r, "around")
	page, err := db.Conversations.Messages(t.Context(), account, &conversations.MessageQuery{ConversationID: id, BranchID: &branch, Around: &path[at], Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	if at+1 < page.First || at+1 > page.Last || page.Last-page.First+1 != min(limit, len(path)) ||
		page.Older != (page.First > 1) || page.Newer != (page.Last < len(path)) {
		t.Fatalf("around %d of %d, limit %d: %d to %d, older %v, newer %v", at+1, len(path), limit, page.First, page.Last, page.Older, page.Newer)
	}
	compareMessages(t, model, path[page.First-1:page.Last], page.Messages)
}

func compareMessages(t *testing.T, model *tree, path []protocol.MessageID, found []protocol.Message) {
	t.Helper()
	if len(found) != len(path) {
		t.Fatalf("read %d messages, want %d", len(found), len(path))
	}
	for i, m := range found {
		parent := model.parents[path[i]]
		siblings := model.children[parent]
		if m.MessageID != path[i] || (m.ParentMessageID == nil) != parent.IsZero() || m.ParentMessageID != nil && *m.ParentMessageID != parent ||
			m.SiblingCount != len(siblings) || siblings[m.SiblingIndex] != m.MessageID || len(m.Parts) != 1 {
			t.Fatalf("message %d of %d is %+v", i, len(path), m)
		}
		compareNeighbour(t, model, m.PreviousSibling, siblings[:m.SiblingIndex], -1)
		compareNeighbour(t, model, m.NextSibling, siblings[m.SiblingIndex+1:], 0)
	}
}

// compareNeighbour checks that found is the sibling at an index of side, where -1 is the last one, and that its branch
// is the newest branch that shows the sibling and has messages of its own.
func compareNeighbour(t *testing.T, model *tree, found *protocol.Sibling, side []protocol.MessageID, at int) {
	t.Helper()
	if len(side) == 0 {
		if found != nil {
			t.Fatalf("there is no neighbour, but %+v was returned", found)
		}
		return
	}
	want := protocol.Sibling{MessageID: side[(at+len(side))%len(side)]}
	for _, branch := range sortedBranches(model) {
		if path := model.paths[branch]; len(path) > model.bases[branch] && slices.Contains(path, want.MessageID) {
			want.BranchID = branch
		}
	}
	if found == nil || *found != want {
		t.Fatalf("the neighbour among %v is %+v, want %+v", side, found, want)
	}
}

func TestAroundFindsABranchThatShowsTheMessage(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	c := storetest.NewConversation(t, db, account, "")
	id := c.ConversationID
	first := addMessages(t, db, account, id, "one", "two", "three", "four")
	branch, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: first[2], Mode: protocol.BranchEdit}, "other")
	if err != nil {
		t.Fatal(err)
	}
	second := addMessages(t, db, account, id, "three again")
	around := func(message protocol.MessageID, on *protocol.BranchID) (*conversations.MessagePage, error) {
		return db.Conversations.Messages(t.Context(), account, &conversations.MessageQuery{ConversationID: id, BranchID: on, Around: &message, Limit: 3})
	}
	for _, c := range []struct {
		message protocol.MessageID
		on      *protocol.BranchID
		want    protocol.BranchID
	}{
		{first[0], nil, branch.BranchID},
		{first[3], nil, c.ActiveBranchID},
		{second[0], nil, branch.BranchID},
		{first[1], &c.ActiveBranchID, c.ActiveBranchID},
	} {
		page, err := around(c.message, c.on)
		if err != nil || page.BranchID != c.want {
			t.Errorf("around %v is on %+v, want %v (%v)", c.message, page, c.want, err)
		}
	}
	_, err = around(first[3], &branch.BranchID)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = around(protocol.NewMessageID(), nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	foreign := protocol.NewBranchID()
	_, err = db.Conversations.Messages(t.Context(), account, &conversations.MessageQuery{ConversationID: id, BranchID: &foreign, Limit: 3})
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestAStreamingMessageContainsTheStoredEvents(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	closed, open := protocol.NewPartID(), protocol.NewPartID()
	turn, assistant := liveTurn(t, db, account, id, "go",
		storetest.Started(id),
		&protocol.AnswerStarted{PartID: closed, Format: "markdown"},
		&protocol.AnswerDelta{PartID: closed, Delta: "Hel"},
		&protocol.AnswerDelta{PartID: closed, Offset: 3, Delta: "lo"},
		&protocol.AnswerCompleted{PartID: closed, Text: "Hello"},
		&protocol.CodeStarted{PartID: open, Index: 1, Language: "go"},
		&protocol.CodeDelta{PartID: open, Delta: "package "},
		&protocol.CodeDelta{PartID: open, Offset: 8, Delta: "ma"},
	)
	page, err := db.Conversations.Messages(t.Context(), account, &conversations.MessageQuery{ConversationID: id, Limit: 10})
	if err != nil || len(page.Messages) != 2 {
		t.Fatalf("%+v (%v)", page, err)
	}
	one, err := db.Conversations.GetMessage(t.Context(), account, assistant)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*protocol.Message{&page.Messages[1], one} {
		if m.MessageID != assistant || m.Status != protocol.MessageStreaming || m.CoversSequence != 8 || *m.TurnID != turn || len(m.Parts) != 2 {
			t.Fatalf("%+v", m)
		}
		if p := m.Parts[0]; p.Text != "Hello" || p.Open {
			t.Errorf("the closed part is %+v", p)
		}
		if p := m.Parts[1]; p.Code != "package ma" || !p.Open {
			t.Errorf("the open part is %+v", p)
		}
	}
	if question := page.Messages[0]; question.CoversSequence != 0 || question.Status != protocol.MessageComplete {
		t.Errorf("the question is %+v", question)
	}
	endTurn(t, db, account, turn, "Hello")
	if one, err = db.Conversations.GetMessage(t.Context(), account, assistant); err != nil || one.Status != protocol.MessageComplete || one.CoversSequence != 0 {
		t.Errorf("finished: %+v (%v)", one, err)
	}
	_, err = db.Conversations.GetMessage(t.Context(), pgtest.Account(t, db), assistant)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}
