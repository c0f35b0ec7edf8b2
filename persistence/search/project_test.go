package search_test

import (
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/projects"
	"turnstone/persistence/search"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func newProject(w *storetest.World, account protocol.AccountID) protocol.ProjectID {
	w.Helper()
	project, err := w.DB.Projects.CreateProject(w.Context(), account, "A project", nil)
	w.Must(err)
	return project.ProjectID
}

// move moves a conversation into a project; nil: out of its project.
func move(w *storetest.World, account protocol.AccountID, conversation protocol.ConversationID, to *protocol.ProjectID) {
	w.Helper()
	read, err := w.DB.Conversations.Conversation(w.Context(), account, conversation)
	w.Must(err)
	_, err = w.DB.Conversations.MoveConversation(w.Context(), account, &conversations.Move{
		ConversationID: conversation, ProjectID: to, Version: &read.Version,
	})
	w.Must(err)
}

// findAll returns all results of a search, page by page.
func findAll(w *storetest.World, account protocol.AccountID, request search.Query) (all []protocol.SearchResult, pages int) {
	w.Helper()
	for {
		page, next, err := w.DB.Search.Find(w.Context(), account, &request)
		w.Must(err)
		if len(page) > request.Limit {
			w.Errorf("a page of %d has %d results", request.Limit, len(page))
		}
		pages++
		if all = append(all, page...); next == nil {
			return all, pages
		}
		request.After = next
	}
}

// wantInProject checks what a search of a project finds, as the excerpts of its results.
func wantInProject(w *storetest.World, project protocol.ProjectID, query string, want ...string) {
	w.Helper()
	results, _ := findAll(w, w.Account, search.Query{Text: query, ProjectID: &project, Limit: 2})
	var texts []string
	for _, r := range results {
		if r.ProjectID == nil || *r.ProjectID != project {
			w.Errorf("%s found %+v", query, r)
		}
		texts = append(texts, string(r.Kind[:1])+": "+r.Snippet.Text)
	}
	if !slices.Equal(texts, want) {
		w.Errorf("%s found %q in the project, want %q", query, texts, want)
	}
}

func TestASearchOfAProjectFindsOnlyWhatIsInIt(t *testing.T) {
	w := storetest.NewWorld(t)
	project, second := newProject(w, w.Account), newProject(w, w.Account)
	inside, other := say(w, nil, "blue zebras inside"), say(w, nil, "zebras of another project")
	say(w, nil, "zebras outside")
	w.Database.Admin(t, `update conversations set provisional_title = ''`)
	move(w, w.Account, inside.ConversationID, &project)
	move(w, w.Account, other.ConversationID, &second)
	_, err := w.DB.Conversations.SetTitle(t.Context(), w.Account, inside.ConversationID, "All zebras", nil)
	w.Must(err)
	bothWays(w, func(w *storetest.World) {
		wantInProject(w, project, "zebras", "c: All zebras", "m: blue zebras inside")
		wantInProject(w, second, "zebras", "m: zebras of another project")
		wantInProject(w, project, "zebras -blue", "c: All zebras")
		wantInProject(w, project, `"zebras inside"`, "m: blue zebras inside")
		wantInProject(w, project, "outside")
		wantInProject(w, project, "-")
		for kind, want := range map[protocol.SearchKind]string{protocol.SearchConversation: "All zebras", protocol.SearchMessage: "blue zebras inside"} {
			results, _ := findAll(w, w.Account, search.Query{Text: "zebras", ProjectID: &project, Kind: kind, Limit: 10})
			if len(results) != 1 || results[0].Kind != kind || results[0].Snippet.Text != want {
				w.Errorf("kind %s: %+v", kind, results)
			}
		}
		results, _ := findAll(w, w.Account, search.Query{Text: "zebras", ProjectID: &project, Kind: protocol.SearchMessage, Limit: 10})
		r := results[0]
		if *r.ConversationID != inside.ConversationID || *r.MessageID != inside.UserMessageID || *r.BranchID != inside.BranchID || r.Title != "All zebras" ||
			!slices.Equal(r.Snippet.Highlights, []protocol.Highlight{{Start: 5, End: 11}}) {
			w.Errorf("the result is %+v", r)
		}
	})
	wantInProject(w, protocol.NewProjectID(), "zebras")
	if n := len(find(w, w.Account, "zebras", 10)); n != 4 {
		t.Errorf("the account has %d results", n)
	}
}

func TestASearchOfAProjectFollowsAMoveAtOnce(t *testing.T) {
	w := storetest.NewWorld(t)
	project, second := newProject(w, w.Account), newProject(w, w.Account)
	spec := say(w, nil, "a wandering zebra")
	w.Database.Admin(t, `update conversations set provisional_title = ''`)
	const found = "m: a wandering zebra"
	bothWays(w, func(w *storetest.World) {
		wantInProject(w, project, "zebra")
		move(w, w.Account, spec.ConversationID, &project)
		wantInProject(w, project, "zebra", found)
		move(w, w.Account, spec.ConversationID, &second)
		wantInProject(w, project, "zebra")
		wantInProject(w, second, "zebra", found)
		move(w, w.Account, spec.ConversationID, nil)
		wantInProject(w, second, "zebra")
	})
}

func TestASearchOfAProjectFollowsItsState(t *testing.T) {
	w := storetest.NewWorld(t)
	project := newProject(w, w.Account)
	spec, gone := say(w, nil, "a zebra"), say(w, nil, "a deleted zebra")
	w.Database.Admin(t, `update conversations set provisional_title = ''`)
	move(w, w.Account, spec.ConversationID, &project)
	move(w, w.Account, gone.ConversationID, &project)
	_, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: gone.ConversationID})
	w.Must(err)
	version := int64(1)
	change := func() *projects.Change { return &projects.Change{ProjectID: project, Version: &version} }
	for _, step := range []struct {
		name   string
		change func() error
		want   []string
	}{
		{"active", func() error { return nil }, []string{"m: a zebra"}},
		{"archived", func() error { _, err := w.DB.Projects.SetArchived(t.Context(), w.Account, change(), true); return err }, []string{"m: a zebra"}},
		{"deleted", func() error {
			_, _, err := w.DB.Projects.DeleteProject(t.Context(), w.Account, &projects.Deletion{Change: *change()})
			return err
		}, nil},
		{"restored", func() error {
			_, err := w.DB.Projects.RestoreProject(t.Context(), w.Account, change(), audit.Requester{})
			return err
		}, []string{"m: a zebra"}},
	} {
		w.Must(step.change())
		read, err := w.DB.Projects.Project(t.Context(), w.Account, project)
		w.Must(err)
		version = read.Version
		t.Log(step.name)
		bothWays(w, func(w *storetest.World) { wantInProject(w, project, "zebra", step.want...) })
		w.Database.Admin(t, `update messages set parts = parts`) // pending again
	}
}

func TestASearchOfAnotherAccountsProjectFindsNothing(t *testing.T) {
	w := storetest.NewWorld(t)
	other := w.OtherAccount()
	theirs := newProject(w, other)
	move(w, other, seed(w, other, 50, "canary of another account"), &theirs)
	seed(w, w.Account, 50, "canary of this account")
	bothWays(w, func(w *storetest.World) {
		if results, _ := findAll(w, w.Account, search.Query{Text: "canary", ProjectID: &theirs, Limit: 100}); len(results) != 0 {
			w.Errorf("found %+v", results)
		}
		if results, _ := findAll(w, other, search.Query{Text: "canary", ProjectID: &theirs, Limit: 100}); len(results) != 50 {
			w.Errorf("its owner found %d messages", len(results))
		}
	})
}

// TestEveryMatchInAProjectIsOnOnePage also searches as in a project of more rows than a search reads itself.
func TestEveryMatchInAProjectIsOnOnePage(t *testing.T) {
	w := storetest.NewWorld(t)
	project := newProject(w, w.Account)
	for i := range 6 {
		id := seed(w, w.Account, 150, "common word number{n}")
		if i%2 == 0 {
			move(w, w.Account, id, &project)
		}
	}
	check := func(w *storetest.World) {
		for query, want := range map[string]int{"common": 450, "number77": 3, "word common": 450, `"word common"`: 0, "common -number77": 447, "missing": 0} {
			for _, limit := range []int{100, fewOf(want)} {
				results, pages := findAll(w, w.Account, search.Query{Text: query, ProjectID: &project, Kind: protocol.SearchMessage, Limit: limit})
				distinct := map[protocol.MessageID]bool{}
				for i, r := range results {
					distinct[*r.MessageID] = true
					if *r.ProjectID != project || i > 0 && r.At.After(results[i-1].At) {
						w.Errorf("%s: result %d is %+v", query, i, r)
					}
				}
				if len(results) != want || len(distinct) != want {
					w.Errorf("%s, %d pages of %d: %d results, %d of them distinct, want %d", query, pages, limit, len(results), len(distinct), want)
				}
			}
		}
	}
	bothWays(w, check)
	w.DB.Search.SetFewRows(100)
	check(w)
}

// TestASearchOfAProjectReadsNothingOfTheRestOfTheAccount compares the pages that Postgres reads for a project in an account
// without and with many other messages.
func TestASearchOfAProjectReadsNothingOfTheRestOfTheAccount(t *testing.T) {
	w := storetest.NewWorld(t)
	project := newProject(w, w.Account)
	for range 5 {
		move(w, w.Account, seed(w, w.Account, 40, "common inside number{n}"), &project)
	}
	type search struct {
		query   string
		generic bool
	}
	var searches []search
	for _, query := range []string{"common", "number7", "absent", "everywhere"} {
		searches = append(searches, search{query, false}, search{query, true})
	}
	explain := func(s search) (plan string, pages int) {
		plan, pages, err := w.DB.Search.Explain(t.Context(), w.Account, &project, s.query, s.generic)
		w.Must(err)
		return plan, pages
	}
	indexed := func() {
		w.Must(w.DB.Search.Index(t.Context()))
		w.Database.Admin(t, `vacuum analyze search_rows`)
	}
	indexed()
	before := map[search]int{}
	for _, s := range searches {
		_, before[s] = explain(s)
	}
	seed(w, w.Account, 4000, "common outside everywhere number{n}")
	indexed()
	for _, s := range searches {
		plan, after := explain(s)
		const deeper = 2 // an index of more rows may have more levels
		if after > before[s]*deeper {
			t.Errorf("%+v: %d pages in an account of 200 messages, and %d with 4000 others:\n%s", s, before[s], after, plan)
		}
		if strings.Contains(plan, "search_rows_newest") || strings.Contains(plan, "search_rows_tokens") {
			t.Errorf("%+v: the plan reads rows of the whole account:\n%s", s, plan)
		}
	}
}
