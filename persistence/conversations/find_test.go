package conversations_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// findAll returns the positions of all messages of a branch in which a text may occur, and how many pages they have.
func findAll(ctx context.Context, t *testing.T, db *persistence.Stores, account protocol.AccountID, query conversations.FindQuery) (found []int, pages int) {
	t.Helper()
	query.Limit = 4
	for {
		page, err := db.Conversations.FindText(ctx, account, &query)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for i := range page.Messages {
			found = append(found, page.Messages[i].Position)
		}
		if query.After = page.Next; page.Next == 0 {
			return found, pages
		}
	}
}

func TestATextIsFoundInAllMessagesOfABranchAsItIsDisplayed(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	messages := addMessages(t, db, account, id, "A haystack", "The first nee**dle** is in `code`.", "Über den NÉEDLE", "Nothing",
		"[a needle](https://example.com) &amp; more", "東京タワー → 塔")
	for text, want := range map[string][]int{
		"needle": {2, 3, 5}, "Uber den needle": {3}, "a needle & more": {5}, "first needle": {2}, "eedl": {2, 3, 5}, "京タ": {6}, "→": {6}, "&": {5}, "missing": nil,
	} {
		if found, _ := findAll(t.Context(), t, db, account, conversations.FindQuery{ConversationID: id, Text: text}); !slices.Equal(found, want) {
			t.Errorf("%q is found at %v, want %v", text, found, want)
		}
	}
	trunk := read(t, db, account, id).ActiveBranchID
	if _, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: messages[2], Mode: protocol.BranchEdit}, ""); err != nil {
		t.Fatal(err)
	}
	addMessages(t, db, account, id, "another needle")
	for branch, want := range map[*protocol.BranchID][]int{nil: {2, 3}, &trunk: {2, 3, 5}} {
		if found, _ := findAll(t.Context(), t, db, account, conversations.FindQuery{ConversationID: id, BranchID: branch, Text: "needle"}); !slices.Equal(found, want) {
			t.Errorf("on the branch %v it is found at %v, want %v", branch, found, want)
		}
	}
	_, err := db.Conversations.FindText(t.Context(), pgtest.Account(t, db), &conversations.FindQuery{ConversationID: id, Text: "needle"})
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestAPageOfFoundMessagesIsBounded(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	var texts []string
	var want []int
	for i := range 30 {
		texts = append(texts, fmt.Sprint("needle ", i, strings.Repeat(" word", 20_000)))
		want = append(want, i+1)
	}
	addMessages(t, db, account, id, texts...)
	found, pages := findAll(t.Context(), t, db, account, conversations.FindQuery{ConversationID: id, Text: "needle"})
	if !slices.Equal(found, want) || pages < 8 {
		t.Errorf("found %v on %d pages", found, pages)
	}
}
