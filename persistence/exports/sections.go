package exports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
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
	{"conversations", (*Store).allConversations},
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

const usageSQL = `
	select usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, usage, occurred_at
	from usage_records
	where account_id = @account and usage_id > @after
	order by usage_id
	limit @limit`

func (s *Store) allUsage(ctx context.Context, account protocol.AccountID, to *Archive) error {
	file, err := to.Create("usage.json")
	if err != nil {
		return err
	}
	object := newObject(file)
	object.begin("usage_records")
	var after protocol.UsageID
	for {
		records, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[protocol.UsageRecord], usageSQL,
			pgx.NamedArgs{"account": account, "after": after, "limit": page})
		if err != nil {
			return err
		}
		for i := range records {
			object.item(&records[i])
			after = records[i].UsageID
		}
		to.Count("usage_records", len(records))
		if len(records) < page || object.err != nil {
			break
		}
	}
	object.end()
	return object.close()
}
