package queues

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const (
	lengthSQL = `
select (select count(*) from (
           select from follow_ups where account_id = $1 and conversation_id = $2 and ` + open.FollowUps + ` limit $3) waiting),
       (select coalesce(max(position), 0) from follow_ups where account_id = $1 and conversation_id = $2)`
	insertSQL = `
insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, attachments, profile, tools, position, created_at)
values (@account, @follow_up, @conversation, 'queued', @content, @attachments, @profile, @tools, @position, @at)`
)

// Append adds the statements to batch that store a follow-up at the end of its queue. The caller has attached its files
// (conversations.AttachFiles). The error is protocol.CodeTooManyFollowUps if the queue is full.
func Append(ctx context.Context, tx *pg.Tx, batch *pgx.Batch, f *turnlog.NewFollowUp) (*protocol.FollowUp, error) {
	var waiting int
	var last int64
	if err := tx.QueryRow(ctx, lengthSQL, f.AccountID, f.ConversationID, protocol.MaxFollowUps).Scan(&waiting, &last); err != nil {
		return nil, err
	}
	if waiting >= protocol.MaxFollowUps {
		return nil, protocol.Errorf(protocol.CodeTooManyFollowUps,
			"%d queued messages are waiting in this conversation, which is the limit. Cancel one, or wait until one has started.", waiting)
	}
	item := &protocol.FollowUp{
		FollowUpID: protocol.NewFollowUpID(), State: protocol.FollowUpQueued, Content: f.Content, Attachments: append([]protocol.FileID{}, f.Attachments...),
		Tools: f.Tools, Position: last + 1, Version: 1, CreatedAt: protocol.Millis(f.At),
	}
	if f.Profile != "" {
		item.Profile = &f.Profile
	}
	batch.Queue(insertSQL, pgx.NamedArgs{
		"account": f.AccountID, "conversation": f.ConversationID, "follow_up": item.FollowUpID, "content": item.Content, "attachments": item.Attachments,
		"profile": item.Profile, "tools": item.Tools, "position": item.Position, "at": item.CreatedAt,
	})
	Touch(batch, f.AccountID, f.ConversationID)
	return item, nil
}

const insertReturnedSQL = `
insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position, source, created_at)
select @account, p.follow_up_id, @conversation, 'held', p.content,
       (select coalesce(max(position), 0) from follow_ups where account_id = @account and conversation_id = @conversation) + p.place,
       'steering', @at
from unnest(@parked::uuid[], @texts::text[]) with ordinality as p (follow_up_id, content, place)`

// AppendReturned adds the statements that store returned inputs as held follow-ups. Without inputs, it adds none.
func AppendReturned(batch *pgx.Batch, account protocol.AccountID, conversation protocol.ConversationID, at time.Time, inputs []turnlog.ReturnedInput) {
	if len(inputs) == 0 {
		return
	}
	ids, texts := make([]protocol.FollowUpID, len(inputs)), make([]string, len(inputs))
	for i, input := range inputs {
		ids[i], texts[i] = input.FollowUpID, input.Text
	}
	batch.Queue(insertReturnedSQL, pgx.NamedArgs{"account": account, "conversation": conversation, "at": protocol.Millis(at), "parked": ids, "texts": texts})
	Touch(batch, account, conversation)
}

const insertImportedSQL = `
	insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, attachments, profile, tools, position, version, created_at)
	select @account, f.id, @conversation, f.state, f.content, f.files::uuid[], f.profile, f.tools::jsonb, f.position, f.version, f.created
	from unnest(@ids::uuid[], @states::text[], @contents::text[], @files::text[], @profiles::text[], @tools::text[], @positions::bigint[], @versions::bigint[], @created::timestamptz[])
		as f (id, state, content, files, profile, tools, position, version, created)`

// Import stores follow-ups as they are, also their positions and versions. The conversation is new, so nobody has seen a version of
// its queue.
func Import(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation protocol.ConversationID, items []protocol.FollowUp) error {
	var f struct {
		ids                     []protocol.FollowUpID
		states, contents, files []string
		profiles, tools         []*string
		positions, versions     []int64
		created                 []time.Time
	}
	for i := range items {
		item := &items[i]
		var tools *string
		if item.Tools != nil {
			text, err := pg.JSONText(item.Tools)
			if err != nil {
				return fmt.Errorf("encoding the tools of a follow-up: %w", err)
			}
			encoded := string(text)
			tools = &encoded
		}
		f.ids, f.states, f.contents = append(f.ids, item.FollowUpID), append(f.states, string(item.State)), append(f.contents, item.Content)
		f.files, f.profiles, f.tools = append(f.files, pg.ArrayText(item.Attachments)), append(f.profiles, (*string)(item.Profile)), append(f.tools, tools)
		f.positions, f.versions, f.created = append(f.positions, item.Position), append(f.versions, item.Version), append(f.created, item.CreatedAt)
	}
	_, err := tx.Exec(ctx, insertImportedSQL, pgx.NamedArgs{
		"account": account, "conversation": conversation, "ids": f.ids, "states": f.states, "contents": f.contents, "files": f.files,
		"profiles": f.profiles, "tools": f.tools, "positions": f.positions, "versions": f.versions, "created": f.created,
	})
	return err
}
