package prompts

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/words"
)

// Filter selects prompts for a list.
type Filter struct {
	// Query is the beginning of a word of the name or of the description, in upper or lower case; empty: all. In a script without
	// spaces, it is any part of them.
	Query     string
	ProjectID *protocol.ProjectID // only those of this project; nil: of any
	Account   bool                // only those that belong to no project
}

// Position is the position of a list after a prompt.
type Position struct {
	Name string            `json:"n"`
	ID   protocol.PromptID `json:"i"`
}

const (
	// later is true for a name that does not begin with the query. The others come first.
	later = `(not starts_with(lower(%s), lower(@query)))`
	// spoken is a text with a space before each word.
	spoken = `' ' || translate(lower(%s), '-_./', '    ')`
)

// listSQL reads all prompts of the account: they are few, and a project has a part of them. The texts are read for a page only.
var listSQL = pg.WithinPage(`
	select `+columns+`, lower(p.name) as key, `+fmt.Sprintf(later, "p.name")+` as later
	from prompts p
	where p.account_id = @account and `+visible+`
	  and (@project::uuid is null or p.project_id = @project) and (not @of_account::bool or p.project_id is null)
	  and (@query = '' or strpos(`+fmt.Sprintf(spoken, "p.name || ' ' || p.description")+`, `+fmt.Sprintf(spoken, "@query")+`) > 0
		or @unspaced::bool and strpos(lower(p.name || ' ' || p.description), lower(@query)) > 0)
	  and (@from_start::bool or (`+fmt.Sprintf(later, "p.name")+`, lower(p.name), p.prompt_id) > (`+fmt.Sprintf(later, "@name")+`, lower(@name), @after))
	order by later, key, p.prompt_id limit @limit`,
	`prompt_id, project_id, name, description, text, version, created_at, updated_at`, `octet_length(text)`, `later, key, prompt_id`)

// List returns a page of the prompts of an account in the order of their names; those whose names begin with the query come first. It
// starts after a position; nil starts at the beginning. next is nil at the end.
func (s *Store) List(ctx context.Context, account protocol.AccountID, filter *Filter, after *Position, limit int) (page []protocol.Prompt, next *Position, err error) {
	first, _ := utf8.DecodeRuneInString(filter.Query)
	args := pgx.NamedArgs{
		"account": account, "project": filter.ProjectID, "of_account": filter.Account, "query": filter.Query, "unspaced": words.Unspaced(first),
		"from_start": after == nil, "name": "", "after": protocol.PromptID{}, "limit": limit + 1,
	}
	if after != nil {
		args["name"], args["after"] = after.Name, after.ID
	}
	page, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.Prompt], listSQL, args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing prompts: %w", err)
	}
	return pg.NextPage(page, limit, func(last *protocol.Prompt) Position { return Position{Name: last.Name, ID: last.PromptID} })
}
