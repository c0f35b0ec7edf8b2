package conversations_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

const appendMessageSQL = `
	with place as (
		select b.branch_id, b.head_message_id, b.head_depth
		from conversations c join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
		where c.account_id = @account and c.conversation_id = @conversation
	), message as (
		insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, turn_id, sibling_index)
		select @account, @message, @conversation, branch_id, head_depth + 1, head_message_id, @role, @status, @parts, @turn,
			(select count(*) from messages where conversation_id = @conversation and parent_message_id is not distinct from head_message_id)
		from place
	), head as (
		update branches b set head_message_id = @message, head_depth = b.head_depth + 1
		from place p where b.account_id = @account and b.branch_id = p.branch_id
	)
	update conversations set message_count = message_count + 1, last_activity_at = now()
	where account_id = @account and conversation_id = @conversation`

// addMessages appends messages to the active branch and returns their identifiers. The roles of user and assistant
// alternate, starting with the one that follows the head.
func addMessages(t testing.TB, db *persistence.Stores, account protocol.AccountID, conversation protocol.ConversationID, texts ...string) []protocol.MessageID {
	t.Helper()
	page, err := db.Conversations.Messages(t.Context(), account, &conversations.MessageQuery{ConversationID: conversation, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	role := protocol.RoleAssistant
	if len(page.Messages) == 0 || page.Messages[0].Role == protocol.RoleAssistant {
		role = protocol.RoleUser
	}
	var ids []protocol.MessageID
	batch := &pgx.Batch{}
	for _, text := range texts {
		id := protocol.NewMessageID()
		ids = append(ids, id)
		batch.Queue(appendMessageSQL, pgx.NamedArgs{
			"account": account, "conversation": conversation, "message": id, "role": role, "status": protocol.MessageComplete,
			"parts": []protocol.Part{{Type: protocol.PartText, PartID: protocol.NewPartID(), Text: text}}, "turn": nil,
		})
		if role == protocol.RoleUser {
			role = protocol.RoleAssistant
		} else {
			role = protocol.RoleUser
		}
	}
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
	return ids
}

// liveTurn stores a running turn in the conversation, with a log of the given payloads, and returns the turn and its
// assistant message.
func liveTurn(t testing.TB, db *persistence.Stores, account protocol.AccountID, conversation protocol.ConversationID, question string, payloads ...protocol.Payload) (turn protocol.TurnID, assistant protocol.MessageID) {
	t.Helper()
	user := addMessages(t, db, account, conversation, question)[0]
	turn, assistant = protocol.NewTurnID(), protocol.NewMessageID()
	batch := &pgx.Batch{}
	args := pgx.NamedArgs{
		"account": account, "conversation": conversation, "turn": turn, "user": user, "message": assistant,
		"role": protocol.RoleAssistant, "status": protocol.MessageStreaming, "parts": []protocol.Part{}, "next": len(payloads) + 1,
		"owner": protocol.NewNodeID(),
	}
	batch.Queue(appendMessageSQL, args)
	batch.Queue(`insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, owner, next_sequence)
		select @account, @turn, @conversation, active_branch_id, @user, @message, '{}', 'running', true, @owner, @next
		from conversations where account_id = @account and conversation_id = @conversation`, args)
	batch.Queue(`update conversations set live_turn_id = @turn where account_id = @account and conversation_id = @conversation`, args)
	for i, payload := range payloads { // one append per event, so that the order of rows matters
		frame, err := protocol.AppendEvent(nil, turn, int64(i+1), time.Now(), payload)
		if err != nil {
			t.Fatal(err)
		}
		batch.Queue(`insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames) values ($1, $2, $3, $3, 1, $4)`,
			account, turn, i+1, append(frame, '\n'))
	}
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
	return turn, assistant
}

// endTurn updates the rows of a live turn and its message as if it had completed. It stores no event.
func endTurn(t testing.TB, db *persistence.Stores, account protocol.AccountID, turn protocol.TurnID, text string) {
	t.Helper()
	batch := &pgx.Batch{}
	batch.Queue(`update turns set state = 'completed', accepting = false, finished_at = now() where account_id = $1 and turn_id = $2`, account, turn)
	batch.Queue(`update messages set status = 'complete', parts = $3
		where account_id = $1 and message_id = (select assistant_message_id from turns where account_id = $1 and turn_id = $2)`,
		account, turn, []protocol.Part{{Type: protocol.PartText, PartID: protocol.NewPartID(), Text: text}})
	batch.Queue(`update conversations set live_turn_id = null where account_id = $1 and live_turn_id = $2`, account, turn)
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ConversationID) *protocol.Conversation {
	t.Helper()
	c, err := db.Conversations.Conversation(t.Context(), account, id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPutCreatesRepeatsAndReplacesUnderTheVersionRule(t *testing.T) {
	db := pgtest.New(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	id, coding := protocol.NewConversationID(), protocol.ProfileCoding
	first := &conversations.ConversationWrite{Title: "First", Metadata: map[string]string{"a": "b"}}
	put := func(account protocol.AccountID, write *conversations.ConversationWrite, version *int64) (*protocol.Conversation, bool, error) {
		return db.Conversations.PutConversation(t.Context(), account, id, write, version)
	}
	one := int64(1)

	if _, _, err := put(account, first, &one); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Fatalf("a version of a conversation that does not exist: %v", err)
	}
	c, created, err := put(account, first, nil)
	if err != nil || !created || c.Version != 1 || c.Title != "First" || c.TitleSource != "user" || c.Metadata["a"] != "b" {
		t.Fatalf("created %v %+v (%v)", created, c, err)
	}
	if c, created, err = put(account, first, nil); err != nil || created || c.Version != 1 {
		t.Fatalf("a repeat: %v %+v (%v)", created, c, err)
	}
	second := &conversations.ConversationWrite{Title: "Second", Profile: &coding}
	_, _, err = put(account, second, nil)
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	if current := err.(*protocol.Error).Current.(*protocol.Conversation); current.Version != 1 || current.Title != "First" {
		t.Errorf("current is %+v", current)
	}
	if c, created, err = put(account, second, &one); err != nil || created || c.Version != 2 || c.Title != "Second" || *c.Profile != coding || len(c.Metadata) != 0 {
		t.Fatalf("replaced %v %+v (%v)", created, c, err)
	}
	_, _, err = put(account, first, &one)
	storetest.WantCode(t, err, protocol.CodeStaleVersion)

	if _, created, err = put(other, first, nil); err != nil || !created {
		t.Fatalf("the same identifier of another account: %v (%v)", created, err)
	}
	if c = read(t, db, account, id); c.Title != "Second" {
		t.Errorf("another account's write changed %+v", c)
	}
	if _, err := db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: id}); err != nil {
		t.Fatal(err)
	}
	_, _, err = put(account, first, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	read(t, db, other, id)
}

func TestPutChangesWhetherAConversationIsTemporaryOnlyWhileItIsUnused(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	yes, no := true, false
	for _, first := range []*bool{nil, &no, &yes} {
		for _, title := range []string{"", "Used"} {
			id := protocol.NewConversationID()
			want := first == &yes
			c, created, err := db.Conversations.PutConversation(t.Context(), account, id, &conversations.ConversationWrite{Title: title, Temporary: first}, nil)
			if err != nil || !created || c.Temporary != want || (c.ExpiresAt != nil) != want {
				t.Fatalf("created %v %+v (%v), want temporary %v", created, c, err, want)
			}
			other, version := !want, int64(2)
			_, _, err = db.Conversations.PutConversation(t.Context(), account, id, &conversations.ConversationWrite{Title: title, Temporary: &other}, &c.Version)
			if title == "" {
				want = other
			} else {
				version = 1
			}
			if code := protocol.CodeOf(err); (err == nil) != (title == "") || err != nil && code != protocol.CodeConflict {
				t.Errorf("with the title %q: %v", title, err)
			}
			if c := read(t, db, account, id); c.Temporary != want || c.Version != version || (c.ExpiresAt != nil) != want {
				t.Errorf("with the title %q: %+v", title, c)
			}
		}
	}
}

func TestSimultaneousPutsCreateOnce(t *testing.T) {
	db := pgtest.New(t)
	account, id := pgtest.Account(t, db), protocol.NewConversationID()
	const writers = 8
	made := make(chan bool, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			_, created, err := db.Conversations.PutConversation(t.Context(), account, id, &conversations.ConversationWrite{Title: "Same"}, nil)
			if err != nil {
				t.Error(err)
			}
			made <- created
		})
	}
	group.Wait()
	close(made)
	count := 0
	for created := range made {
		if created {
			count++
		}
	}
	if count != 1 {
		t.Errorf("created %d times", count)
	}
}

func TestAProvisionalTitleIsTheBeginningOfTheMessage(t *testing.T) {
	for message, want := range map[string]string{
		"  What is\n\n the plan? ":  "What is the plan?",
		"":                          "",
		"```go\nx := 1\n```":        "",
		"Fix this: ```go\nx\n```":   "Fix this:",
		strings.Repeat("word ", 30): strings.TrimSpace(strings.Repeat("word ", 12)) + "…",
		strings.Repeat("潮", 200):    strings.Repeat("潮", 59) + "…",
		strings.Repeat("é", 60):     strings.Repeat("é", 60),
	} {
		if got := conversations.ProvisionalTitle(message); got != want {
			t.Errorf("%.20q: %q, want %q", message, got, want)
		}
	}
}

func TestAnAutomaticTitleNeverReplacesTheUsers(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	c := storetest.NewConversation(t, db, account, "")
	addMessages(t, db, account, c.ConversationID, "How tall is it?", "About 300 metres.", "And the other?")
	question, reply, err := db.Conversations.TitleInput(t.Context(), account, c.ConversationID)
	if err != nil || question != "How tall is it?" || reply != "About 300 metres." {
		t.Errorf("title input %q %q (%v)", question, reply, err)
	}
	set, err := db.Conversations.SetAutoTitle(t.Context(), account, c.ConversationID, "  "+strings.Repeat("é", 300))
	if err != nil || !set {
		t.Fatalf("set %v (%v)", set, err)
	}
	if c = read(t, db, account, c.ConversationID); c.Title != strings.Repeat("é", 200) || c.TitleSource != "auto" || c.Version != 1 {
		t.Errorf("%+v", c)
	}
	// A write without a title leaves the automatic title.
	if _, _, err := db.Conversations.PutConversation(t.Context(), account, c.ConversationID, &conversations.ConversationWrite{}, nil); err != nil {
		t.Errorf("a repeat over an automatic title: %v", err)
	}
	stale := int64(0)
	_, err = db.Conversations.SetTitle(t.Context(), account, c.ConversationID, "Mine", &stale)
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	for range 2 { // the repeat changes nothing
		if c, err = db.Conversations.SetTitle(t.Context(), account, c.ConversationID, "Mine", nil); err != nil || c.Version != 2 || c.TitleSource != "user" {
			t.Fatalf("%+v (%v)", c, err)
		}
	}
	if set, err = db.Conversations.SetAutoTitle(t.Context(), account, c.ConversationID, "Theirs"); err != nil || set {
		t.Errorf("set %v (%v)", set, err)
	}
	if c = read(t, db, account, c.ConversationID); c.Title != "Mine" {
		t.Errorf("the title is %q", c.Title)
	}
}

func TestOfSimultaneousDraftsWithOneVersionOneWins(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	const writers = 8
	won := make(chan string, writers)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			version, content := int64(0), fmt.Sprint("draft ", i)
			_, err := db.Drafts.PutDraft(t.Context(), account, id, content, nil, &version)
			if err == nil {
				won <- content
				return
			}
			if protocol.CodeOf(err) != protocol.CodeStaleVersion || err.(*protocol.Error).Current.(*protocol.Draft).Version != 1 {
				t.Errorf("a losing writer got %v", err)
			}
		})
	}
	group.Wait()
	close(won)
	winners := slices.Collect(func(yield func(string) bool) {
		for content := range won {
			yield(content)
		}
	})
	page, err := db.Conversations.ConversationPage(t.Context(), account, id)
	if err != nil || len(winners) != 1 || page.Draft.Content != winners[0] || page.Draft.Version != 1 || page.Draft.UpdatedAt == nil {
		t.Errorf("winners %q, the draft is %+v (%v)", winners, page.Draft, err)
	}
	file := protocol.FileID(protocol.NewMessageID())
	_, err = db.Drafts.PutDraft(t.Context(), account, id, "", []protocol.FileID{file}, nil)
	storetest.WantCode(t, err, protocol.CodeConflict) // there is no such file
	_, err = db.Exec(t.Context(), account, `
		insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
		values ($1, $2, 'a.txt', 'text/plain', 'text', 1, sha256('x'), 'o', 'e', now(), now(), now())`, account, file)
	if err != nil {
		t.Fatal(err)
	}
	draft, err := db.Drafts.PutDraft(t.Context(), account, id, "", []protocol.FileID{file}, nil)
	if err != nil || draft.Version != 2 || draft.Content != "" || !slices.Equal(draft.Attachments, []protocol.FileID{file}) {
		t.Errorf("%+v (%v)", draft, err)
	}
	if c := read(t, db, account, id); c.Version != 1 || !c.HasDraft {
		t.Errorf("drafts changed the version to %d, or the conversation has none: %t", c.Version, c.HasDraft)
	}
	if page, err := db.Conversations.ConversationPage(t.Context(), account, id); err != nil || !page.HasDraft {
		t.Errorf("the page of a conversation with a draft is %+v, %v", page, err)
	}
	if _, err := db.Drafts.PutDraft(t.Context(), account, id, "", nil, nil); err != nil || read(t, db, account, id).HasDraft {
		t.Errorf("an empty draft counts as one, or %v", err)
	}
	_, err = db.Drafts.PutDraft(t.Context(), pgtest.Account(t, db), id, "x", nil, nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestAConversationIsUnreadIfAnAnswerEndedAfterTheReadMark(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	unread := func(want bool, when string) {
		t.Helper()
		if got := read(t, db, account, id).Unread; got != want {
			t.Errorf("%s: unread %v", when, got)
		}
	}
	mark := func(message protocol.MessageID) {
		t.Helper()
		if _, err := db.Conversations.MarkRead(t.Context(), account, id, message); err != nil {
			t.Fatal(err)
		}
	}
	unread(false, "empty")
	first := addMessages(t, db, account, id, "question", "answer")
	unread(true, "answered")
	mark(first[0])
	unread(true, "the question was seen")
	mark(first[1])
	unread(false, "the answer was seen")
	turn, assistant := liveTurn(t, db, account, id, "again")
	unread(false, "an answer streams")
	mark(assistant)
	endTurn(t, db, account, turn, "done")
	unread(true, "an answer ended that was seen while it streamed")
	mark(assistant)
	mark(first[0])
	unread(false, "a mark does not go back")

	_, err := db.Conversations.MarkRead(t.Context(), account, id, protocol.NewMessageID())
	storetest.WantCode(t, err, protocol.CodeNotFound)
	foreign := storetest.NewConversation(t, db, account, "").ConversationID
	_, err = db.Conversations.MarkRead(t.Context(), account, foreign, assistant)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestTheListReturnsEachUnmovedItemOnceWhileOthersMove(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	const count, pageSize = 45, 10
	still := map[protocol.ConversationID]bool{}
	var ids []protocol.ConversationID
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range count {
		id := storetest.NewConversation(t, db, account, fmt.Sprint(i)).ConversationID
		ids, still[id] = append(ids, id), true
		var pinned *time.Time
		if i%7 == 0 {
			pinned = &at
		}
		// Every third conversation has the same time as the one before, so that the identifier decides the order.
		when := at.Add(time.Duration(i-i%3/2) * 1500 * time.Nanosecond)
		if _, err := db.Exec(t.Context(), account, `update conversations set last_activity_at = $2, pinned_at = $3 where conversation_id = $1`, id, when, pinned); err != nil {
			t.Fatal(err)
		}
	}
	no := false
	storetest.NewConversation(t, db, pgtest.Account(t, db), "somebody else's")
	seen := map[protocol.ConversationID]int{}
	var after *conversations.ConversationPosition
	for pages := 0; ; pages++ {
		page, next, err := db.Conversations.ListConversations(t.Context(), account, &conversations.ConversationFilter{Archived: &no}, after, pageSize)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(page, func(a, b protocol.Conversation) int {
			if (a.PinnedAt != nil) != (b.PinnedAt != nil) {
				return map[bool]int{true: -1, false: 1}[a.PinnedAt != nil]
			}
			if c := b.LastActivityAt.Compare(a.LastActivityAt); c != 0 {
				return c
			}
			return strings.Compare(b.ConversationID.String(), a.ConversationID.String())
		}) {
			t.Error("a page is not in order")
		}
		for _, c := range page {
			seen[c.ConversationID]++
		}
		if next == nil {
			break
		}
		mover := ids[(pages*13+1)%count] // a message arrives between two pages
		delete(still, mover)
		addMessages(t, db, account, mover, "news")
		after = next
	}
	for id := range still {
		if seen[id] != 1 {
			t.Errorf("an item that did not move was seen %d times", seen[id])
		}
	}
	if len(still) < count-10 {
		t.Errorf("only %d items did not move", len(still))
	}
}

func TestTheListFilters(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	plain, archived, pinned := storetest.NewConversation(t, db, account, "plain"), storetest.NewConversation(t, db, account, "archived"), storetest.NewConversation(t, db, account, "pinned")
	project := protocol.NewProjectID()
	batch := &pgx.Batch{}
	batch.Queue(`insert into projects (account_id, project_id, name) values ($1, $2, 'A')`, account, project)
	batch.Queue(`update conversations set archived_at = now() where conversation_id = $1`, archived.ConversationID)
	batch.Queue(`update conversations set pinned_at = now(), project_id = $2 where conversation_id = $1`, pinned.ConversationID, project)
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
	temporary, err := db.Conversations.CreateConversation(t.Context(), account, &conversations.NewConversation{ConversationID: protocol.NewConversationID(), Title: "temporary", Temporary: true})
	if err != nil || !temporary.Temporary || temporary.ExpiresAt == nil || !temporary.ExpiresAt.Equal(temporary.LastActivityAt.Add(24*time.Hour)) {
		t.Fatalf("%+v (%v)", temporary, err)
	}
	yes, no := true, false
	for _, c := range []struct {
		filter conversations.ConversationFilter
		want   []string
	}{
		{conversations.ConversationFilter{Archived: &no}, []string{"pinned", "plain"}},
		{conversations.ConversationFilter{Archived: &yes}, []string{"archived"}},
		{conversations.ConversationFilter{}, []string{"pinned", "archived", "plain"}},
		{conversations.ConversationFilter{Pinned: &no}, []string{"archived", "plain"}},
		{conversations.ConversationFilter{Pinned: &yes}, []string{"pinned"}},
		{conversations.ConversationFilter{ProjectID: &project}, []string{"pinned"}},
	} {
		page, next, err := db.Conversations.ListConversations(t.Context(), account, &c.filter, nil, 10)
		var titles []string
		for _, found := range page {
			titles = append(titles, found.Title)
		}
		if err != nil || next != nil || !slices.Equal(titles, c.want) {
			t.Errorf("%+v lists %q, want %q (%v)", c.filter, titles, c.want, err)
		}
	}
	_ = plain
}

func TestTheListIsNarrowedByMetadataAndTimes(t *testing.T) {
	db := pgtest.New(t)
	account, stranger := pgtest.Account(t, db), pgtest.Account(t, db)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	ids := map[string]protocol.ConversationID{}
	for n, title := range []string{"red", "blue", "both", "plain"} {
		id, metadata := protocol.NewConversationID(), map[string]string{}
		if title == "red" || title == "both" {
			metadata["colour"] = "red"
		}
		if title == "blue" || title == "both" {
			metadata["shade"] = "blue"
		}
		for _, of := range []protocol.AccountID{account, stranger} {
			if _, _, err := db.Conversations.PutConversation(t.Context(), of, id, &conversations.ConversationWrite{Title: title, Metadata: metadata}, nil); err != nil {
				t.Fatal(err)
			}
			_, err := db.Exec(t.Context(), of, `update conversations set created_at = $2, updated_at = $2, last_activity_at = $2 where conversation_id = $1`, id, day.AddDate(0, 0, n))
			if err != nil {
				t.Fatal(err)
			}
		}
		ids[title] = id
	}
	list := func(filter conversations.ConversationFilter) (titles []string) {
		page, next, err := db.Conversations.ListConversations(t.Context(), account, &filter, nil, 10)
		if err != nil || next != nil {
			t.Errorf("%+v: %v, next %v", filter, err, next)
		}
		for i := range page {
			titles = append(titles, page[i].Title)
		}
		return titles
	}
	yes, red := true, map[string]string{"colour": "red"}
	for _, c := range []struct {
		filter conversations.ConversationFilter
		want   []string
	}{
		{conversations.ConversationFilter{Metadata: red}, []string{"both", "red"}},
		{conversations.ConversationFilter{Metadata: map[string]string{"colour": "red", "shade": "blue"}}, []string{"both"}},
		{conversations.ConversationFilter{Metadata: map[string]string{"colour": "blue"}}, nil},
		{conversations.ConversationFilter{Metadata: map[string]string{"colou": "rred"}}, nil},
		{conversations.ConversationFilter{Metadata: red, Archived: &yes}, nil},
		{conversations.ConversationFilter{Metadata: red, Pinned: &yes}, nil},
		{conversations.ConversationFilter{Metadata: red, ProjectID: &protocol.ProjectID{1}}, nil},
		{conversations.ConversationFilter{Created: conversations.Span{From: day.AddDate(0, 0, 1), To: day.AddDate(0, 0, 3)}}, []string{"both", "blue"}},
		{conversations.ConversationFilter{Created: conversations.Span{From: day.AddDate(0, 0, 1)}, Metadata: red}, []string{"both"}},
		{conversations.ConversationFilter{Updated: conversations.Span{To: day.AddDate(0, 0, 1)}}, []string{"red"}},
	} {
		if titles := list(c.filter); !slices.Equal(titles, c.want) {
			t.Errorf("%+v lists %q, want %q", c.filter, titles, c.want)
		}
	}
	// Changes apply at once.
	version := int64(1)
	changed := &conversations.ConversationWrite{Title: "red", Metadata: map[string]string{"colour": "green"}}
	if _, _, err := db.Conversations.PutConversation(t.Context(), account, ids["red"], changed, &version); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Conversations.DeleteConversation(t.Context(), account, &conversations.Deletion{ConversationID: ids["both"]}); err != nil {
		t.Fatal(err)
	}
	green := list(conversations.ConversationFilter{Metadata: map[string]string{"colour": "green"}})
	if old := list(conversations.ConversationFilter{Metadata: red}); len(old) != 0 || !slices.Equal(green, []string{"red"}) {
		t.Errorf("red lists %q, green %q", old, green)
	}
	rows, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[int], `select count(*) from conversation_metadata`)
	if err != nil || rows != 2 {
		t.Errorf("%d entries are stored, want those of green and blue: %v", rows, err)
	}
}

func TestTheConversationPageHasTheLiveTurnDraftAndFollowUps(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "Page").ConversationID
	page, err := db.Conversations.ConversationPage(t.Context(), account, id)
	if err != nil || page.LiveTurn != nil || page.Draft.Version != 0 || page.Draft.Attachments == nil || page.FollowUps == nil || page.PendingApprovals == nil {
		t.Fatalf("%+v (%v)", page, err)
	}
	turn, assistant := liveTurn(t, db, account, id, "go", storetest.Started(id), &protocol.TurnStateChanged{})
	addFollowUps(t, db, account, id, protocol.FollowUpQueued, protocol.FollowUpHeld, protocol.FollowUpStarted, protocol.FollowUpCancelled)
	page, err = db.Conversations.ConversationPage(t.Context(), account, id)
	if err != nil {
		t.Fatal(err)
	}
	want := protocol.LiveTurn{TurnID: turn, State: protocol.TurnRunning, LastSequence: 2, AcceptingSteering: true, MessageID: assistant}
	if page.LiveTurn == nil || *page.LiveTurn != want || *page.LiveTurnID != turn || *page.HeadMessageID != assistant || page.MessageCount != 2 {
		t.Errorf("live turn %+v, want %+v, in %+v", page.LiveTurn, want, page.Conversation)
	}
	if len(page.FollowUps) != 2 || page.FollowUps[0].State != protocol.FollowUpQueued || page.FollowUps[1].State != protocol.FollowUpHeld {
		t.Errorf("follow-ups %+v", page.FollowUps)
	}
	_, err = db.Conversations.ConversationPage(t.Context(), pgtest.Account(t, db), id)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func addFollowUps(t testing.TB, db *persistence.Stores, account protocol.AccountID, id protocol.ConversationID, states ...protocol.FollowUpState) {
	t.Helper()
	batch := &pgx.Batch{}
	for i, state := range states {
		batch.Queue(`insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position) values ($1, $2, $3, $4, $5, $6)`,
			account, protocol.NewFollowUpID(), id, state, "later "+string(state), i/2+1)
	}
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
}

func TestFollowUpsAreListedInTheirOrder(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	id := storetest.NewConversation(t, db, account, "").ConversationID
	states := []protocol.FollowUpState{protocol.FollowUpStarted, protocol.FollowUpQueued, protocol.FollowUpHeld, protocol.FollowUpCancelled, protocol.FollowUpQueued}
	addFollowUps(t, db, account, id, states...)
	var got []protocol.FollowUpState
	var after *queues.Position
	for {
		page, err := db.FollowUps.ListFollowUps(t.Context(), account, id, true, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			got = append(got, item.State)
		}
		if after = page.Next; after == nil {
			break
		}
	}
	if !slices.Equal(got, states) {
		t.Errorf("listed %v, want %v", got, states)
	}
	open, err := db.FollowUps.ListFollowUps(t.Context(), account, id, false, nil, 10)
	if err != nil || len(open.Items) != 3 || open.QueueVersion != 1 || open.Items[0].State != protocol.FollowUpQueued || open.Items[1].State != protocol.FollowUpHeld {
		t.Errorf("the waiting follow-ups are %+v, %v", open, err)
	}
	_, err = db.FollowUps.ListFollowUps(t.Context(), pgtest.Account(t, db), id, true, nil, 2)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

// wholePath reads all messages of a branch page by page: from its end to its beginning, or from its beginning to its
// end if query.Newer is set.
func wholePath(ctx context.Context, db *persistence.Stores, account protocol.AccountID, query conversations.MessageQuery) ([]protocol.Message, error) {
	var all []protocol.Message
	for {
		page, err := db.Conversations.Messages(ctx, account, &query)
		if err != nil {
			return nil, err
		}
		if query.Newer {
			all = append(all, page.Messages...)
			if query.After = page.Last; !page.Newer {
				return all, nil
			}
			continue
		}
		all = append(slices.Clone(page.Messages), all...)
		if query.Before = page.First; !page.Older {
			return all, nil
		}
	}
}
