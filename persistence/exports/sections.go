package exports

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/memory"
	"turnstone/persistence/pg"
	"turnstone/persistence/prompts"
	"turnstone/protocol"
	"turnstone/protocol/wire"
)

// sections write the files of an archive, one kind of resource each, in this order. Each reads pages by key and writes
// them at once.
var sections = []struct {
	what  string
	write func(s *Store, ctx context.Context, account protocol.AccountID, to *Archive) error
}{
	{"account", (*Store).account},
	{"settings", (*Store).settings},
	{"account's instructions", (*Store).accountInstructions},
	{"consents", (*Store).consents},
	{"locations", (*Store).allLocations},
	{"conversations", (*Store).allConversations},
	{"artifacts", (*Store).allArtifacts},
	{"research tasks", (*Store).allResearch},
	{"projects", (*Store).allProjects},
	{"instructions", (*Store).allInstructions},
	{"prompts", (*Store).allPrompts},
	{"shares", (*Store).allShares},
	{"files", (*Store).allFiles},
	{"usage", (*Store).allUsage},
}

// page is the number of rows that one statement reads.
const page = 500

// write writes one value as a file.
func (a *Archive) write(path string, v any) error {
	to, err := a.Create(path)
	if err != nil {
		return err
	}
	text, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}

func (s *Store) account(ctx context.Context, account protocol.AccountID, to *Archive) error {
	found, err := s.accounts.CredentialsOf(ctx, account)
	if err != nil {
		return err
	}
	return to.write("account.json", found.Account)
}

func (s *Store) settings(ctx context.Context, account protocol.AccountID, to *Archive) error {
	found, err := s.accounts.Settings(ctx, account)
	if err != nil {
		return err
	}
	return to.write("settings.json", found)
}

func (s *Store) consents(ctx context.Context, account protocol.AccountID, to *Archive) error {
	found, err := s.memory.Consents(ctx, account)
	if err != nil {
		return err
	}
	return to.write("memory_sources.json", protocol.List[protocol.MemoryConsent]{Data: found})
}

func (s *Store) allLocations(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after protocol.ConversationID
	return list(to, "location_contexts.json", "location_contexts", func() (found []memory.ExportedLocation, more bool, err error) {
		found, err = s.memory.Locations(ctx, account, after, page)
		if len(found) > 0 {
			after = found[len(found)-1].ConversationID
		}
		return found, len(found) == page, err
	})
}

// Temporary conversations are never exported. The order by identifier does not change while the account is in use.
const conversationIDsSQL = `
	select c.conversation_id from conversations c
	where c.account_id = @account and c.conversation_id > @after and ` + conversations.Visible + ` and not c.temporary
	order by c.conversation_id
	limit @limit`

func (s *Store) allConversations(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after protocol.ConversationID
	for {
		ids, err := pg.Rows(ctx, s.db, account, pgx.RowTo[protocol.ConversationID], conversationIDsSQL,
			pgx.NamedArgs{"account": account, "after": after, "limit": page})
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.archive(ctx, account, id, to); err != nil {
				return err
			}
			after = id
		}
		if len(ids) < page {
			return nil
		}
	}
}

// archive writes the two files of a conversation. A conversation that was deleted since it was listed, or that a
// deleted project hides, has none.
func (s *Store) archive(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, to *Archive) error {
	source, err := s.open(ctx, account, id)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := to.Create("conversations/" + id.String() + ".json")
	if err != nil {
		return err
	}
	if err := source.writeJSON(ctx, file); err != nil {
		return err
	}
	if file, err = to.Create("conversations/" + id.String() + ".md"); err != nil {
		return err
	}
	if err := source.writeMarkdown(ctx, file); err != nil {
		return err
	}
	to.Count("conversations", 1)
	to.Count("messages", source.written.messages)
	to.Count("branches", source.written.branches)
	to.Count("follow_ups", source.written.followUps)
	to.Count("feedback", source.written.feedback)
	if source.page.Draft.Content != "" {
		to.Count("drafts", 1)
	}
	return nil
}

// list writes a file with all objects of a kind, as an array in the member name. next reads their next page.
func list[T any](to *Archive, path, name string, next func() (page []T, more bool, err error)) error {
	file, err := to.Create(path)
	if err != nil {
		return err
	}
	object := newObject(file)
	object.begin(name)
	for more := true; more && object.err == nil; {
		var items []T
		if items, more, err = next(); err != nil {
			return err
		}
		for i := range items {
			object.item(&items[i])
		}
		to.Count(name, len(items))
	}
	object.end()
	return object.close()
}

// artifactsPage is as small as it is because a version may have a mebibyte.
const artifactsPage = 4

func (s *Store) allArtifacts(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after protocol.ExportedArtifact
	return list(to, "artifacts.json", "artifact_versions", func() (found []protocol.ExportedArtifact, more bool, err error) {
		found, err = s.artifacts(ctx, account, nil, false, &after)
		return found, len(found) == artifactsPage, err
	})
}

// researchPage is small because a task may keep a mebibyte of excerpts.
const researchPage = 4

func (s *Store) allResearch(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after protocol.TaskID
	return list(to, "research.json", "research_tasks", func() (found []protocol.ExportedResearch, more bool, err error) {
		found, err = s.research.Exported(ctx, account, after, researchPage)
		if len(found) > 0 {
			after = found[len(found)-1].TaskID
		}
		return found, len(found) == researchPage, err
	})
}

// exportedProject is an item of projects.json.
type exportedProject struct {
	protocol.Project
	Settings *protocol.ProjectSettings `json:"settings"`
}

// allProjects writes the projects that are not deleted: a deleted one hides all that is in it.
func (s *Store) allProjects(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after *protocol.ProjectID
	return list(to, "projects.json", "projects", func() (found []exportedProject, more bool, err error) {
		read, next, err := s.projects.ListProjects(ctx, account, "", after, page)
		if err != nil {
			return nil, false, err
		}
		after = next
		for i := range read {
			if read[i].State == protocol.ProjectDeleted {
				continue
			}
			settings, err := s.projects.Settings(ctx, account, read[i].ProjectID)
			if protocol.CodeOf(err) == protocol.CodeNotFound { // erased since it was listed
				continue
			}
			if err != nil {
				return nil, false, err
			}
			found = append(found, exportedProject{read[i], settings})
		}
		return found, next != nil, nil
	})
}

// exportedInstructions is an item of instructions.json: one version of the instructions of a project.
type exportedInstructions struct {
	ProjectID protocol.ProjectID `json:"project_id"`
	exportedVersion
}

// exportedVersion is an item of account_instructions.json: one version of the instructions of the account.
type exportedVersion struct {
	Version   int64     `json:"version"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
}

// instructionsPage is smaller than page, because instructions are long.
const instructionsPage = 50

const instructionsSQL = `
	select i.project_id, i.version, i.content, i.created_at
	from project_instructions i
	join projects p using (account_id, project_id)
	where i.account_id = @account and (i.project_id, i.version) > (@project, @version) and p.state <> 'deleted'
	order by i.project_id, i.version
	limit @limit`

func (s *Store) allInstructions(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after exportedInstructions
	return list(to, "instructions.json", "instructions", func() (found []exportedInstructions, more bool, err error) {
		found, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[exportedInstructions], instructionsSQL,
			pgx.NamedArgs{"account": account, "project": after.ProjectID, "version": after.Version, "limit": instructionsPage})
		if len(found) > 0 {
			after = found[len(found)-1]
		}
		return found, len(found) == instructionsPage, err
	})
}

const accountInstructionsSQL = `
	select version, content, created_at from account_instructions
	where account_id = @account and version > @version
	order by version
	limit @limit`

// accountInstructions writes every version of the instructions of the account.
func (s *Store) accountInstructions(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after exportedVersion
	return list(to, "account_instructions.json", "account_instructions", func() (found []exportedVersion, more bool, err error) {
		found, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[exportedVersion], accountInstructionsSQL,
			pgx.NamedArgs{"account": account, "version": after.Version, "limit": instructionsPage})
		if len(found) > 0 {
			after = found[len(found)-1]
		}
		return found, len(found) == instructionsPage, err
	})
}

// allPrompts writes the prompts of the account and of the projects that are not deleted.
func (s *Store) allPrompts(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after *prompts.Position
	return list(to, "prompts.json", "prompts", func() (found []protocol.Prompt, more bool, err error) {
		found, after, err = s.prompts.List(ctx, account, &prompts.Filter{}, after, page)
		return found, after != nil, err
	})
}

// allShares writes the shares that can still be read, without their secret addresses, which are not stored.
func (s *Store) allShares(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after *protocol.ShareID
	return list(to, "shares.json", "shares", func() (found []protocol.Share, more bool, err error) {
		found, after, err = s.shares.List(ctx, account, after, page)
		return found, after != nil, err
	})
}

const usageSQL = `
	select usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at
	from usage_records
	where account_id = @account and usage_id > @after
	order by usage_id
	limit @limit`

func (s *Store) allUsage(ctx context.Context, account protocol.AccountID, to *Archive) error {
	var after protocol.UsageID
	return list(to, "usage.json", "usage_records", func() (found []protocol.UsageRecord, more bool, err error) {
		found, err = pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.UsageRecord], usageSQL,
			pgx.NamedArgs{"account": account, "after": after, "limit": page})
		if len(found) > 0 {
			after = found[len(found)-1].UsageID
		}
		return found, len(found) == page, err
	})
}
