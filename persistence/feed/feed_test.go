package feed_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/feed"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/prompts"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// world is a storetest.World with the position up to which the test has read the feed.
type world struct {
	*storetest.World
	at feed.Position
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: storetest.NewWorld(t)}
	var err error
	w.at, err = w.DB.Feed.Present(t.Context(), w.Account)
	w.Must(err)
	return w
}

// next returns what the feed of the account has after the last call: one line for each item.
func (w *world) next() (lines []string) {
	w.Helper()
	for {
		page := w.read(w.at, 3)
		for i := range page.Items {
			lines = append(lines, line(&page.Items[i]))
		}
		if w.at = page.End; !page.More {
			return lines
		}
	}
}

func (w *world) read(after feed.Position, limit int) *feed.Page {
	w.Helper()
	page, err := w.DB.Feed.Read(w.Context(), w.Account, after, limit)
	w.Must(err)
	return page
}

func line(item *feed.Item) string {
	text := item.Type + " " + item.ID
	if item.ConversationID != nil {
		text += " in " + item.ConversationID.String()
	}
	if item.Version != nil {
		text += fmt.Sprintf(" v%d", *item.Version)
	}
	if item.State != "" {
		text += " " + item.State
	}
	return text
}

// want fails unless the feed has exactly these items after the last call.
func (w *world) want(what string, lines ...string) {
	w.Helper()
	if got := w.next(); !slices.Equal(got, lines) {
		w.Errorf("%s: the feed has\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

func TestEveryChangeOfAResourceIsInTheFeed(t *testing.T) {
	w := newWorld(t)
	c, err := w.DB.Conversations.CreateConversation(t.Context(), w.Account, &conversations.NewConversation{ConversationID: protocol.NewConversationID()})
	w.Must(err)
	id := c.ConversationID
	w.want("a new conversation", fmt.Sprintf("conversation.changed %s in %[1]s v1", id))
	_, err = w.DB.Conversations.SetTitle(t.Context(), w.Account, id, "A title", nil)
	w.Must(err)
	w.want("a title", fmt.Sprintf("conversation.changed %s in %[1]s v2", id))
	_, err = w.DB.Drafts.PutDraft(t.Context(), w.Account, id, "text", nil, nil)
	w.Must(err)
	w.want("a draft", fmt.Sprintf("draft.changed %s in %[1]s v1", id))
	turn := w.Start(w.Request(&id, "hello"))
	w.want("a started turn", fmt.Sprintf("turn.changed %s in %s running", turn.Spec.TurnID, id))
	turn.Append(5)
	turn.Append(5)
	w.want("text of the answer")
	queued, err := w.Try(queue(w.Request(&id, "and then?")))
	w.Must(err)
	item := queued.FollowUp.FollowUpID
	w.want("a follow-up", fmt.Sprintf("follow_up.changed %s in %s v1 queued", item, id), fmt.Sprintf("queue.changed %s in %[1]s v2", id))
	turn.End(nil)
	lines := w.next()
	if len(lines) < 3 || !slices.Contains(lines, fmt.Sprintf("turn.changed %s in %s completed", turn.Spec.TurnID, id)) ||
		!strings.Contains(strings.Join(lines, "\n"), item.String()) {
		t.Errorf("the end of a turn: %s", strings.Join(lines, "\n"))
	}
	settings, err := w.DB.Accounts.Settings(t.Context(), w.Account)
	w.Must(err)
	_, err = w.DB.Accounts.PutSettings(t.Context(), w.Account, settings, nil)
	w.Must(err)
	w.want("settings", fmt.Sprintf("settings.changed %s v1", w.Account))
	_, err = w.DB.Accounts.PutInstructions(t.Context(), w.Account, new(int64), "Be brief.")
	w.Must(err)
	w.want("instructions", fmt.Sprintf("instructions.changed %s v1", w.Account))
	prompt, err := w.DB.Prompts.Create(t.Context(), w.Account, &protocol.Prompt{Name: "greet", Text: "Hello"})
	w.Must(err)
	w.want("a prompt", fmt.Sprintf("prompt.changed %s v1", prompt.PromptID))
	_, err = w.DB.Prompts.Change(t.Context(), w.Account, &prompts.Change{PromptID: prompt.PromptID, Version: new(int64(1)), Text: new("Good day")})
	w.Must(err)
	w.want("a changed prompt", fmt.Sprintf("prompt.changed %s v2", prompt.PromptID))
	w.Must(w.DB.Prompts.Delete(t.Context(), w.Account, prompt.PromptID, nil))
	w.want("a deleted prompt", fmt.Sprintf("prompt.deleted %s v2", prompt.PromptID))
	_, err = w.DB.Accounts.ChangeName(t.Context(), w.Account, "Another name", nil)
	w.Must(err)
	w.want("a name", fmt.Sprintf("account.changed %s", w.Account))
	for range 2 { // the second one changes nothing
		_, err = w.DB.Accounts.ChangeEmail(t.Context(), w.Account, "another@example.com", "another@example.com", nil, audit.Requester{RequestID: "req"})
		w.Must(err)
	}
	w.want("an address", fmt.Sprintf("account.changed %s", w.Account))
}

func queue(start *turnlog.Start) *turnlog.Start {
	start.IfBusy = "queue"
	return start
}

func TestTheFeedReportsBranchesReadingTitlesAndDeletion(t *testing.T) {
	w := newWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	id, answer := turn.Spec.ConversationID, turn.Spec.AssistantMessageID
	w.next()
	branch, err := w.DB.Conversations.CreateBranch(t.Context(), w.Account, id, &protocol.BranchRequest{MessageID: answer, Mode: "regenerate"}, "")
	w.Must(err)
	w.want("a branch", fmt.Sprintf("branch.changed %s in %s", branch.BranchID, id), fmt.Sprintf("conversation.changed %s in %[1]s v2", id))
	first, err := w.DB.Conversations.CreateBranch(t.Context(), w.Account, id, &protocol.BranchRequest{MessageID: turn.Spec.UserMessageID, Mode: "edit"}, "")
	w.Must(err)
	w.want("another version of the first message", fmt.Sprintf("branch.changed %s in %s", first.BranchID, id), fmt.Sprintf("conversation.changed %s in %[1]s v3", id))
	empty, err := w.DB.Conversations.CreateConversation(t.Context(), w.Account, &conversations.NewConversation{ConversationID: protocol.NewConversationID()})
	w.Must(err)
	w.want("a conversation without messages", fmt.Sprintf("conversation.changed %s in %[1]s v1", empty.ConversationID))
	_, err = w.DB.Conversations.MarkRead(t.Context(), w.Account, id, answer)
	w.Must(err)
	w.want("reading", fmt.Sprintf("conversation.changed %s in %[1]s v3", id))
	_, err = w.DB.Conversations.SetAutoTitle(t.Context(), w.Account, id, "Greeting")
	w.Must(err)
	w.want("a title of the service", fmt.Sprintf("conversation.changed %s in %[1]s v3", id))
	_, err = w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: id})
	w.Must(err)
	w.want("deletion", fmt.Sprintf("conversation.deleted %s in %[1]s v4", id))
}

// TestTheKindsOfTheFeedAreThoseOfItsTriggers compares the registry with the schema: a kind in one of them only would be
// reported without a description, or never.
func TestTheKindsOfTheFeedAreThoseOfItsTriggers(t *testing.T) {
	w := storetest.NewWorld(t)
	var want []string
	for _, kind := range protocol.FeedKinds {
		want = append(want, fmt.Sprintf("%s, %s", kind.Kind, kind.Prefix))
	}
	got, err := pg.Rows(t.Context(), w.DB.DB, pg.NoAccount, pgx.RowTo[string], `
		select distinct substring(p.prosrc from '\(new.account_id, ''([a-z_]+)''') || ', ' || substring(p.prosrc from ''', .*, ''([a-z]+)'', ')
		from pg_trigger g join pg_proc p on p.oid = g.tgfoid
		where p.proname like 'feed\_%' and p.proname <> 'feed_erase'`)
	w.Must(err)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the triggers report %q, protocol.FeedKinds has %q", got, want)
	}
}

// TestNoItemIsLostWhenTransactionsCommitOutOfOrder has two transactions of which the one with the lower number commits
// last. A reader that takes what it sees would pass over its items.
func TestNoItemIsLostWhenTransactionsCommitOutOfOrder(t *testing.T) {
	w := newWorld(t)
	first, second := w.newConversation(), w.newConversation()
	w.next()
	tx := w.begin()
	tx.exec(`update conversations set title = 'first', version = version + 1 where account_id = $1 and conversation_id = $2`, w.Account, first)
	_, err := w.DB.Conversations.SetTitle(t.Context(), w.Account, second, "second", nil)
	w.Must(err)
	w.want("while the first transaction is running")
	tail, err := w.DB.Feed.Tail(t.Context(), w.at, 10)
	w.Must(err)
	if len(tail.Items) != 0 {
		t.Errorf("the tail has %d items, want none", len(tail.Items))
	}
	tx.commit()
	w.want("afterwards", fmt.Sprintf("conversation.changed %s in %[1]s v2", first), fmt.Sprintf("conversation.changed %s in %[1]s v2", second))
}

// TestConcurrentChangesAreReadOnceEach reads while many transactions of random length commit. The writers have connections of
// their own: a request waits for one of the pool for a second only.
func TestConcurrentChangesAreReadOnceEach(t *testing.T) {
	w := newWorld(t)
	const writers, changes = 4, 30
	ids := make([]protocol.ConversationID, writers)
	connections := make([]*pgx.Conn, writers)
	for i := range writers {
		ids[i] = w.newConversation()
		var err error
		connections[i], err = pgx.Connect(t.Context(), w.Database.AdminURL)
		w.Must(err)
		defer func() { w.Must(connections[i].Close(context.WithoutCancel(t.Context()))) }()
	}
	w.next()
	change := func(i, n int) error {
		return pgx.BeginFunc(t.Context(), connections[i], func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `update conversations set version = version + 1 where account_id = $1 and conversation_id = $2`, w.Account, ids[i])
			for round := 0; err == nil && round < 20 && n%3 == i%3; round++ { // a longer transaction: others with higher numbers commit first
				_, err = tx.Exec(t.Context(), `select 1`)
			}
			return err
		})
	}
	done := make(chan error, writers)
	for i := range writers {
		go func() {
			var err error
			for n := 0; err == nil && n < changes; n++ {
				err = change(i, n)
			}
			done <- err
		}()
	}
	seen := map[string]int{}
	for left := writers; left > 0; {
		select {
		case err := <-done:
			w.Must(err)
			left--
		default:
		}
		for _, item := range w.next() {
			seen[item]++
		}
	}
	for _, item := range w.next() {
		seen[item]++
	}
	for _, id := range ids {
		for version := 2; version < 2+changes; version++ {
			if item := fmt.Sprintf("conversation.changed %s in %[1]s v%d", id, version); seen[item] != 1 {
				t.Errorf("%s was read %d times", item, seen[item])
			}
		}
	}
}

func TestThePositionsOfAnAccountShowNothingOfAnother(t *testing.T) {
	w := newWorld(t)
	other := pgtest.Account(t, w.DB)
	w.newConversation()
	page, err := w.DB.Feed.Read(t.Context(), other, w.at, 10)
	w.Must(err)
	if len(page.Items) != 0 {
		t.Errorf("another account reads %+v", page.Items)
	}
	if len(w.next()) == 0 {
		t.Error("the account itself reads nothing")
	}
}

func TestAPositionThatIsTooOldHasAGap(t *testing.T) {
	w := newWorld(t)
	w.newConversation()
	old := w.read(w.at, 1)
	w.newConversation()
	young := w.read(old.Items[0].Position, 1)
	w.Database.Admin(t, `update feed_items set at = at - interval '7 days 1 second' where xid <= $1::text::xid8`, fmt.Sprint(old.Items[0].Position.Transaction))
	w.Must(w.DB.Feed.Expire(t.Context()))
	if page := w.read(w.at, 10); !page.Gap || len(page.Items) != 0 || !young.End.Before(page.End) && young.End != page.End {
		t.Errorf("before an expired item: %+v", page)
	}
	if page := w.read(young.Items[0].Position, 10); page.Gap {
		t.Errorf("after the last expired item: %+v", page)
	}
	future := w.read(w.at, 10).End
	future.Transaction += 1000
	if page := w.read(future, 10); !page.Gap {
		t.Errorf("a position that the database has not reached: %+v", page)
	}
	if left := w.Count(`select count(*) from feed_items`); left == 0 {
		t.Error("items within the retention were removed")
	}
}

// TestAPositionOfAnotherHistoryHasAGap: after a restore, the database reaches the numbers of lost transactions again. A
// reader that was ahead of it would otherwise miss what has other numbers there.
func TestAPositionOfAnotherHistoryHasAGap(t *testing.T) {
	w := newWorld(t)
	old := w.at
	w.newConversation()
	if page := w.read(old, 10); page.Gap || len(page.Items) == 0 || page.Items[0].Position.History != old.History || old.History == 0 {
		t.Errorf("in the same history: %+v after %+v", page, old)
	}
	other, earlier := old, old
	other.History++
	earlier.History = 0 // of a version that did not store it
	if page := w.read(other, 10); !page.Gap || len(page.Items) != 0 || page.End.History != old.History {
		t.Errorf("in another history: %+v", page)
	}
	tail, err := w.DB.Feed.Tail(t.Context(), other, 10)
	w.Must(err)
	if !tail.Gap {
		t.Errorf("the tail in another history: %+v", tail)
	}
	if page := w.read(earlier, 10); page.Gap || len(page.Items) == 0 {
		t.Errorf("without a history: %+v", page)
	}
}

// TestAnExpiryThatTheDatabaseHasNotReachedIsIgnored: a dump that is loaded into a new cluster contains the numbers of the
// old one. If they counted, every read would have a gap.
func TestAnExpiryThatTheDatabaseHasNotReachedIsIgnored(t *testing.T) {
	w := newWorld(t)
	w.Database.Admin(t, `update feed_expiry set xid = '1000000000000'`)
	w.newConversation()
	if page := w.read(w.at, 10); page.Gap || len(page.Items) == 0 {
		t.Errorf("a read with an expiry in the future: %+v", page)
	}
}

func TestItemsOfAnErasedAccountAreRemoved(t *testing.T) {
	w := newWorld(t)
	w.newConversation()
	other := pgtest.Account(t, w.DB)
	_, err := w.DB.Conversations.CreateConversation(t.Context(), other, &conversations.NewConversation{ConversationID: protocol.NewConversationID()})
	w.Must(err)
	w.Database.Admin(t, `delete from accounts where account_id = $1`, other)
	if left := w.Count(`select count(*) from feed_items where account_id = '` + pg.UUIDText(other) + `'`); left != 0 {
		t.Errorf("%d items are left", left)
	}
	if len(w.next()) == 0 {
		t.Error("items of the other account were removed too")
	}
}

func TestLatestKeepsTheLastItemOfEachResource(t *testing.T) {
	item := func(kind string, n byte, at int64) feed.Item {
		return feed.Item{Position: feed.Position{N: at}, FeedItem: protocol.NewFeedItem(kind, false, "conv", [16]byte{n})}
	}
	got := feed.Latest([]feed.Item{item("conversation", 1, 1), item("draft", 1, 2), item("conversation", 1, 3), item("conversation", 2, 4), item("draft", 1, 5)})
	var at []int64
	for _, one := range got {
		at = append(at, one.Position.N)
	}
	if !slices.Equal(at, []int64{3, 4, 5}) {
		t.Errorf("the items %v are left, want 3, 4 and 5", at)
	}
}

func (w *world) newConversation() protocol.ConversationID {
	w.Helper()
	c, err := w.DB.Conversations.CreateConversation(w.Context(), w.Account, &conversations.NewConversation{ConversationID: protocol.NewConversationID()})
	w.Must(err)
	return c.ConversationID
}

// openTx is a transaction of the world's account that the test ends.
type openTx struct {
	w    *world
	conn *pgx.Conn
}

func (w *world) begin() *openTx {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.Database.AdminURL)
	w.Must(err)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	tx := &openTx{w, conn}
	tx.exec("begin")
	return tx
}

func (tx *openTx) exec(sql string, args ...any) {
	tx.w.Helper()
	_, err := tx.conn.Exec(tx.w.Context(), sql, args...)
	tx.w.Must(err)
}

func (tx *openTx) commit() { tx.exec("commit") }
