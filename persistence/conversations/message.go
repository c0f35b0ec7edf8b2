package conversations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// MessageQuery selects a page of the path of a branch. Depths number the messages of a path from 1 without a gap, so a
// page is a range of depths.
type MessageQuery struct {
	ConversationID protocol.ConversationID
	BranchID       *protocol.BranchID // nil: the active branch, or with Around a branch that shows the message
	Around         *protocol.MessageID
	Before         int  // the page ends before this depth; 0: no such limit
	After          int  // the page starts after this depth; with Newer
	Newer          bool // true: towards the head, from After or depth 1; false: towards depth 1, from Before or the head
	Limit          int
}

// MessagePage is a range of a branch's path, oldest first.
type MessagePage struct {
	BranchID protocol.BranchID
	Messages []protocol.Message
	First    int // depth of the first message
	Last     int // depth of the last one
	Older    bool
	Newer    bool // whether there are more messages on that side
}

// messageEnvelope is the approximate size of the JSON of a message without its parts, in bytes.
const messageEnvelope = 1 << 10

// messageWithDepth is a message with its depth on its path.
type messageWithDepth struct {
	protocol.Message
	depth int
}

// Messages returns a page of a branch: at most query.Limit messages, and no further ones once the page has PageBytes. A
// streaming message contains the parts that are durable so far; their size is not counted, since a path has at most one
// such message.
func (s *Store) Messages(ctx context.Context, account protocol.AccountID, query *MessageQuery) (*MessagePage, error) {
	selected, err := s.findPath(ctx, account, query)
	if err != nil {
		return nil, fmt.Errorf("finding a branch: %w", err)
	}
	page := selected.window(query)
	known := s.streaming.known(account)
	found, err := pg.Rows(ctx, s.db, account, s.messageScanner(known), readMessagesSQL, pgx.NamedArgs{
		"account": account, "branch": page.BranchID, "depths": page.depths(selected.start(query, page)),
		"page_bytes": pg.PageBytes, "envelope": messageEnvelope, "turns": known.turns, "covers": known.covers,
	})
	if err != nil {
		return nil, fmt.Errorf("reading messages: %w", err)
	}
	page.Messages = make([]protocol.Message, len(found))
	for i := range found {
		page.Messages[i] = found[i].Message
	}
	if len(found) > 0 {
		page.First, page.Last = found[0].depth, found[len(found)-1].depth
	}
	page.Older, page.Newer = page.First > 1, page.Last < selected.HeadDepth
	return page, nil
}

// path is the branch that a query selects.
type path struct {
	BranchID      protocol.BranchID
	HeadMessageID *protocol.MessageID // nil: the branch is empty
	HeadDepth     int
	Around        int // depth of the message that the query names; 0: none
}

const findBranchSQL = `
	select b.branch_id, b.head_message_id, b.head_depth, 0 as around
	from conversations c
	join branches b on b.account_id = c.account_id and b.conversation_id = c.conversation_id
		and b.branch_id = coalesce(@branch::uuid, c.active_branch_id)
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible

// findAroundSQL finds a branch that shows the message. If the query names a branch, it is that branch or none.
// Otherwise it is the active branch or, if that does not show the message, the branch on which the message was written,
// which always does.
const findAroundSQL = `
	select b.branch_id, b.head_message_id, b.head_depth, m.depth as around
	from conversations c
	cross join lateral (
		select conversation_id, branch_id, depth from messages where account_id = c.account_id and message_id = @around limit 1) m
	cross join lateral (
		select distinct wanted.id from unnest(array[coalesce(@branch::uuid, c.active_branch_id), coalesce(@branch::uuid, m.branch_id)]) as wanted (id)
	) wanted
	cross join lateral (
		select branch_id, conversation_id, head_message_id, head_depth from branches where account_id = c.account_id and branch_id = wanted.id limit 1) b
	join lateral (
		select source_branch_id from branch_segments
		where account_id = @account and branch_id = b.branch_id and to_depth >= m.depth
		order by to_depth limit 1) s on s.source_branch_id = m.branch_id
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible + `
	  and m.conversation_id = c.conversation_id and b.conversation_id = c.conversation_id
	order by b.branch_id = c.active_branch_id desc
	limit 1`

func (s *Store) findPath(ctx context.Context, account protocol.AccountID, query *MessageQuery) (path, error) {
	sql := findBranchSQL
	if query.Around != nil {
		sql = findAroundSQL
	}
	return pg.Row(ctx, s.db, account, pgx.RowToStructByName[path], sql, pgx.NamedArgs{
		"account": account, "conversation": query.ConversationID, "branch": query.BranchID, "around": query.Around,
	})
}

// window returns the page with its range of depths.
func (p path) window(query *MessageQuery) *MessagePage {
	page := &MessagePage{BranchID: p.BranchID}
	switch {
	case query.Around != nil: // the message is in the middle of the page where possible
		page.First = max(1, min(p.Around-query.Limit/2, p.HeadDepth-query.Limit+1))
		page.Last = min(p.HeadDepth, page.First+query.Limit-1)
	case query.Newer:
		page.First = query.After + 1
		page.Last = min(p.HeadDepth, query.After+query.Limit)
	default:
		page.Last = p.HeadDepth
		if query.Before > 0 {
			page.Last = min(p.HeadDepth, query.Before-1)
		}
		page.First = max(1, page.Last-query.Limit+1)
	}
	return page
}

// start returns the depth of the message that the page contains in any case.
func (p path) start(query *MessageQuery, page *MessagePage) int {
	switch {
	case query.Around != nil:
		return p.Around
	case query.Newer:
		return page.First
	default:
		return page.Last
	}
}

// depths lists the depths of a page, nearest to start first. Any prefix of this list is a range without a gap.
func (p *MessagePage) depths(start int) []int {
	depths := []int{}
	for distance := 0; start-distance >= p.First || start+distance <= p.Last; distance++ {
		if depth := start - distance; depth >= p.First && depth <= p.Last {
			depths = append(depths, depth)
		}
		if depth := start + distance; distance > 0 && depth >= p.First && depth <= p.Last {
			depths = append(depths, depth)
		}
	}
	return depths
}

// messageColumns are the columns that messageScanner scans, from messages m and knownStreaming. The events of a
// streaming message are read in the same statement as its status, so they never contain turn.finished. Events that this
// node has already folded (@turns up to @covers) are not read again.
const messageColumns = `
	m.message_id, m.conversation_id, m.branch_id, m.parent_message_id, m.role, m.status, m.parts, m.attachments,
	m.turn_id, m.profile, m.model_id, m.routing, m.usage, m.feedback, m.created_at, m.sibling_index, last.sibling_index + 1,
	previous.message_id, ` + newestBranch + `previous.branch_id` + newestFirst + `previous.branch_id),
	next.message_id, ` + newestBranch + `next.branch_id` + newestFirst + `next.branch_id),
	case when m.status = 'streaming'
		then (select string_agg(e.frames, ''::bytea order by e.first_sequence) from turn_events e
			where e.account_id = m.account_id and e.turn_id = m.turn_id
			  and e.first_sequence > known.covers)
	end as frames, m.depth`

// messageFields are the columns of messages that messageColumns and its joins use, for a subquery m.
const messageFields = `account_id, message_id, conversation_id, branch_id, parent_message_id, role, status, parts, attachments,
			turn_id, profile, model_id, routing, usage, feedback, created_at, sibling_index, depth`

// newestBranch is the beginning of the sub-query for the branch on which a sibling was last continued: the newest
// branch that shows the sibling and has messages of its own. The sub-query looks at the newest 64 of the branches that
// share messages with the branch where the sibling was written, so that its cost does not grow with their number. If
// none of them matches, the result is the branch where the sibling was written, which shows it in any case.
const newestBranch = `coalesce((
		select shown.branch_id
		from (
			select branch_id, from_depth, to_depth from branch_segments
			where account_id = m.account_id and source_branch_id = `

// newestFirst is the rest of that sub-query.
const newestFirst = `
			order by branch_id desc limit 64) shown
		cross join lateral (
			select head_message_id, base_message_id from branches
			where account_id = m.account_id and branch_id = shown.branch_id limit 1) b
		where b.head_message_id is distinct from b.base_message_id and m.depth between shown.from_depth and shown.to_depth
		order by shown.branch_id desc limit 1), `

// knownStreaming selects the sequence up to which the events of a message are already known; 0: none. It is a column
// and not an expression: under row-level security, no index serves a condition with coalesce or a sub-select that names
// other columns.
const knownStreaming = `
	cross join lateral (
		select coalesce(max(k.covers), 0) as covers
		from unnest(@turns::uuid[], @covers::bigint[]) as k (turn_id, covers) where k.turn_id = m.turn_id
	) known`

// messageSiblings finds the last version of a message and the versions before and after it, each by an index.
const messageSiblings = `
	cross join lateral (` + siblings + `order by parent_message_id desc, sibling_index desc limit 1` + firstSiblings + `order by parent_message_id desc, sibling_index desc limit 1)) last
	left join lateral (` + siblings + `and sibling_index < m.sibling_index order by parent_message_id desc, sibling_index desc limit 1` +
	firstSiblings + `and sibling_index < m.sibling_index order by parent_message_id desc, sibling_index desc limit 1)) previous on true
	left join lateral (` + siblings + `and sibling_index > m.sibling_index order by parent_message_id, sibling_index limit 1` +
	firstSiblings + `and sibling_index > m.sibling_index order by parent_message_id, sibling_index limit 1)) next on true`

// siblings and firstSiblings are separate selects, since the first messages of a conversation have no common parent.
const (
	siblings = `(
		select message_id, branch_id, sibling_index from messages
		where account_id = m.account_id and conversation_id = m.conversation_id and parent_message_id = m.parent_message_id `
	firstSiblings = `) union all (
		select message_id, branch_id, sibling_index from messages
		where account_id = m.account_id and conversation_id = m.conversation_id and parent_message_id is null
		  and m.parent_message_id is null `
)

// readMessagesSQL reads the messages at @depths by key, one after the other, until they have @page_bytes. It does not
// read further messages: because of the limit of one, the next depth is looked up before the join with messages.
const readMessagesSQL = `
	with recursive wanted as materialized (
		select w.n, w.depth, s.source_branch_id as branch_id
		from unnest(@depths::int[]) with ordinality w (depth, n)
		cross join lateral (
			select source_branch_id from branch_segments
			where account_id = @account and branch_id = @branch and to_depth >= w.depth
			order by to_depth limit 1) s
	), fit (n, branch_id, depth, bytes) as (
		select 0::bigint, null::uuid, 0, 0::bigint
		union all
		select w.n, w.branch_id, w.depth, f.bytes + octet_length(m.parts::text) + @envelope::int
		from fit f
		cross join lateral (select n, branch_id, depth from wanted where n = f.n + 1 limit 1) w
		join messages m on m.account_id = @account and m.branch_id = w.branch_id and m.depth = w.depth
		where f.bytes < @page_bytes
	)
	select ` + messageColumns + `
	from fit f
	cross join lateral (
		select ` + messageFields + `
		from messages where account_id = @account and branch_id = f.branch_id and depth = f.depth limit 1) m` +
	knownStreaming + messageSiblings + `
	order by m.depth`

const getMessageSQL = `
	select ` + messageColumns + `
	from messages m
	join conversations c on c.account_id = m.account_id and c.conversation_id = m.conversation_id and ` + Visible +
	knownStreaming + messageSiblings + `
	where m.account_id = @account and m.message_id = @message`

// GetMessage returns one message. A streaming message contains the parts that are durable so far.
func (s *Store) GetMessage(ctx context.Context, account protocol.AccountID, message protocol.MessageID) (*protocol.Message, error) {
	known := s.streaming.known(account)
	found, err := pg.Row(ctx, s.db, account, s.messageScanner(known), getMessageSQL, pgx.NamedArgs{
		"account": account, "message": message, "turns": known.turns, "covers": known.covers,
	})
	if err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return &found.Message, nil
}

func siblingOf(message *protocol.MessageID, branch *protocol.BranchID) *protocol.Sibling {
	if message == nil || branch == nil {
		return nil
	}
	return &protocol.Sibling{MessageID: *message, BranchID: *branch}
}

// messageScanner returns a scanner for messageColumns. known holds the values that were passed as @turns and @covers.
func (s *Store) messageScanner(known *knownMessages) pgx.RowToFunc[messageWithDepth] {
	return func(row pgx.CollectableRow) (m messageWithDepth, err error) {
		var frames []byte
		var previousMessage, nextMessage *protocol.MessageID
		var previousBranch, nextBranch *protocol.BranchID
		err = row.Scan(&m.MessageID, &m.ConversationID, &m.BranchID, &m.ParentMessageID, &m.Role, &m.Status, &m.Parts,
			&m.Attachments, &m.TurnID, &m.Profile, &m.ModelID, &m.Routing, &m.Usage, &m.Feedback, &m.CreatedAt, &m.SiblingIndex, &m.SiblingCount,
			&previousMessage, &previousBranch, &nextMessage, &nextBranch, &frames, &m.depth)
		if err != nil {
			return m, err
		}
		m.PreviousSibling, m.NextSibling = siblingOf(previousMessage, previousBranch), siblingOf(nextMessage, nextBranch)
		if m.Status == protocol.MessageStreaming && m.TurnID != nil {
			streaming := known.find(*m.TurnID)
			if m.Parts, m.CoversSequence, err = streaming.extend(frames); err == nil {
				s.streaming.store(streaming)
			}
		}
		return m, err
	}
}

const (
	insertMessageSQL = `
	insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, created_at, sibling_index)
	select @account, @message, b.conversation_id, b.branch_id, b.head_depth + 1, b.head_message_id, 'assistant', 'complete', @parts, @at,
		(select coalesce(max(m.sibling_index) + 1, 0) from messages m
		where m.account_id = @account and m.conversation_id = b.conversation_id and m.parent_message_id is not distinct from b.head_message_id)
	from branches b where b.account_id = @account and b.branch_id = @branch`
	moveHeadSQL = `
	update branches set head_message_id = @message, head_depth = head_depth + 1 where account_id = @account and branch_id = @branch`
	countMessageSQL = `
	update conversations c set message_count = message_count + 1, last_activity_at = @at
	from branches b
	where b.account_id = @account and b.branch_id = @branch and c.account_id = @account and c.conversation_id = b.conversation_id`
)

// AppendMessage adds the statements to batch that store a complete message of the assistant as the new head of a branch. The caller has
// locked the conversation. Messages of turns are stored by package turns.
func AppendMessage(batch *pgx.Batch, account protocol.AccountID, branch protocol.BranchID, id protocol.MessageID, parts []protocol.Part, at time.Time) error {
	text, err := pg.JSONText(parts)
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{"account": account, "branch": branch, "message": id, "parts": text, "at": at}
	for _, sql := range []string{insertMessageSQL, moveHeadSQL, countMessageSQL} {
		batch.Queue(sql, args)
	}
	return nil
}
