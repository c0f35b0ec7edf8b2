package conversations

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/clip"
)

// maxTitleInput limits the text of each message that a title is generated from, in runes. A longer text does not
// improve the title.
const maxTitleInput = 4000

// ProvisionalTitle returns the first words of a message. They are the title of its conversation until the service
// generates a title, which it does only when an answer completes, or the user sets one.
func ProvisionalTitle(message string) string {
	words := strings.Fields(clip.Runes(message, maxTitleInput))
	title := ""
	for _, word := range words {
		if strings.HasPrefix(word, "```") {
			break // code is not a title
		}
		next := strings.TrimSpace(title + " " + word)
		if utf8.RuneCountInString(next) > protocol.MaxProvisionalTitle {
			if title == "" { // a long word, or a language without spaces
				title = clip.Runes(word, protocol.MaxProvisionalTitle-1)
			}
			return title + "…"
		}
		title = next
	}
	return title
}

const setAutoTitleSQL = `
	update conversations c
	set title = @title, updated_at = now()
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible + `
	  and title_source = 'auto' and title <> @title`

// SetAutoTitle stores a title that the service generated, unless the user chose one. The version does not change: it
// counts the account's own changes. set is false if the user's title is kept, if nothing changed, or if the
// conversation was deleted.
func (s *Store) SetAutoTitle(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, title string) (set bool, err error) {
	title = clip.Runes(strings.TrimSpace(title), protocol.MaxTitle)
	if title == "" {
		return false, nil
	}
	touched, err := s.db.Exec(ctx, account, setAutoTitleSQL, pgx.NamedArgs{"account": account, "conversation": id, "title": title})
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
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible + `
	order by m.depth`

// TitleInput reads the text that a title is generated from: the first user message and its answer, both truncated to
// maxTitleInput.
func (s *Store) TitleInput(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (question, reply string, err error) {
	type message struct {
		Role  string
		Parts []protocol.Part
	}
	messages, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[message], titleInputSQL,
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

// textOf joins the text parts of a message, up to maxTitleInput runes.
func textOf(parts []protocol.Part) string {
	var texts []string
	for _, part := range parts {
		if part.Type == protocol.PartText && part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return clip.Runes(strings.Join(texts, "\n"), maxTitleInput)
}
