package http

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// largestItem is more than the size of any list item in these tests, in bytes of JSON.
const largestItem = 500_000

// largest returns a text with the maximum number of characters of a message, each of four bytes except for the number
// at the start.
func largest(number int) string {
	return fmt.Sprintf("%03d", number) + strings.Repeat("\U0001F30A", protocol.MaxInputRunes-3)
}

// wantBounded fails the test if a page is larger than the bound plus one item.
func wantBounded(t *testing.T, page decodedReply) {
	t.Helper()
	if len(page.body) > pg.PageBytes+largestItem {
		t.Errorf("a page has %d bytes", len(page.body))
	}
}

// allPages reads a list to its end and returns one field of every item, in one list and by page.
func (u *user) allPages(path, field string) (found []string, pages [][]string) {
	u.t.Helper()
	for cursor := ""; len(found) <= 100; {
		page := u.do(200, "GET", path+cursor, nil)
		wantBounded(u.t, page)
		data, _ := page.at("data").([]any)
		var texts []string
		for i := range data {
			texts = append(texts, fmt.Sprint(page.at(fmt.Sprintf("data.%d.%s", i, field))))
		}
		found, pages = append(found, texts...), append(pages, texts)
		next, more := page.at("next_cursor").(string)
		if page.at("has_more") != more || len(data) == 0 {
			u.t.Fatalf("a page has %d items and has_more %v", len(data), page.at("has_more"))
		}
		if !more {
			return found, pages
		}
		path, _, _ = strings.Cut(path, "&cursor=")
		cursor = "&cursor=" + next
	}
	u.t.Fatalf("%s: the list has more items than exist", path)
	return nil, nil
}

func TestPagesOfTheLargestMessagesAreBoundedAndHaveEachMessageOnce(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Long")
	const messages = 20 // three pages
	texts := make([]string, messages)
	for i := range texts {
		texts[i] = largest(i)
	}
	ids := u.storeMessages(id, texts...)
	path := "/conversations/" + id + "/messages?limit=100"

	newest, _ := u.allPages(path+"&direction=newer", "message_id")
	if !slices.Equal(newest, ids) {
		t.Errorf("newer messages: %d, want %d", len(newest), messages)
	}
	_, pages := u.allPages(path, "message_id")
	slices.Reverse(pages)
	if older := slices.Concat(pages...); !slices.Equal(older, ids) {
		t.Errorf("older messages: %d, want %d", len(older), messages)
	}
	for _, middle := range []int{0, messages / 2, messages - 1} {
		page := u.do(200, "GET", path+"&around="+ids[middle], nil)
		wantBounded(t, page)
		var found []string
		if cursor, more := page.at("older_cursor").(string); more {
			_, older := u.allPages(path+"&cursor="+cursor, "message_id")
			slices.Reverse(older)
			found = slices.Concat(older...)
		}
		data, _ := page.at("data").([]any)
		shows := false
		for i := range data {
			one := page.at(fmt.Sprintf("data.%d.message_id", i)).(string)
			shows = shows || one == ids[middle]
			found = append(found, one)
		}
		if cursor, more := page.at("newer_cursor").(string); more {
			newer, _ := u.allPages(path+"&cursor="+cursor, "message_id")
			found = append(found, newer...)
		}
		if !shows || !slices.Equal(found, ids) {
			t.Errorf("around message %d: %d messages, the message itself is on the page: %v", middle, len(found), shows)
		}
	}
}

func TestAQueueOfTheLargestFollowUpsIsPagedAndTheConversationShowsItsBeginning(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Queue")
	batch := &pgx.Batch{}
	var want []string
	for i := range protocol.MaxFollowUps {
		item := protocol.NewFollowUpID()
		want = append(want, item.String())
		batch.Queue(`insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position) values ($1, $2, $3, 'held', $4, $5)`,
			u.account.AccountID, item, u.parse(id), largest(i), i)
	}
	if err := u.DB.Send(t.Context(), u.account.AccountID, batch); err != nil {
		t.Fatal(err)
	}
	if found, _ := u.allPages("/conversations/"+id+"/follow-ups?limit=100", "follow_up_id"); !slices.Equal(found, want) {
		t.Errorf("%d follow-ups, want %d", len(found), len(want))
	}
	page := u.do(200, "GET", "/conversations/"+id, nil)
	wantBounded(t, page)
	wantField(t, page, "more_follow_ups", true)
	wantField(t, page, "follow_ups.0.follow_up_id", want[0])
	wantField(t, page, "follow_ups.1.follow_up_id", want[1])
	wantField(t, u.do(200, "GET", "/conversations/"+u.conversation("Empty"), nil), "more_follow_ups", false)
}

func TestPagesOfTheLargestConversationsAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	const maxMetadataKey, maxMetadataValue = 64, 512 // characters
	metadata := map[string]string{}
	for i := range 16 {
		metadata[fmt.Sprintf("%02d", i)+strings.Repeat("\U0001F30A", maxMetadataKey-2)] = strings.Repeat("\U0001F30A", maxMetadataValue)
	}
	const conversations = 60
	for range conversations {
		u.do(201, "PUT", "/conversations/"+protocol.NewConversationID().String(), map[string]any{"title": strings.Repeat("\U0001F30A", protocol.MaxTitle), "metadata": metadata})
	}
	found, pages := u.allPages("/conversations?limit=100", "conversation_id")
	slices.Sort(found)
	if len(slices.Compact(found)) != conversations || len(pages) < 2 {
		t.Errorf("%d conversations in %d pages", len(found), len(pages))
	}
}

func TestPagesOfTheLargestResearchTasksAndSourcesAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Research")
	const items = 90
	first := protocol.NewTaskID()
	var tasks, sources []string
	batch := &pgx.Batch{}
	insert := func(sql string, item any, args ...any) {
		t.Helper()
		body, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		batch.Queue(sql, append(args, u.account.AccountID, body)...)
	}
	for i := range items {
		task := protocol.ResearchTask{TaskID: first, ConversationID: u.parse(id), Question: largest(i), State: protocol.ResearchCancelled, Version: 1}
		if i > 0 {
			task.TaskID = protocol.NewTaskID()
		}
		tasks = append(tasks, task.TaskID.String())
		insert(`insert into research_tasks (account_id, task_id, conversation_id, question, state, spec, body, version, next_sequence, next_entry, created_at, finished_at)
			values ($3, $1, $2, 'Tides', 'cancelled', '{}', $4, 1, 2, 1, now(), now())`, task, task.TaskID, task.ConversationID)
	}
	for i := range items {
		source := protocol.ResearchKeptSource{SourceID: fmt.Sprintf("s%d", i), Kind: protocol.ResearchWeb, Title: largest(i)}
		sources = append(sources, source.SourceID)
		insert(`insert into research_sources (task_id, ordinal, account_id, body) values ($1, $2, $3, $4)`, source, first, i)
	}
	if err := u.DB.Send(t.Context(), u.account.AccountID, batch); err != nil {
		t.Fatal(err)
	}
	found, _ := u.allPages("/research-tasks/"+tasks[0]+"/sources?limit=100", "source_id")
	if !slices.Equal(found, sources) {
		t.Errorf("%d sources, want %d", len(found), items)
	}
	slices.Reverse(tasks)
	for _, path := range []string{"/research-tasks?limit=100", "/conversations/" + id + "/research-tasks?limit=100"} {
		if found, _ := u.allPages(path, "task_id"); !slices.Equal(found, tasks) {
			t.Errorf("%s: %d tasks, want %d", path, len(found), items)
		}
	}
}
