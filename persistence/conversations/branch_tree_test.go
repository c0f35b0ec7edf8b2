package conversations_test

import (
	"testing"

	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// branches returns all branches of a conversation by their names.
func branches(t *testing.T, db *persistence.Stores, account protocol.AccountID, id protocol.ConversationID) map[string]protocol.Branch {
	t.Helper()
	byName := map[string]protocol.Branch{}
	for after := (protocol.BranchID{}); ; {
		page, next, err := db.Conversations.ListBranches(t.Context(), account, id, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, branch := range page {
			byName[branch.Name] = branch
		}
		if next == nil {
			return byName
		}
		after = *next
	}
}

func TestTheListOfBranchesIsATree(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	branch := func(name, mode string, at protocol.MessageID) {
		t.Helper()
		if _, err := db.Conversations.CreateBranch(t.Context(), account, id, &protocol.BranchRequest{MessageID: at, Mode: mode}, name); err != nil {
			t.Fatal(err)
		}
	}
	trunk := addMessages(t, db, account, id, "one", "two", "three", "four")
	branch("edited", protocol.BranchEdit, trunk[2])
	edited := addMessages(t, db, account, id, "three b", "four b", "five b", "six b")
	branch("nested", protocol.BranchRegenerate, edited[3])
	branch("again", protocol.BranchEdit, edited[0]) // starts at the same message as "edited"
	branch("from the start", protocol.BranchEdit, trunk[0])

	list := branches(t, db, account, id)
	parent := func(b protocol.Branch) string {
		for name, other := range list {
			if b.ParentBranchID != nil && other.BranchID == *b.ParentBranchID {
				return name
			}
		}
		return "none"
	}
	for name, want := range map[string]struct {
		parent     string
		base, head int
		preview    string
	}{"": {"none", 0, 4, "one"}, "edited": {"", 2, 6, "three b"}, "nested": {"edited", 5, 5, ""}, "again": {"", 2, 2, ""}, "from the start": {"none", 0, 0, ""}} {
		b, exists := list[name]
		if !exists || b.Preview != want.preview || parent(b) != want.parent || b.BaseDepth != want.base || b.HeadDepth != want.head || (b.BaseMessageID == nil) != (want.base == 0) {
			t.Errorf("%q: %+v with the parent %q, want %+v", name, b, parent(b), want)
		}
	}
	// No branch has changed or removed a message of another one.
	for name, messages := range map[string]int{"": 4, "edited": 6, "nested": 5, "again": 2} {
		b := list[name].BranchID
		found, err := wholePath(t.Context(), db, account, conversations.MessageQuery{ConversationID: id, BranchID: &b, Limit: 3})
		if err != nil || len(found) != messages {
			t.Errorf("%q shows %d messages, want %d (%v)", name, len(found), messages, err)
		}
	}
}

func TestABranchIsRenamedUnderItsOwnVersion(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	c := storetest.NewConversation(t, db, account, "")
	rename := func(account protocol.AccountID, branch protocol.BranchID, name string, version *int64) (*protocol.Branch, error) {
		return db.Conversations.RenameBranch(t.Context(), account, c.ConversationID, branch, name, version)
	}
	first := int64(1)
	named, err := rename(account, c.ActiveBranchID, "Plan A", &first)
	if err != nil || named.Name != "Plan A" || named.Version != 2 {
		t.Fatalf("%+v, %v", named, err)
	}
	if same, err := rename(account, c.ActiveBranchID, "Plan A", nil); err != nil || same.Version != 2 {
		t.Errorf("the same name again: %+v, %v", same, err)
	}
	_, err = rename(account, c.ActiveBranchID, "Plan B", &first)
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	if last, err := rename(account, c.ActiveBranchID, "", nil); err != nil || last.Name != "" || last.Version != 3 {
		t.Errorf("without a version: %+v, %v", last, err)
	}
	if now := read(t, db, account, c.ConversationID); now.Version != c.Version {
		t.Errorf("the name of a branch changed the version of its conversation to %d", now.Version)
	}
	other := storetest.NewConversation(t, db, account, "")
	for what, attempt := range map[string]func() (*protocol.Branch, error){
		"of another conversation": func() (*protocol.Branch, error) { return rename(account, other.ActiveBranchID, "x", nil) },
		"of another account":      func() (*protocol.Branch, error) { return rename(pgtest.Account(t, db), c.ActiveBranchID, "x", nil) },
		"that does not exist":     func() (*protocol.Branch, error) { return rename(account, protocol.NewBranchID(), "x", nil) },
	} {
		if _, err := attempt(); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("a branch %s: %v", what, err)
		}
	}
}

func TestAForkIsPurgedWithoutItsOriginal(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "Original").ConversationID
	messages := addMessages(t, db, account, id, "one", "two", "three", "four")
	fork, err := db.Conversations.ForkConversation(t.Context(), account, id, messages[2], "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: fork.ConversationID}); err != nil {
		t.Fatal(err)
	}
	purge(t, db, account, fork.ConversationID, 1000)
	found, err := wholePath(t.Context(), db, account, conversations.MessageQuery{ConversationID: id, Limit: 3})
	if err != nil || len(found) != len(messages) || found[3].Parts[0].Text != "four" {
		t.Errorf("the original has %d messages, %v", len(found), err)
	}
}

// longPathSQL creates a conversation with one path of $3 messages, whose identifiers follow from their depths.
const longPathSQL = `
with conversation as (
	insert into conversations (account_id, conversation_id, active_branch_id, message_count) values ($1, $2, $2, $3)),
branch as (
	insert into branches (account_id, branch_id, conversation_id, head_message_id, head_depth) values ($1, $2, $2, md5($2::text || $3::text)::uuid, $3)),
segment as (insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth) values ($1, $2, $2, 1, 2147483647))
insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts)
select $1, md5($2::text || n)::uuid, $2, $2, n, case when n > 1 then md5($2::text || (n - 1))::uuid end,
	case when n % 2 = 1 then 'user' else 'assistant' end, 'complete',
	json_build_array(json_build_object('type', 'text', 'part_id', 'part_01h2xcejqtf2nbrexx3vqjhp41', 'text', repeat('word ', 60)))
from generate_series(1, $3::int) n`

func TestTheLargestForkIsComplete(t *testing.T) {
	const most = 20_000
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	id := protocol.NewConversationID()
	database.Admin(t, longPathSQL, account, id, most+1)
	at := func(depth int) (message protocol.MessageID) {
		page, err := db.Conversations.Messages(t.Context(), account, &conversations.MessageQuery{ConversationID: id, Limit: 1, After: depth - 1, Newer: true})
		if err != nil || len(page.Messages) != 1 {
			t.Fatal(err)
		}
		return page.Messages[0].MessageID
	}
	fork, err := db.Conversations.ForkConversation(t.Context(), account, id, at(most), "", nil)
	if err != nil || fork.MessageCount != most {
		t.Fatalf("a fork of %d messages: %+v, %v", most, fork, err)
	}
	_, err = db.Conversations.ForkConversation(t.Context(), account, id, at(most+1), "", nil)
	storetest.WantCode(t, err, protocol.CodeInvalid)
}
