package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// historySQL reads the newest messages of a branch up to message $3: at most $4 of them, with at most $5 bytes of
// parts, but always $3 itself. Its cost depends on the messages that it returns, not on the length of the conversation:
// the depths are bounded on both sides, and each segment of the path holds at least one of them. A message is
// decompressed to be measured only while the sum of the compressed sizes, which cost nothing to read, is within the
// limit.
const historySQL = `
with span as materialized (
    select depth - $4::int + 1 as first, depth as last
    from (select conversation_id, depth from messages where account_id = $1 and message_id = $3 limit 1) m where conversation_id = $2
)
select depth, role, status, parts, attachments from (
    select depth, role, status, parts, attachments, last, sum(octet_length(parts::text)) over (order by depth desc) as bytes
    from (
        select m.depth, m.role, m.status, m.parts, m.attachments, span.last, sum(pg_column_size(m.parts)) over (order by m.depth desc) as stored
        from span
        cross join lateral (
            select source_branch_id, from_depth, to_depth from branch_segments
            where account_id = $1 and branch_id = $6 and to_depth >= span.first
            order by to_depth limit $4) s
        cross join lateral (
            select depth, role, status, parts, attachments from messages
            where account_id = $1 and branch_id = s.source_branch_id
              and depth between greatest(s.from_depth, span.first) and least(s.to_depth, span.last)
            order by depth desc limit $4) m
    ) sized where stored <= $5 or depth = last
) measured where bytes <= $5 or depth = last
order by depth desc`

type historyRow struct {
	depth int
	turnlog.HistoryMessage
}

func scanHistory(row pgx.CollectableRow) (h historyRow, err error) {
	var parts []byte
	if err = row.Scan(&h.depth, &h.Role, &h.Status, &parts, &h.Attachments); err != nil {
		return h, err
	}
	return h, json.Unmarshal(parts, &h.Parts)
}

// History returns the messages of a branch up to a given one, oldest first: the newest maxMessages of them, with at
// most maxBytes of parts, but always the last one. more reports that older messages were left out.
func (t *Store) History(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	branch protocol.BranchID, message protocol.MessageID, maxMessages, maxBytes int,
) (messages []turnlog.HistoryMessage, more bool, err error) {
	rows, err := pg.Rows(ctx, t.db, account, scanHistory, historySQL, account, conversation, message, maxMessages, maxBytes, branch)
	if err == nil && len(rows) == 0 {
		err = pg.Classify(pgx.ErrNoRows)
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading a history: %w", err)
	}
	messages = make([]turnlog.HistoryMessage, 0, len(rows))
	for _, row := range slices.Backward(rows) {
		messages = append(messages, row.HistoryMessage)
	}
	return messages, rows[len(rows)-1].depth > 1, nil
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
		err = pg.Classify(pgx.ErrNoRows)
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
