package turns

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// turnPlan is a turn that is about to start: everything is decided, nothing is stored. A start by a client and a start
// from the queue both use it.
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
	// previous is the profile of the answer before, or of the answer that is regenerated; nil: there is none.
	previous *protocol.Profile
	// existingMessage is an existing user message, at depth: only an assistant message is added.
	existingMessage *protocol.MessageID
	// forkedFrom is the branch from which a new branch starts; nil: the turn is on an existing branch.
	forkedFrom      *protocol.BranchID
	newConversation bool
	temporary       bool
	followUp        *protocol.FollowUpID
	project         *projectFacts       // nil: no project
	session         *protocol.SessionID // of the request; nil: the service starts the turn
}

// answerExisting plans a turn that answers an existing message.
func (p *turnPlan) answerExisting(message protocol.MessageID, parent *protocol.MessageID, parts []protocol.Part, attachments []protocol.FileID) {
	p.existingMessage, p.parent, p.input, p.attachments = &message, parent, userText(parts), attachments
}

// begin builds the spec with its identifiers and calls begin for the first transition.
func (p *turnPlan) begin(begin func(*turnlog.Spec) (turnlog.Begin, error)) (*turnlog.Spec, turnlog.Begin, error) {
	spec := &turnlog.Spec{
		AccountID: p.account, TurnID: p.turn, ConversationID: p.conversation, BranchID: p.branch,
		AssistantMessageID: protocol.NewMessageID(), ParentMessageID: p.parent, FollowUpID: p.followUp,
		Input: p.input, Attachments: p.attachments, Requested: p.requested, CreatedAt: p.at,
	}
	if p.existingMessage != nil {
		spec.UserMessageID = *p.existingMessage
	} else { // generated first, so that it sorts first
		spec.UserMessageID, spec.AssistantMessageID = spec.AssistantMessageID, protocol.NewMessageID()
	}
	if p.previous != nil {
		spec.PreviousProfile = *p.previous
	}
	p.project.specify(spec)
	first, err := begin(spec)
	return spec, first, err
}

// specify stores in the spec what the project determines for the whole turn.
func (p *projectFacts) specify(spec *turnlog.Spec) {
	if p == nil || p.id == nil {
		return
	}
	spec.ProjectID, spec.InstructionsVersion = p.id, p.instructions
	for _, name := range slices.Sorted(maps.Keys(p.tools)) {
		if !p.tools[name] {
			spec.DisabledTools = append(spec.DisabledTools, name)
		}
	}
}

// queueWork adds the statements that record the turn in the work history of its project.
func (p *turnPlan) queueWork(batch *pgx.Batch) {
	if p.project == nil || p.project.id == nil {
		return
	}
	work := projects.Work{SessionID: p.session, ConversationID: &p.conversation}
	if p.newConversation {
		work.Kind = protocol.WorkConversationCreated
		work.Queue(batch, p.account, *p.project.id)
	}
	work.Kind, work.TurnID = protocol.WorkTurnStarted, &p.turn
	work.Queue(batch, p.account, *p.project.id)
}

// The rows of a start. storeTurnSQL adds a turn to an existing conversation: the user's message, if it is new, the
// empty assistant message, the head of the branch, the turn with its first events, and the live turn of the
// conversation.
const (
	insertTurnColumns = `
    insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, follow_up_id, spec,
                       state, accepting, owner, owner_epoch, next_sequence, created_at)`
	insertMessageColumns = `
    insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, attachments,
                          turn_id, profile, model_id, routing, created_at, sibling_index)`
	insertEventsColumns = `
    insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)`
	insertEventsSQL = insertEventsColumns + `
    values (@account, @turn, @first, @last, @epoch, @frames)`
	// nextSibling is the beginning of the sub-query for the position of a message among its siblings.
	nextSibling = `
        (select coalesce(max(sibling_index) + 1, 0) from messages
         where account_id = @account and conversation_id = @conversation and parent_message_id `
	storeTurnSQL = `
with question as (` + insertMessageColumns + `
    select @account, @question, @conversation, @branch, @depth::int, @parent, 'user', 'complete', @parts, @attachments, @turn, null, null, null, @at,
        case when @parent::uuid is null then ` + nextSibling + `is null) else ` + nextSibling + `= @parent) end
    where @new_question::bool
), answer as (` + insertMessageColumns + `
    select @account, @answer, @conversation, @branch, @depth + 1, @question, 'assistant', 'streaming', '[]', '{}', @turn, @profile, @model, @routing, @at,
        ` + nextSibling + `= @question)
), head as (
    update branches set head_message_id = @answer, head_depth = @depth + 1 where account_id = @account and branch_id = @branch
), turn as (` + insertTurnColumns + `
    values (@account, @turn, @conversation, @branch, @question, @answer, @follow_up, @spec, @state, @accepts, @owner, 1, @last + 1, @at)
), events as (` + insertEventsColumns + `
    values (@account, @turn, 1, @last, 1, @frames)
)
update conversations
set live_turn_id = @turn, message_count = message_count + 1 + @new_question::bool::int, last_activity_at = @at,
    provisional_title = coalesce(nullif(provisional_title, ''), @title)
where account_id = @account and conversation_id = @conversation`

	// storeNewTurnsSQL creates many conversations with one turn each, for several accounts.
	storeNewTurnsSQL = `
with start as materialized (
    select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[], $8::bool[], $9::text[],
                         $10::text[], $11::text[], $12::text[], $13::text[], $14::bool[], $15::bigint[], $16::bytea[], $17::timestamptz[],
                         $18::bytea[], $19::bytea[], $20::text[], $21::text[], $22::uuid[], $23::text[])
        as start (account_id, conversation_id, branch_id, turn_id, question, answer, owner, temporary, parts,
                  spec, profile, model, state, accepts, last, frames, at, key_hash, body_hash, routing, title, project_id, attachments)
), claims as (
    insert into idempotency (account_id, key_hash, path, body_hash, status, resource_id, created_at)
    select account_id, key_hash, '/chat', body_hash, 200, turn_id, clock_timestamp() from start where key_hash is not null
), conversations as (
    insert into conversations (account_id, conversation_id, active_branch_id, live_turn_id, message_count, temporary, last_activity_at, provisional_title, project_id)
    select account_id, conversation_id, branch_id, turn_id, 2, temporary, at, title, project_id from start
), branches as (
    insert into branches (account_id, branch_id, conversation_id, head_message_id, head_depth)
    select account_id, branch_id, conversation_id, answer, 2 from start
), segments as (
    insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
    select account_id, branch_id, branch_id, 1, 2147483647 from start
), messages as (` + insertMessageColumns + `
    select account_id, question, conversation_id, branch_id, 1, null::uuid, 'user', 'complete', parts::json, attachments::uuid[], turn_id, null, null, null, at, 0 from start
    union all
    select account_id, answer, conversation_id, branch_id, 2, question, 'assistant', 'streaming', '[]'::json, '{}'::uuid[], turn_id, profile, model, routing::jsonb, at, 0 from start
), turns as (` + insertTurnColumns + `
    select account_id, turn_id, conversation_id, branch_id, question, answer, null, spec::json, state, accepts, owner, 1, last + 1, at from start
)` + insertEventsColumns + `
select account_id, turn_id, 1, last, 1, frames from start`
)

// queue adds the statements that store the turn. The caller holds the locks, so each statement finds its row.
func (p *turnPlan) queue(batch *pgx.Batch, spec *turnlog.Spec, begin turnlog.Begin) error {
	if p.newConversation {
		var columns startColumns
		err := columns.add(p, spec, begin, nil)
		batch.Queue(storeNewTurnsSQL, columns.arguments()...)
		p.queueWork(batch)
		return err
	}
	text, err := pg.JSONText(spec)
	if err != nil {
		return err
	}
	parts, err := pg.JSONText(textParts(p.input))
	if err != nil {
		return err
	}
	routing, err := routingText(&spec.Routing)
	if err != nil {
		return err
	}
	p.queueBranch(batch)
	depth := p.depth + 1 // of the user's message
	if p.existingMessage != nil {
		depth = p.depth
	}
	batch.Queue(storeTurnSQL, pgx.NamedArgs{
		"account": p.account, "conversation": p.conversation, "branch": p.branch, "turn": p.turn,
		"question": spec.UserMessageID, "answer": spec.AssistantMessageID, "depth": depth, "parent": p.parent,
		"parts": parts, "attachments": append([]protocol.FileID{}, p.attachments...), "new_question": p.existingMessage == nil,
		"profile": spec.Routing.Profile, "model": spec.Routing.ModelID, "follow_up": p.followUp, "spec": text,
		"routing": routing, "title": conversations.ProvisionalTitle(p.input),
		"state": string(begin.State), "accepts": begin.Accepts, "owner": p.owner, "last": begin.Last, "at": p.at, "frames": begin.Frames,
	})
	p.queueWork(batch)
	return nil
}

// routingText encodes how auto chose the profile; nil if the user chose it.
func routingText(routing *protocol.TurnRouting) (*string, error) {
	if routing.Intelligence.Requested != protocol.ProfileAuto {
		return nil, nil //nolint:nilnil // the column is null
	}
	text, err := pg.JSONText(protocol.MessageRouting{
		Requested: routing.Intelligence.Requested, Resolved: routing.Intelligence.Resolved, Reason: routing.Reason,
	})
	if err != nil {
		return nil, err
	}
	encoded := string(text)
	return &encoded, nil
}

// startColumns holds the array parameters of storeNewTurnsSQL.
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
	routings           []*string
	titles             []string
	projects           []*protocol.ProjectID
	attachments        []string // arrays
	ats                []time.Time
}

// add appends the row of a start in a new conversation. If key is not nil, the start claims it.
func (c *startColumns) add(p *turnPlan, spec *turnlog.Spec, begin turnlog.Begin, key *protocol.IdempotencyKey) error {
	text, err := pg.JSONText(spec)
	if err != nil {
		return err
	}
	parts, err := pg.JSONText(textParts(p.input))
	if err != nil {
		return err
	}
	routing, err := routingText(&spec.Routing)
	if err != nil {
		return err
	}
	c.routings, c.titles = append(c.routings, routing), append(c.titles, conversations.ProvisionalTitle(p.input))
	var project *protocol.ProjectID
	if p.project != nil {
		project = p.project.id
	}
	c.projects = append(c.projects, project)
	c.attachments = append(c.attachments, arrayText(p.attachments))
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
		name, hash = idempotency.KeyHash(*key), key.BodyHash[:]
	}
	c.keys, c.hashes = append(c.keys, name), append(c.hashes, hash)
	return nil
}

func (c *startColumns) arguments() []any {
	return []any{
		c.accounts, c.conversations, c.branches, c.turns, c.questions, c.answers, c.owners, c.temporary, c.parts,
		c.specs, c.profiles, c.models, c.states, c.accepts, c.lasts, c.frames, c.ats, c.keys, c.hashes,
		c.routings, c.titles, c.projects, c.attachments,
	}
}

// arrayText returns files as the text of an array: an array of arrays would have to be rectangular.
func arrayText(files []protocol.FileID) string {
	texts := make([]string, len(files))
	for i, id := range files {
		texts[i] = uuid.UUID(id).String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// queueBranch adds the statements that create the branch of the turn, if it is new.
func (p *turnPlan) queueBranch(batch *pgx.Batch) {
	if p.forkedFrom == nil {
		return
	}
	base := p.parent
	if p.existingMessage != nil {
		base = p.existingMessage
	}
	batch.Queue(conversations.InsertBranchSQL, pgx.NamedArgs{
		"account": p.account, "conversation": p.conversation, "branch": p.branch, "name": "", "base": base, "base_depth": p.depth, "source": *p.forkedFrom,
	})
	batch.Queue(conversations.ActivateBranchSQL, pgx.NamedArgs{"account": p.account, "conversation": p.conversation, "branch": p.branch})
}
