package prompts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/persistence/prompts"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// fixture is a World with a project.
type fixture struct {
	*storetest.World
	project protocol.ProjectID
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := storetest.NewWorld(t)
	project, err := w.DB.Projects.CreateProject(t.Context(), w.Account, "Kitchen", nil)
	w.Must(err)
	return &fixture{w, project.ProjectID}
}

// create stores a prompt of the account or of a project.
func (f *fixture) create(project *protocol.ProjectID, name, description string) *protocol.Prompt {
	f.Helper()
	made, err := f.DB.Prompts.Create(f.Context(), f.Account, &protocol.Prompt{ProjectID: project, Name: name, Description: description, Text: "Text of " + name})
	f.Must(err)
	return made
}

// names returns the names of a list, page by page.
func (f *fixture) names(filter prompts.Filter, limit int) (names []string) {
	f.Helper()
	for after := (*prompts.Position)(nil); ; {
		page, next, err := f.DB.Prompts.List(f.Context(), f.Account, &filter, after, limit)
		f.Must(err)
		if len(page) > limit || next != nil && len(page) == 0 {
			f.Fatalf("a page has %d prompts", len(page))
		}
		for _, prompt := range page {
			names = append(names, prompt.Name)
		}
		if after = next; next == nil {
			return names
		}
	}
}

func (f *fixture) changeProject(change func(*projects.Change) error) {
	f.Helper()
	project, err := f.DB.Projects.Project(f.Context(), f.Account, f.project)
	f.Must(err)
	f.Must(change(&projects.Change{ProjectID: f.project, Version: &project.Version}))
}

func (f *fixture) deleteProject() {
	f.Helper()
	f.changeProject(func(change *projects.Change) error {
		_, _, err := f.DB.Projects.DeleteProject(f.Context(), f.Account, &projects.Deletion{Change: *change})
		return err
	})
}

func TestANameIsUniqueInItsProjectAndAmongThoseOfTheAccount(t *testing.T) {
	f := newFixture(t)
	first := f.create(nil, "Grüße", "")
	f.create(&f.project, "Grüße", "")
	for _, name := range []string{"Grüße", "GRÜSSE", "grüße", "GRÜßE"} {
		_, err := f.DB.Prompts.Create(t.Context(), f.Account, &protocol.Prompt{Name: name, Text: "x"})
		if name == "GRÜSSE" { // another name, as it is typed
			f.Must(err)
			continue
		}
		storetest.WantCode(t, err, protocol.CodeNameTaken)
	}
	other := f.create(nil, "other", "")
	_, err := f.DB.Prompts.Change(t.Context(), f.Account, &prompts.Change{PromptID: other.PromptID, Version: &other.Version, Name: new("GRÜßE")})
	storetest.WantCode(t, err, protocol.CodeNameTaken)
	changed, err := f.DB.Prompts.Change(t.Context(), f.Account, &prompts.Change{PromptID: first.PromptID, Version: &first.Version, Name: new("GRÜßE")})
	if err != nil || changed.Name != "GRÜßE" || changed.Version != 2 {
		t.Errorf("its own name in upper case: %+v, %v", changed, err)
	}
}

func TestOfConcurrentRequestsForANameOneSucceeds(t *testing.T) {
	f := newFixture(t)
	created := 0
	for _, err := range storetest.Together(8, func(int) error {
		_, err := f.DB.Prompts.Create(t.Context(), f.Account, &protocol.Prompt{Name: "greet", Text: "x"})
		return err
	}) {
		if err == nil {
			created++
			continue
		}
		storetest.WantCode(t, err, protocol.CodeNameTaken)
	}
	if created != 1 || f.Count(`select count(*) from prompts`) != 1 {
		t.Errorf("%d were created", created)
	}
}

func TestAnAccountHasALimitedNumberOfPrompts(t *testing.T) {
	f := newFixture(t)
	f.Database.Admin(t, `insert into prompts (account_id, prompt_id, project_id, name, text)
		select $1, gen_random_uuid(), case when n % 2 = 0 then $3::uuid end, 'p' || n, 'x' from generate_series(1, $2) n`, f.Account, protocol.MaxPrompts-1, f.project)
	f.create(nil, "last", "")
	_, err := f.DB.Prompts.Create(t.Context(), f.Account, &protocol.Prompt{Name: "over", Text: "x"})
	storetest.WantCode(t, err, protocol.CodeTooManyPrompts)
	f.deleteProject() // its prompts can be restored, so they count
	_, err = f.DB.Prompts.Create(t.Context(), f.Account, &protocol.Prompt{Name: "over", Text: "x"})
	storetest.WantCode(t, err, protocol.CodeTooManyPrompts)
}

func TestChangesOfAPromptFollowTheVersionRule(t *testing.T) {
	f := newFixture(t)
	made := f.create(nil, "greet", "Politely")
	change := func(version *int64, text string) (*protocol.Prompt, error) {
		return f.DB.Prompts.Change(t.Context(), f.Account, &prompts.Change{PromptID: made.PromptID, Version: version, Text: &text})
	}
	_, err := change(nil, "Hello")
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	_, err = change(new(int64(7)), "Hello")
	storetest.WantCode(t, err, protocol.CodeStaleVersion)
	for _, version := range []int64{1, 2} { // the second one changes nothing
		changed, err := change(&version, "Hello")
		if err != nil || changed.Version != 2 || changed.Text != "Hello" || changed.Name != "greet" || changed.Description != "Politely" {
			t.Errorf("%+v, %v", changed, err)
		}
	}
	if changed, err := change(new(protocol.AnyVersion), "Hi"); err != nil || changed.Version != 3 {
		t.Errorf("any version: %+v, %v", changed, err)
	}
	storetest.WantCode(t, f.DB.Prompts.Delete(t.Context(), f.Account, made.PromptID, new(int64(2))), protocol.CodeStaleVersion)
	storetest.WantCode(t, f.DB.Prompts.Delete(t.Context(), f.OtherAccount(), made.PromptID, nil), protocol.CodeNotFound)
	f.Must(f.DB.Prompts.Delete(t.Context(), f.Account, made.PromptID, new(int64(3))))
	storetest.WantCode(t, f.DB.Prompts.Delete(t.Context(), f.Account, made.PromptID, nil), protocol.CodeNotFound)
}

func TestAnArchivedProjectKeepsItsPromptsAsTheyAre(t *testing.T) {
	f := newFixture(t)
	made := f.create(&f.project, "scale", "")
	f.changeProject(func(change *projects.Change) error {
		_, err := f.DB.Projects.SetArchived(t.Context(), f.Account, change, true)
		return err
	})
	_, err := f.DB.Prompts.Create(t.Context(), f.Account, &protocol.Prompt{ProjectID: &f.project, Name: "new", Text: "x"})
	storetest.WantCode(t, err, protocol.CodeConflict)
	_, err = f.DB.Prompts.Change(t.Context(), f.Account, &prompts.Change{PromptID: made.PromptID, Version: &made.Version, Text: new("x")})
	storetest.WantCode(t, err, protocol.CodeConflict)
	storetest.WantCode(t, f.DB.Prompts.Delete(t.Context(), f.Account, made.PromptID, nil), protocol.CodeConflict)
	if names := f.names(prompts.Filter{ProjectID: &f.project}, 10); !slices.Equal(names, []string{"scale"}) {
		t.Errorf("the project has %q", names)
	}
}

func TestADeletedProjectHidesItsPromptsAndItsPurgeErasesThem(t *testing.T) {
	f := newFixture(t)
	made := f.create(&f.project, "scale", "")
	f.create(nil, "greet", "")
	f.deleteProject()
	if names := f.names(prompts.Filter{}, 10); !slices.Equal(names, []string{"greet"}) {
		t.Errorf("beside a deleted project, the account has %q", names)
	}
	if names := f.names(prompts.Filter{ProjectID: &f.project}, 10); len(names) != 0 {
		t.Errorf("a deleted project has %q", names)
	}
	_, err := f.DB.Prompts.Get(t.Context(), f.Account, made.PromptID)
	storetest.WantCode(t, err, protocol.CodeNotFound)
	storetest.WantCode(t, f.DB.Prompts.OwnsPrompt(t.Context(), f.Account, made.PromptID), protocol.CodeNotFound)
	storetest.WantCode(t, f.DB.Prompts.Delete(t.Context(), f.Account, made.PromptID, nil), protocol.CodeNotFound)
	_, err = f.DB.Prompts.Create(t.Context(), f.Account, &protocol.Prompt{ProjectID: &f.project, Name: "new", Text: "x"})
	storetest.WantCode(t, err, protocol.CodeNotFound)

	f.changeProject(func(change *projects.Change) error {
		_, err := f.DB.Projects.RestoreProject(t.Context(), f.Account, change, audit.Requester{})
		return err
	})
	if found, err := f.DB.Prompts.Get(t.Context(), f.Account, made.PromptID); err != nil || found.Version != 1 {
		t.Errorf("after the restore: %+v, %v", found, err)
	}
	for n := range 5 {
		f.create(&f.project, fmt.Sprint("more-", n), "")
	}
	f.deleteProject()
	f.Database.Admin(t, `update projects set purge_at = now() - interval '1 day' where project_id = $1`, f.project)
	const rows = 2 // of one transaction
	for done := false; !done; {
		done, err = f.DB.Projects.PurgeProject(t.Context(), f.Account, f.project, rows, f.DB.Conversations.EraseOfProject)
		f.Must(err)
	}
	if n := f.Count(`select count(*) from prompts`); n != 1 {
		t.Errorf("%d prompts are left", n)
	}
}

func TestPromptsAreFoundByTheBeginningsOfTheirWords(t *testing.T) {
	f := newFixture(t)
	f.create(nil, "review", "Of code, kindly")
	f.create(nil, "code-review", "")
	f.create(&f.project, "Recipe", "For the week")
	f.create(nil, "preview_page", "")
	f.create(nil, "要約", "長い文章を短くする")
	f.create(nil, "zebra", "")
	foreign := f.OtherAccount()
	_, err := f.DB.Prompts.Create(t.Context(), foreign, &protocol.Prompt{Name: "review-of-others", Text: "x"})
	f.Must(err)
	for _, each := range []struct {
		filter prompts.Filter
		want   []string
	}{
		{prompts.Filter{}, []string{"code-review", "preview_page", "Recipe", "review", "zebra", "要約"}},
		{prompts.Filter{Account: true}, []string{"code-review", "preview_page", "review", "zebra", "要約"}},
		{prompts.Filter{ProjectID: &f.project}, []string{"Recipe"}},
		{prompts.Filter{ProjectID: &f.project, Account: true}, nil},
		{prompts.Filter{Query: "re"}, []string{"Recipe", "review", "code-review"}},
		{prompts.Filter{Query: "RE", ProjectID: &f.project}, []string{"Recipe"}},
		{prompts.Filter{Query: "code"}, []string{"code-review", "review"}},
		{prompts.Filter{Query: "code-re"}, []string{"code-review"}},
		{prompts.Filter{Query: "page"}, []string{"preview_page"}},
		{prompts.Filter{Query: "view"}, nil},
		{prompts.Filter{Query: "文章"}, []string{"要約"}},
		{prompts.Filter{Query: "usr/bin"}, nil},
		{prompts.Filter{Query: "%"}, nil},
	} {
		if got := f.names(each.filter, 1); !slices.Equal(got, each.want) {
			t.Errorf("%+v lists %q, want %q", each.filter, got, each.want)
		}
		if got := f.names(each.filter, 100); !slices.Equal(got, each.want) {
			t.Errorf("%+v lists %q on one page, want %q", each.filter, got, each.want)
		}
	}
}

func TestAPageOfTheLargestPromptsIsBounded(t *testing.T) {
	f := newFixture(t)
	const stored = 40
	for n := range stored {
		_, err := f.DB.Prompts.Create(t.Context(), f.Account, &protocol.Prompt{Name: fmt.Sprintf("p%02d", n), Text: strings.Repeat("\U0001F30A", protocol.MaxPromptText)})
		f.Must(err)
	}
	page, next, err := f.DB.Prompts.List(t.Context(), f.Account, &prompts.Filter{}, nil, 100)
	f.Must(err)
	if text, err := pg.JSONText(&page); err != nil || len(text) > pg.PageBytes+1<<10 || len(page) < 10 || next == nil {
		t.Errorf("a page has %d prompts of %d bytes, %v", len(page), len(text), err)
	}
	if names := f.names(prompts.Filter{}, 100); len(names) != stored || !slices.IsSorted(names) {
		t.Errorf("%d prompts, %q", len(names), names)
	}
}
