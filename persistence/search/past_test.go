package search_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/projects"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func consent(w *storetest.World, source protocol.MemorySource, granted bool) {
	w.Helper()
	_, err := w.DB.Memory.SetConsent(w.Context(), w.Account, protocol.MemoryConsent{Source: source, Granted: granted})
	w.Must(err)
}

// pastOf returns what a search from a conversation finds, page by page, as the sorted excerpts.
func pastOf(w *storetest.World, conversation protocol.ConversationID, query string, limit int) (found []string, refused protocol.ToolErrorCode) {
	w.Helper()
	q := &turnlog.PastQuery{Scope: turnlog.Scope{AccountID: w.Account, ConversationID: conversation}, Text: query, Limit: limit}
	for range 100 {
		page, err := w.DB.Search.FindPast(w.Context(), q)
		var refusal *turnlog.Refusal
		if errors.As(err, &refusal) {
			return nil, refusal.Code
		}
		w.Must(err)
		if len(page.Found) > limit {
			w.Errorf("a page of %d has %d results", limit, len(page.Found))
		}
		for i := range page.Found {
			found = append(found, string(page.Found[i].Kind[:1])+": "+page.Found[i].Snippet.Text)
		}
		if q.After = page.Next; q.After == "" {
			slices.Sort(found)
			return found, ""
		}
	}
	w.Fatal("the search never ends")
	return nil, ""
}

func wantPast(w *storetest.World, conversation protocol.ConversationID, want ...string) {
	w.Helper()
	for _, limit := range []int{1, 10} {
		if found, refused := pastOf(w, conversation, "zebras", limit); refused != "" || !slices.Equal(found, want) {
			w.Errorf("found %q, %s; want %q", found, refused, want)
		}
	}
}

func TestPastConversationsAreReadOnlyWithAConsentAndWithinTheirProjects(t *testing.T) {
	w := storetest.NewWorld(t)
	open, closed := newProject(w, w.Account), newProject(w, w.Account)
	version := int64(0)
	settings := protocol.DefaultProjectSettings()
	settings.MemoryScope = protocol.MemoryOfProject
	_, err := w.DB.Projects.PutSettings(t.Context(), w.Account, &projects.Change{ProjectID: closed, Version: &version}, settings)
	w.Must(err)
	asking, outside := say(w, nil, "zebras of the question"), say(w, nil, "zebras outside")
	inOpen, alsoOpen, inClosed, alsoClosed := say(w, nil, "zebras open"), say(w, nil, "zebras open too"), say(w, nil, "zebras closed"), say(w, nil, "zebras closed too")
	temporary := w.Request(nil, "zebras hidden")
	temporary.Temporary = true
	hidden := w.Start(temporary)
	hidden.End(nil)
	w.Database.Admin(t, `update conversations set provisional_title = ''`)
	for conversation, project := range map[protocol.ConversationID]*protocol.ProjectID{inOpen.ConversationID: &open, alsoOpen.ConversationID: &open, inClosed.ConversationID: &closed, alsoClosed.ConversationID: &closed} {
		move(w, w.Account, conversation, project)
	}
	stranger := w.OtherAccount()
	_, err = w.DB.Memory.SetConsent(t.Context(), stranger, protocol.MemoryConsent{Source: protocol.SourceConversations, Granted: true})
	w.Must(err)

	if _, refused := pastOf(w, asking.ConversationID, "zebras", 5); refused != turnlog.RefusedConsent {
		t.Errorf("without a consent: %q", refused)
	}
	consent(w, protocol.SourceConversations, true)
	if _, refused := pastOf(w, hidden.Spec.ConversationID, "zebras", 5); refused != turnlog.RefusedTemporary {
		t.Errorf("from a temporary conversation: %q", refused)
	}
	bothWays(w, func(w *storetest.World) {
		wantPast(w, asking.ConversationID, "m: zebras outside")
		wantPast(w, outside.ConversationID, "m: zebras of the question")
		wantPast(w, inOpen.ConversationID, "m: zebras of the question", "m: zebras open too", "m: zebras outside")
		wantPast(w, inClosed.ConversationID, "m: zebras closed too")
	})
	consent(w, protocol.SourceProjects, true)
	wantPast(w, asking.ConversationID, "m: zebras open", "m: zebras open too", "m: zebras outside")
	wantPast(w, inClosed.ConversationID, "m: zebras closed too")
	consent(w, protocol.SourceConversations, false)
	if _, refused := pastOf(w, asking.ConversationID, "zebras", 5); refused != turnlog.RefusedConsent {
		t.Errorf("after a revocation: %q", refused)
	}
	_, err = w.DB.Search.FindPast(t.Context(), &turnlog.PastQuery{Scope: turnlog.Scope{AccountID: stranger, ConversationID: asking.ConversationID}, Text: "zebras", Limit: 5})
	storetest.WantCode(t, err, protocol.CodeNotFound)
}

func TestACursorOfTheModelIsRefusedUnlessItIsOne(t *testing.T) {
	w := storetest.NewWorld(t)
	asking := say(w, nil, "question")
	for n := range 5 {
		say(w, nil, fmt.Sprintf("zebras %d", n))
	}
	consent(w, protocol.SourceConversations, true)
	q := &turnlog.PastQuery{Scope: turnlog.Scope{AccountID: w.Account, ConversationID: asking.ConversationID}, Text: "zebras", Limit: 2}
	page, err := w.DB.Search.FindPast(t.Context(), q)
	w.Must(err)
	if len(page.Found) != 2 || page.Next == "" || len(page.Next) > 500 {
		t.Fatalf("%+v", page)
	}
	for _, wrong := range []string{"x", "%", "e30", "bnVsbA", "W10", page.Next[1:], strings.Repeat("A", 500), "eyJrIjoiZmlsZSJ9", "eyJrIjoibm9uZSJ9"} {
		q.After = wrong
		_, err := w.DB.Search.FindPast(t.Context(), q)
		var refusal *turnlog.Refusal
		if !errors.As(err, &refusal) || refusal.Code != turnlog.RefusedInput {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A revocation that is committed while a call searches applies to what the search has found.
func TestARevocationDuringASearchAppliesToItsResults(t *testing.T) {
	w := storetest.NewWorld(t)
	project := newProject(w, w.Account)
	asking, inside, outside := say(w, nil, "question"), say(w, nil, "zebras inside"), say(w, nil, "zebras outside")
	move(w, w.Account, inside.ConversationID, &project)
	consent(w, protocol.SourceConversations, true)
	consent(w, protocol.SourceProjects, true)
	q := &turnlog.PastQuery{Scope: turnlog.Scope{AccountID: w.Account, ConversationID: asking.ConversationID}, Text: "zebras", Limit: 5}
	found := func() []protocol.SearchResult {
		return []protocol.SearchResult{{ConversationID: &inside.ConversationID, ProjectID: &project}, {ConversationID: &outside.ConversationID}}
	}
	if allowed, err := w.DB.Search.Allowed(t.Context(), q, found()); err != nil || len(allowed) != 2 {
		t.Errorf("%+v, %v", allowed, err)
	}
	consent(w, protocol.SourceProjects, false)
	if allowed, err := w.DB.Search.Allowed(t.Context(), q, found()); err != nil || len(allowed) != 1 || *allowed[0].ConversationID != outside.ConversationID {
		t.Errorf("without the consent to projects: %+v, %v", allowed, err)
	}
	consent(w, protocol.SourceConversations, false)
	var refusal *turnlog.Refusal
	if allowed, err := w.DB.Search.Allowed(t.Context(), q, found()); !errors.As(err, &refusal) || allowed != nil {
		t.Errorf("without a consent: %+v, %v", allowed, err)
	}
}
