package persistence

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// maxTitleInput bounds what a title is made from, in runes of each message: a title needs the gist only.
const maxTitleInput = 4000

const setAutoTitleSQL = `
	update conversations
	set title = @title, updated_at = now()
	where account_id = @account and conversation_id = @conversation and deleted_at is null
	  and title_source = 'auto' and title <> @title`

// SetAutoTitle gives a conversation a title that the service generated, unless the user named it. The version stays: it
// counts the account's own changes. set is false when the user's title is kept, when nothing changed and when the
// conversation was deleted.
func (db *DB) SetAutoTitle(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, title string) (set bool, err error) {
	title = firstRunes(strings.TrimSpace(title), maxTitleRunes)
	if title == "" {
		return false, nil
	}
	touched, err := db.Exec(ctx, account, setAutoTitleSQL, pgx.NamedArgs{"account": account, "conversation": id, "title": title})
	if err != nil {
		return false, fmt.Errorf("setting an automatic title: %w", err)
	}
	return touched == 1, nil
}

// titleInputSQL reads the first exchange of the active branch: the messages at depth 1 and 2 on its path.
const titleInputSQL = `
	select m.role, m.parts
	from conversations c
	join branch_segments s on s.account_id = c.account_id and s.branch_id = c.active_branch_id and s.from_depth <= 2
	cross join lateral (
		select role, parts, depth from messages
		where account_id = @account and branch_id = s.source_branch_id and depth between s.from_depth and least(s.to_depth, 2)
		order by depth limit 2) m
	where c.account_id = @account and c.conversation_id = @conversation and c.deleted_at is null
	order by m.depth`

// TitleInput reads what a title is made from: the text of the first question and of its answer, both cut to a bound.
func (db *DB) TitleInput(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (question, reply string, err error) {
	type message struct {
		Role  string
		Parts []protocol.Part
	}
	messages, err := Rows(ctx, db, account, pgx.RowToStructByName[message], titleInputSQL,
		pgx.NamedArgs{"account": account, "conversation": id})
	for _, m := range messages {
		if m.Role == protocol.RoleUser {
			question = textOf(m.Parts)
		} else {
			reply = textOf(m.Parts)
		}
	}
	return question, reply, err
}

// textOf joins the text of a message's parts, up to maxTitleInput.
func textOf(parts []protocol.Part) string {
	var texts []string
	for _, part := range parts {
		if part.Type == protocol.PartText && part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return firstRunes(strings.Join(texts, "\n"), maxTitleInput)
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
