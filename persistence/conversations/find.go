package conversations

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/words"
)

// The limits of what one FindText reads: messages, and bytes of their parts.
const (
	maxFindMessages = 2000
	maxFindBytes    = 8 << 20
)

// FindQuery selects the messages of a branch in which a text may occur.
type FindQuery struct {
	ConversationID protocol.ConversationID
	BranchID       *protocol.BranchID // nil: the active branch
	Text           string
	After          int // the search starts after this depth
	Limit          int
}

// FoundPage has the messages that were found, oldest first.
type FoundPage struct {
	BranchID protocol.BranchID
	Messages []protocol.FoundMessage
	Head     *protocol.MessageID // the last message of the branch; nil: it is empty
	Depth    int                 // number of messages of the branch
	Next     int                 // depth of the last message that was searched; 0: all were
}

// findTextSQL reads the messages after a depth by key, one after the other, until they have @bytes. Without the limit of one, all
// messages of the account might be read first, to join them.
const findTextSQL = `
	with recursive scanned (depth, bytes, message_id, role, parts) as (
		select @after::int, 0::bigint, null::uuid, null::text, null::json
		union all
		select m.depth, s.bytes + octet_length(m.parts::text), m.message_id, m.role, m.parts
		from scanned s
		cross join lateral (
			select source_branch_id from branch_segments
			where account_id = @account and branch_id = @branch and to_depth > s.depth
			order by to_depth limit 1) g
		cross join lateral (
			select depth, message_id, role, parts from messages
			where account_id = @account and branch_id = g.source_branch_id and depth = s.depth + 1
			limit 1) m
		where s.bytes < @bytes and s.depth < @to::int
	)
	select depth, bytes, message_id, role, coalesce((
		select json_agg(p) from json_array_elements(parts) p where p ->> 'type' in ('text', 'code')), '[]') as parts
	from scanned where message_id is not null
	order by depth`

// FindText returns the messages of a branch that may contain a text: those that have each of its words, in the text or the code of the
// message. It reads a limited number of messages, and a page has at most query.Limit of them, and about
// pg.PageBytes.
func (s *Store) FindText(ctx context.Context, account protocol.AccountID, query *FindQuery) (*FoundPage, error) {
	selected, err := s.findPath(ctx, account, &MessageQuery{ConversationID: query.ConversationID, BranchID: query.BranchID})
	if err != nil {
		return nil, fmt.Errorf("finding a branch: %w", err)
	}
	page := &FoundPage{BranchID: selected.BranchID, Messages: []protocol.FoundMessage{}, Head: selected.HeadMessageID, Depth: selected.HeadDepth}
	wanted := patternOf(query.Text)
	to := query.After    // the depth up to which messages are read
	last := query.After  // the depth of the last message that was searched
	size, bytes := 0, 0  // what was found, and what was read in this round
	left := maxFindBytes // what may still be read
	full := func() bool { return size > pg.PageBytes || len(page.Messages) == query.Limit }
	read := func(row pgx.CollectableRow) (_ struct{}, err error) {
		var found protocol.FoundMessage
		var parts []protocol.Part
		if err := row.Scan(&found.Position, &bytes, &found.MessageID, &found.Role, &parts); err != nil || full() {
			return struct{}{}, err
		}
		last = found.Position
		for i := range parts {
			found.Parts = append(found.Parts, protocol.FoundPart{Type: parts[i].Type, Text: parts[i].Text, Language: parts[i].Language, Code: parts[i].Code})
		}
		if wanted.mayBeIn(found.Parts) {
			text, err := json.Marshal(found)
			if err != nil {
				return struct{}{}, fmt.Errorf("measuring a message: %w", err)
			}
			size += len(text)
			page.Messages = append(page.Messages, found)
		}
		return struct{}{}, nil
	}
	// A text that is in most messages fills the page with the first messages that are read, so few are read at first.
	for step := query.Limit; last == to && left > 0 && !full() && to < min(selected.HeadDepth, query.After+maxFindMessages); step *= 2 {
		to = min(to+step, selected.HeadDepth, query.After+maxFindMessages)
		_, err := pg.Rows(ctx, s.db, account, read, findTextSQL, pgx.NamedArgs{
			"account": account, "branch": page.BranchID, "after": last, "to": to, "bytes": left,
		})
		if err != nil {
			return nil, fmt.Errorf("searching messages: %w", err)
		}
		left -= bytes
	}
	if last < selected.HeadDepth && last > query.After {
		page.Next = last
	}
	return page, nil
}

// pattern is what a text must contain: words, which the marks of Markdown may interrupt. A text without words is its signs.
type pattern struct{ words, signs []string }

func patternOf(text string) pattern {
	p := pattern{words: strings.FieldsFunc(string(folded(text)), func(c rune) bool { return !words.InWord(c) })}
	if len(p.words) == 0 {
		p.signs = strings.Split(strings.Join(strings.Fields(string(folded(text))), ""), "")
	}
	return p
}

// linkTarget matches the part of a Markdown link that is not displayed, after its text.
var linkTarget = regexp.MustCompile(`\]\([^()\s]*(\s+"[^"]*")?\)|\]\[[^\]]*\]`)

// mayBeIn reports whether the text of some parts may contain the pattern as it is displayed.
func (p pattern) mayBeIn(parts []protocol.FoundPart) bool {
	var text strings.Builder
	for i := range parts {
		text.WriteString(parts[i].Text)
		text.WriteString(parts[i].Code)
		text.WriteByte('\n')
	}
	written := text.String()
	displayed := linkTarget.ReplaceAllString(html.UnescapeString(written), "")
	has := func(text string) bool { return p.isIn(string(folded(text))) }
	return has(written) || displayed != written && has(displayed)
}

func (p pattern) isIn(text string) bool {
	for _, sign := range p.signs {
		if !strings.Contains(text, sign) {
			return false
		}
	}
	letters := strings.Map(func(c rune) rune {
		if words.InWord(c) {
			return c
		}
		return -1
	}, text)
	for _, word := range p.words {
		if !strings.Contains(letters, word) {
			return false
		}
	}
	return true
}

func folded(text string) []byte {
	form := make([]byte, 0, len(text))
	for _, c := range text {
		if unicode.IsSpace(c) {
			form = append(form, ' ')
		} else {
			form = words.Fold(form, c)
		}
	}
	return form
}
