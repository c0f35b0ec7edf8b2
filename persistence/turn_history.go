package persistence

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// historyWindow is how many depths one statement of History reads.
const historyWindow = 64

const (
	depthSQL = `
select depth from messages where account_id = $1 and conversation_id = $2 and message_id = $3`
	// Bounded on both sides by depth, so that it costs the window and not the conversation.
	historySQL = `
select m.depth, m.role, m.status, m.parts
from branch_segments s
join messages m on m.account_id = s.account_id and m.branch_id = s.source_branch_id
    and m.depth between greatest(s.from_depth, $3::int) and least(s.to_depth, $4::int)
where s.account_id = $1 and s.branch_id = $2 and s.from_depth <= $4 and s.to_depth >= $3
order by m.depth desc`
)

type historyRow struct {
	depth int
	bytes int
	protocol.HistoryMessage
}

func scanHistory(row pgx.CollectableRow) (h historyRow, err error) {
	var parts json.RawMessage
	if err = row.Scan(&h.depth, &h.Role, &h.Status, &parts); err != nil {
		return h, err
	}
	h.bytes = len(parts)
	return h, json.Unmarshal(parts, &h.Parts)
}

// History reads the messages of a branch that end with one, oldest first, going back until about maxBytes of parts were
// read; more tells that older ones were left out.
func (t *Turns) History(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	branch protocol.BranchID, message protocol.MessageID, maxBytes int,
) (messages []protocol.HistoryMessage, more bool, err error) {
	last, err := Row(ctx, t.db, account, pgx.RowTo[int], depthSQL, account, conversation, message)
	if err != nil {
		return nil, false, fmt.Errorf("finding the end of a history: %w", err)
	}
	read := 0
	for last >= 1 && read < maxBytes {
		first := max(1, last-historyWindow+1)
		window, err := Rows(ctx, t.db, account, scanHistory, historySQL, account, branch, first, last)
		if err != nil {
			return nil, false, fmt.Errorf("reading a history: %w", err)
		}
		if len(window) == 0 {
			break
		}
		for _, row := range window {
			if read >= maxBytes {
				break
			}
			messages = append(messages, row.HistoryMessage)
			read += row.bytes
			last = row.depth - 1
		}
	}
	slices.Reverse(messages)
	return messages, last >= 1, nil
}
