package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// historySQL reads the newest messages of a branch up to message $3: at most $4 of them, with at most $5 bytes of
// parts, but always $3 itself, and none up to depth $7. Its cost depends on the messages that it returns, not on the length of the conversation:
// the depths are bounded on both sides, and each segment of the path holds at least one of them. A message is
// decompressed to be measured only while the sum of the compressed sizes (without their headers of up to 4 bytes), which
// cost nothing to read, is within the limit.
const historySQL = `
with span as materialized (
    select greatest(depth - $4::int, $7::int) + 1 as first, depth as last
    from (select conversation_id, depth from messages where account_id = $1 and message_id = $3 limit 1) m where conversation_id = $2
)
select depth, message_id, parent_message_id, role, status, parts, attachments from (
    select depth, message_id, parent_message_id, role, status, parts, attachments, last, sum(octet_length(parts::text)) over (order by depth desc) as bytes
    from (
        select m.depth, m.message_id, m.parent_message_id, m.role, m.status, m.parts, m.attachments, span.last, sum(pg_column_size(m.parts) - 4) over (order by m.depth desc) as stored
        from span
        cross join lateral (
            select source_branch_id, from_depth, to_depth from branch_segments
            where account_id = $1 and branch_id = $6 and to_depth >= span.first
            order by to_depth limit $4) s
        cross join lateral (
            select depth, message_id, parent_message_id, role, status, parts, attachments from messages
            where account_id = $1 and branch_id = s.source_branch_id
              and depth between greatest(s.from_depth, span.first) and least(s.to_depth, span.last)
            order by depth desc limit $4) m
    ) sized where stored <= $5 or depth = last
) measured where bytes <= $5 or depth = last
order by depth desc`

type historyRow struct {
	turnlog.HistoryMessage
	depth  int
	id     protocol.MessageID
	parent *protocol.MessageID
	bytes  int // of the parts, as JSON
}

func scanHistory(row pgx.CollectableRow) (h historyRow, err error) {
	var parts []byte
	if err = row.Scan(&h.depth, &h.id, &h.parent, &h.Role, &h.Status, &parts, &h.Attachments); err != nil {
		return h, err
	}
	h.bytes = len(parts)
	return h, json.Unmarshal(parts, &h.Parts)
}

const (
	// maxHistories limits the memory of the histories that are kept, in bytes.
	maxHistories = 32 << 20
	// historyIdle is how long a history is kept after its last use.
	historyIdle = 10 * time.Minute
	// leastHistory is the number of messages from which a history is kept: shorter ones are read quickly.
	leastHistory = 50
	// The memory of a message, of a part, and of a citation or a source of a part without their texts, in bytes. A decoder of JSON
	// makes room for more elements of a list than there are.
	rowOverhead    = 200
	partOverhead   = 500
	detailOverhead = 150
)

// memory estimates the memory of a message, in bytes. Most of it can be what its parts need besides their texts.
func (h *historyRow) memory() int {
	size := rowOverhead + h.bytes + len(h.Parts)*partOverhead
	for i := range h.Parts {
		size += (len(h.Parts[i].Citations) + len(h.Parts[i].Sources)) * detailOverhead
	}
	return size
}

// historyKey names a conversation of an account.
type historyKey struct {
	account      protocol.AccountID
	conversation protocol.ConversationID
}

// history is a part of the path to its last message, oldest first and without gaps. It never changes, because
// a message never changes once it has ended, and neither do its ancestors. So any later message with this
// path has the same history, in whatever branch, and only what is newer has to be read.
type history []historyRow

func (h history) last() *historyRow { return &h[len(h)-1] }

// precedes reports whether the last message of h is the parent of the first message of newer.
func (h history) precedes(newer history) bool {
	parent := newer[0].parent
	return parent != nil && *parent == h.last().id && newer[0].depth == h.last().depth+1
}

// cut returns the newest messages: at most maxMessages, with at most maxBytes of parts, but always the last one. whole reports
// that no older message belongs to them, so that the result is the same as that of historySQL.
func (h history) cut(maxMessages, maxBytes int) (newest history, whole bool) {
	first, bytes := len(h)-1, h.last().bytes
	for first > 0 && len(h)-first < maxMessages && bytes+h[first-1].bytes <= maxBytes {
		first--
		bytes += h[first].bytes
	}
	return h[first:], first > 0 || len(h) == maxMessages || h[0].depth == 1
}

// ended reports whether no message of h can change any more.
func (h history) ended() bool {
	return !slices.ContainsFunc(h, func(row historyRow) bool { return row.Status == protocol.MessageStreaming })
}

// History returns the messages of a branch up to a given one, oldest first: the newest maxMessages of them, with at
// most maxBytes of parts, but always the last one. more reports that older messages were left out. Of a long history that was
// read before, only the new messages are read.
func (t *Store) History(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	branch protocol.BranchID, message protocol.MessageID, maxMessages, maxBytes int,
) (messages []turnlog.HistoryMessage, more bool, err error) {
	key := historyKey{account, conversation}
	read := func(after int) (history, error) {
		return pg.Rows(ctx, t.db, account, scanHistory, historySQL, account, conversation, message, maxMessages, maxBytes, branch, after)
	}
	found, err := t.extendHistory(key, message, maxMessages, maxBytes, read)
	if err == nil && found == nil {
		found, err = read(0)
		slices.Reverse(found)
		if err == nil && len(found) == 0 {
			err = pg.NotFound()
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading a history: %w", err)
	}
	if len(found) >= leastHistory && found.ended() {
		size := 0
		for i := range found {
			size += found[i].memory()
		}
		t.histories.Put(key, found, size)
	}
	messages = make([]turnlog.HistoryMessage, 0, len(found))
	for i := range found {
		messages = append(messages, found[i].HistoryMessage)
	}
	return messages, found[0].depth > 1, nil
}

// extendHistory returns the history of a message from one that is kept and what read returns of the messages after a depth,
// newest first; nil: the kept one has another path, or not enough messages.
func (t *Store) extendHistory(key historyKey, message protocol.MessageID, maxMessages, maxBytes int, read func(after int) (history, error)) (history, error) {
	found, ok := t.histories.Get(key)
	if !ok {
		return nil, nil
	}
	if found.last().id != message {
		newer, err := read(found.last().depth)
		if err != nil || len(newer) == 0 {
			return nil, err
		}
		slices.Reverse(newer)
		if !found.precedes(newer) {
			return nil, nil
		}
		found = slices.Concat(found, newer)
	}
	newest, whole := found.cut(maxMessages, maxBytes)
	if !whole {
		return nil, nil
	}
	return slices.Clone(newest), nil // without the memory of those that are left out
}

const instructionsSQL = `
select (select content from project_instructions where account_id = $1 and project_id = $2 and version = $3),
       (select content from account_instructions where account_id = $1 and version = $4)`

// Instructions returns the versions of the instructions that a turn has. They are read again in every step of the turn, also
// after it was adopted, and never change.
func (t *Store) Instructions(ctx context.Context, s *turnlog.Spec) (*turnlog.Instructions, error) {
	found, err := pg.Row(ctx, t.db, s.AccountID, pgx.RowToStructByPos[struct{ Project, Account *string }], instructionsSQL,
		s.AccountID, s.ProjectID, s.InstructionsVersion, s.AccountInstructions)
	if err == nil && (found.Project == nil && s.InstructionsVersion > 0 || found.Account == nil && s.AccountInstructions > 0) {
		err = pg.NotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the instructions of a turn: %w", err)
	}
	instructions := &turnlog.Instructions{}
	if found.Project != nil {
		instructions.Project = *found.Project
	}
	if found.Account != nil {
		instructions.Account = *found.Account
	}
	return instructions, nil
}
