package persistence

import (
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// turnPlan is a turn that is about to begin: everything decided, nothing stored. A start by a client and one from the
// queue both end here.
type turnPlan struct {
	account      protocol.AccountID
	conversation protocol.ConversationID
	turn         protocol.TurnID
	owner        protocol.NodeID
	at           time.Time
	requested    protocol.Profile
	input        string
	attachments  []protocol.FileID

	branch protocol.BranchID
	parent *protocol.MessageID // the message before the user's
	depth  int                 // of parent; 0: none
	// answers is a user's message that is there already, at depth: only an answer is added.
	answers *protocol.MessageID
	// leaves is the branch that the new branch comes from; nil: the branch is there already.
	leaves          *protocol.BranchID
	newConversation bool
	temporary       bool
	followUp        *protocol.FollowUpID
}

// answer plans a turn that answers a message which is there.
func (p *turnPlan) answer(message protocol.MessageID, parent *protocol.MessageID, parts []protocol.Part) {
	p.answers, p.parent, p.input = &message, parent, userText(parts)
}

// begin names everything and asks for the first transition.
func (p *turnPlan) begin(begin func(*protocol.TurnSpec) (protocol.TurnBegin, error)) (*protocol.TurnSpec, protocol.TurnBegin, error) {
	spec := &protocol.TurnSpec{
		AccountID: p.account, TurnID: p.turn, ConversationID: p.conversation, BranchID: p.branch,
		AssistantMessageID: protocol.NewMessageID(), ParentMessageID: p.parent, FollowUpID: p.followUp,
		Input: p.input, Requested: p.requested, CreatedAt: p.at,
	}
	if p.answers != nil {
		spec.UserMessageID = *p.answers
	} else { // made first, so that it sorts first
		spec.UserMessageID, spec.AssistantMessageID = spec.AssistantMessageID, protocol.NewMessageID()
	}
	first, err := begin(spec)
	return spec, first, err
}

// The rows of a start. storeTurnSQL adds a turn to a conversation that is there: the user's message, if it is new, the
// answer's empty message, the branch's head, the turn with its first events, and the conversation's live turn.
const (
	insertTurnColumns = `
    insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, follow_up_id, spec,
                       state, accepting, owner, owner_epoch, next_sequence, created_at)`
	insertMessageColumns = `
    insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, attachments,
                          turn_id, profile, model_id, created_at, sibling_index)`
	insertEventsColumns = `
    insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)`
	insertEventsSQL = insertEventsColumns + `
    values (@account, @turn, @first, @last, @epoch, @frames)`
	// nextSibling begins the look-up of the position of a message among the alternatives at its place.
	nextSibling = `
        (select coalesce(max(sibling_index) + 1, 0) from messages where account_id = $1 and conversation_id = $2 and parent_message_id `
	storeTurnSQL = `
with question as (` + insertMessageColumns + `
    select $1, $5, $2, $3, $7::int, $8, 'user', 'complete', $9, $10, $4, null, null, $20,
        case when $8::uuid is null then ` + nextSibling + `is null) else ` + nextSibling + `= $8) end where $11::bool
), answer as (` + insertMessageColumns + `
    select $1, $6, $2, $3, $7 + 1, $5, 'assistant', 'streaming', '[]', '{}', $4, $12, $13, $20, ` + nextSibling + `= $5)
), head as (
    update branches set head_message_id = $6, head_depth = $7 + 1 where account_id = $1 and branch_id = $3
), turn as (` + insertTurnColumns + `
    values ($1, $4, $2, $3, $5, $6, $14, $15, $16, $17, $18, 1, $19 + 1, $20)
), events as (` + insertEventsColumns + `
    values ($1, $4, 1, $19, 1, $21)
)
update conversations set live_turn_id = $4, message_count = message_count + 1 + $11::bool::int, last_activity_at = $20 where account_id = $1 and conversation_id = $2`

	// storeNewTurnsSQL makes many conversations with a turn each, for several accounts.
	storeNewTurnsSQL = `
with start as materialized (
    select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[], $8::bool[], $9::text[],
                         $10::text[], $11::text[], $12::text[], $13::text[], $14::bool[], $15::bigint[], $16::bytea[], $17::timestamptz[],
                         $18::bytea[], $19::bytea[])
        as start (account_id, conversation_id, branch_id, turn_id, question, answer, owner, temporary, parts,
                  spec, profile, model, state, accepts, last, frames, at, key_hash, body_hash)
), claims as (
    insert into idempotency (account_id, key_hash, path, body_hash, status, resource_id, created_at)
    select account_id, key_hash, '/chat', body_hash, 200, turn_id, clock_timestamp() from start where key_hash is not null
), conversations as (
    insert into conversations (account_id, conversation_id, active_branch_id, live_turn_id, message_count, temporary, last_activity_at)
    select account_id, conversation_id, branch_id, turn_id, 2, temporary, at from start
), branches as (
    insert into branches (account_id, branch_id, conversation_id, head_message_id, head_depth)
    select account_id, branch_id, conversation_id, answer, 2 from start
), segments as (
    insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
    select account_id, branch_id, branch_id, 1, 2147483647 from start
), messages as (` + insertMessageColumns + `
    select account_id, question, conversation_id, branch_id, 1, null::uuid, 'user', 'complete', parts::json, '{}'::uuid[], turn_id, null, null, at, 0 from start
    union all
    select account_id, answer, conversation_id, branch_id, 2, question, 'assistant', 'streaming', '[]'::json, '{}'::uuid[], turn_id, profile, model, at, 0 from start
), turns as (` + insertTurnColumns + `
    select account_id, turn_id, conversation_id, branch_id, question, answer, null, spec::json, state, accepts, owner, 1, last + 1, at from start
)` + insertEventsColumns + `
select account_id, turn_id, 1, last, 1, frames from start`
)

// queue adds the statements that store the turn. The caller holds the locks, so each of them touches its row.
func (p *turnPlan) queue(batch *pgx.Batch, spec *protocol.TurnSpec, begin protocol.TurnBegin) error {
	if p.newConversation {
		var columns startColumns
		err := columns.add(p, spec, begin, nil)
		batch.Queue(storeNewTurnsSQL, columns.arguments()...)
		return err
	}
	text, err := jsonText(spec)
	if err != nil {
		return err
	}
	parts, err := jsonText(textParts(p.input))
	if err != nil {
		return err
	}
	p.queueBranch(batch)
	depth := p.depth + 1 // of the user's message
	if p.answers != nil {
		depth = p.depth
	}
	batch.Queue(storeTurnSQL, p.account, p.conversation, p.branch, p.turn, spec.UserMessageID, spec.AssistantMessageID, depth, p.parent,
		parts, append([]protocol.FileID{}, p.attachments...), p.answers == nil, spec.Routing.Profile, spec.Routing.ModelID,
		p.followUp, text, string(begin.State), begin.Accepts, p.owner, begin.Last, p.at, begin.Frames)
	return nil
}

// startColumns are the arrays of storeNewTurnsSQL.
type startColumns struct {
	accounts           []protocol.AccountID
	conversations      []protocol.ConversationID
	branches           []protocol.BranchID
	turns              []protocol.TurnID
	questions, answers []protocol.MessageID
	owners             []protocol.NodeID
	temporary, accepts []bool
	parts, specs       []string
	profiles, models   []string
	states             []string
	lasts              []int64
	frames, keys       [][]byte
	hashes             [][]byte
	ats                []time.Time
}

// add appends the row of a start in a new conversation, which claims the key when it is not nil.
func (c *startColumns) add(p *turnPlan, spec *protocol.TurnSpec, begin protocol.TurnBegin, key *protocol.IdempotencyKey) error {
	text, err := jsonText(spec)
	if err != nil {
		return err
	}
	parts, err := jsonText(textParts(p.input))
	if err != nil {
		return err
	}
	c.accounts, c.conversations = append(c.accounts, p.account), append(c.conversations, p.conversation)
	c.branches, c.turns = append(c.branches, p.branch), append(c.turns, p.turn)
	c.questions, c.answers = append(c.questions, spec.UserMessageID), append(c.answers, spec.AssistantMessageID)
	c.owners, c.temporary = append(c.owners, p.owner), append(c.temporary, p.temporary)
	c.parts, c.specs = append(c.parts, string(parts)), append(c.specs, string(text))
	c.profiles, c.models = append(c.profiles, string(spec.Routing.Profile)), append(c.models, spec.Routing.ModelID)
	c.states, c.accepts = append(c.states, string(begin.State)), append(c.accepts, begin.Accepts)
	c.lasts, c.frames, c.ats = append(c.lasts, begin.Last), append(c.frames, begin.Frames), append(c.ats, p.at)
	var name, hash []byte
	if key != nil {
		name, hash = keyHash(*key), key.BodyHash[:]
	}
	c.keys, c.hashes = append(c.keys, name), append(c.hashes, hash)
	return nil
}

func (c *startColumns) arguments() []any {
	return []any{
		c.accounts, c.conversations, c.branches, c.turns, c.questions, c.answers, c.owners, c.temporary, c.parts,
		c.specs, c.profiles, c.models, c.states, c.accepts, c.lasts, c.frames, c.ats, c.keys, c.hashes,
	}
}

// queueBranch makes the branch on which the turn stands, if it is new.
func (p *turnPlan) queueBranch(batch *pgx.Batch) {
	if p.leaves == nil {
		return
	}
	base := p.parent
	if p.answers != nil {
		base = p.answers
	}
	batch.Queue(insertBranchSQL, pgx.NamedArgs{
		"account": p.account, "conversation": p.conversation, "branch": p.branch, "name": "", "base": base, "base_depth": p.depth, "source": *p.leaves,
	})
	batch.Queue(activateBranchSQL, pgx.NamedArgs{"account": p.account, "conversation": p.conversation, "branch": p.branch})
}
