package shares

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Sizes of reads and pages. A page of a share has at most pageMessages messages, and no further ones once it has pageBytes.
// A message without text counts too.
const (
	readMessages = 500     // of one statement
	readBytes    = 4 << 20 // of one statement, tools and reasoning included
	pageMessages = 100
	pageBytes    = 256 << 10
	messageBytes = 128 // approximate size of the JSON of a message without its parts
)

// target is the path that a share shows: that of a branch up to a depth. The message at this depth is the last one of the
// share.
type target struct {
	Title     string
	Temporary bool
	BranchID  protocol.BranchID
	MessageID *protocol.MessageID // nil: the branch has no message
	Depth     int
	Status    *protocol.MessageStatus
	TurnID    *protocol.TurnID
}

const targetColumns = `
	select coalesce(nullif(c.title, ''), c.provisional_title) as title, c.temporary, `

// headTargetSQL finds the newest messages of the active branch. At most the newest one is streaming.
const headTargetSQL = targetColumns + `c.active_branch_id as branch_id, m.message_id, coalesce(m.depth, 0) as depth, m.status, m.turn_id
	from conversations c
	cross join lateral (
		select branch_id, head_depth from branches where account_id = c.account_id and branch_id = c.active_branch_id limit 1) b
	left join lateral (
		select m.message_id, m.depth, m.status, m.turn_id
		from unnest(array[b.head_depth, b.head_depth - 1]) wanted (depth)
		cross join lateral (
			select source_branch_id from branch_segments
			where account_id = @account and branch_id = b.branch_id and to_depth >= wanted.depth
			order by to_depth limit 1) s
		cross join lateral (
			select message_id, depth, status, turn_id from messages
			where account_id = @account and branch_id = s.source_branch_id and depth = wanted.depth limit 1) m
	) m on true
	where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible

// messageTargetSQL finds a message of a conversation. Its path is that of the branch on which it was written.
const messageTargetSQL = targetColumns + `m.branch_id, m.message_id, m.depth, m.status, m.turn_id
	from conversations c
	cross join lateral (
		select conversation_id, branch_id, message_id, depth, status, turn_id from messages
		where account_id = c.account_id and message_id = @message limit 1) m
	where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible + `
	  and m.conversation_id = c.conversation_id`

// findTarget returns the path up to a message or, if message is nil, to the last finished message of the active branch.
// parent is the part of the request that has the message: "body" or "query".
func (s *Store) findTarget(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, message *protocol.MessageID, parent string) (*target, error) {
	sql := headTargetSQL
	if message != nil {
		sql = messageTargetSQL
	}
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[target], sql, pgx.NamedArgs{
		"account": account, "conversation": conversation, "message": message,
	})
	if err != nil {
		return nil, fmt.Errorf("finding the messages of a share: %w", err)
	}
	if len(found) == 0 {
		return nil, &protocol.Error{Code: protocol.CodeNotFound}
	}
	last := slices.MaxFunc(found, func(a, b target) int { return a.Depth - b.Depth })
	if message == nil { // without the message that is streaming
		for _, candidate := range found {
			if last.streams() || !candidate.streams() && candidate.Depth > last.Depth {
				last = candidate
			}
		}
	}
	return &last, last.check(conversation, parent)
}

func (t *target) streams() bool { return t.Status != nil && *t.Status == protocol.MessageStreaming }

// check returns an error if the target cannot be shared.
func (t *target) check(conversation protocol.ConversationID, parent string) error {
	current := map[string]any{"conversation_id": conversation, "temporary": t.Temporary, "head_message_id": t.MessageID}
	switch {
	case t.Temporary:
		return protocol.Conflict(protocol.CodeConflict, current, "A temporary conversation cannot be shared.")
	case t.MessageID == nil:
		return protocol.Conflict(protocol.CodeConflict, current, "The conversation has no finished message to share.")
	case t.streams() && t.TurnID != nil:
		return conversations.TurnInProgress(*t.TurnID)
	case t.Depth > protocol.MaxSharedMessages:
		return protocol.Invalid(parent+".message_id", fmt.Sprintf("has more than %d messages before it", protocol.MaxSharedMessages))
	}
	return nil
}

// readPathSQL reads the messages of a path after the depth @after, up to @until, until they have @bytes.
const readPathSQL = `
	with recursive fit (depth, branch_id, bytes) as (
		select @after::int, null::uuid, 0::bigint
		union all
		select f.depth + 1, s.source_branch_id, f.bytes + octet_length(m.parts::text)
		from fit f
		cross join lateral (
			select source_branch_id from branch_segments
			where account_id = @account and branch_id = @branch and to_depth >= f.depth + 1
			order by to_depth limit 1) s
		join messages m on m.account_id = @account and m.branch_id = s.source_branch_id and m.depth = f.depth + 1
		where f.depth < @until and f.bytes < @bytes
	)
	select m.depth, m.role, m.profile, m.created_at, m.parts, m.attachments
	from fit f
	cross join lateral (
		select depth, role, profile, created_at, parts, attachments from messages
		where account_id = @account and branch_id = f.branch_id and depth = f.depth limit 1) m`

type pathMessage struct {
	Depth       int
	Role        string
	Profile     *protocol.Profile
	CreatedAt   time.Time
	Parts       []protocol.Part
	Attachments []protocol.FileID
}

// readPath returns the messages of a target after a depth, oldest first: at most limit, and no further ones once they have
// bytes. last is the depth of the last one; after, if there is none. numbers are those of what the share carries.
func (s *Store) readPath(ctx context.Context, account protocol.AccountID, t *target, numbers protocol.SharedNumbers, after, limit, bytes int) (messages []protocol.SharedMessage, last int, err error) {
	rows, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByName[pathMessage], readPathSQL, pgx.NamedArgs{
		"account": account, "branch": t.BranchID, "after": after, "until": min(t.Depth, after+limit), "bytes": bytes,
	})
	if err != nil {
		return nil, after, fmt.Errorf("reading the messages of a share: %w", err)
	}
	slices.SortFunc(rows, func(a, b pathMessage) int { return a.Depth - b.Depth })
	messages = make([]protocol.SharedMessage, len(rows))
	for i := range rows {
		row := &rows[i]
		messages[i], last = protocol.NewSharedMessage(row.Role, row.Profile, row.CreatedAt, row.Parts, row.Attachments, numbers), row.Depth
	}
	return messages, max(last, after), nil
}

// errTooLarge is the error for a snapshot that exceeds protocol.MaxSharedBytes.
func errTooLarge() error {
	return protocol.Invalid("body.message_id", fmt.Sprintf("has more than %d MiB of text before it", protocol.MaxSharedBytes>>20))
}

// take returns the snapshot of a target in pages, and its size. The messages have ended, so they do not change while it reads
// them. Each of the files must be one of a message.
func (s *Store) take(ctx context.Context, account protocol.AccountID, t *target, carried *carried) (pages [][]byte, total int, err error) {
	var page []protocol.SharedMessage
	size := 0
	for after := 0; after < t.Depth; {
		messages, last, err := s.readPath(ctx, account, t, carried.numbers, after, readMessages, readBytes)
		if err != nil {
			return nil, 0, err
		}
		if last == after { // the conversation was purged in the meantime
			return nil, 0, &protocol.Error{Code: protocol.CodeNotFound}
		}
		after = last
		for i := range messages {
			carried.use(&messages[i])
			n := sizeOf(&messages[i])
			if total += n; total > protocol.MaxSharedBytes {
				return nil, 0, errTooLarge()
			}
			page, size = append(page, messages[i]), size+n
			if len(page) == pageMessages || size >= pageBytes || after == t.Depth && i == len(messages)-1 {
				text, err := pg.JSONText(page)
				if err != nil {
					return nil, 0, err
				}
				pages, page, size = append(pages, text), nil, 0
			}
		}
	}
	return pages, total, carried.check()
}

// sizeOf returns about how many bytes a message takes.
func sizeOf(m *protocol.SharedMessage) int {
	bytes := messageBytes
	for i := range m.Parts {
		part := &m.Parts[i]
		bytes += len(part.Text) + len(part.Language) + len(part.Filename) + len(part.Code)
	}
	return bytes
}

// PreviewPosition is a position between two messages of a preview.
type PreviewPosition struct {
	MessageID protocol.MessageID `json:"m"` // the last message of the snapshot
	Depth     int                `json:"d"` // of the last message before the position
}

// Preview returns a page of what a share would show. next is nil at the end.
func (s *Store) Preview(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	message *protocol.MessageID, after *PreviewPosition, limit int,
) (preview *protocol.SharePreview, next *PreviewPosition, err error) {
	if after == nil {
		after = &PreviewPosition{}
	} else {
		message = &after.MessageID
	}
	t, err := s.findTarget(ctx, account, conversation, message, "query")
	if err != nil {
		return nil, nil, err
	}
	messages, last, err := s.readPath(ctx, account, t, protocol.SharedNumbers{}, after.Depth, limit, pg.PageBytes)
	if err != nil {
		return nil, nil, err
	}
	if last < t.Depth && len(messages) > 0 {
		next = &PreviewPosition{MessageID: *t.MessageID, Depth: last}
	}
	preview = &protocol.SharePreview{
		Title: t.Title, MessageID: *t.MessageID, MessageCount: t.Depth, Files: []protocol.ShareableFile{}, Artifacts: []protocol.ShareableArtifact{}, Data: messages,
	}
	if after.Depth > 0 {
		return preview, next, nil
	}
	if preview.Files, preview.FileCount, err = s.shareable(ctx, account, conversation, t); err != nil {
		return nil, nil, err
	}
	preview.Artifacts, preview.ArtifactCount, err = s.shareableArtifacts(ctx, account, conversation)
	return preview, next, err
}
