package turns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// turnRow is a turn that is about to be stored: its plan, its specification and its first events.
type turnRow struct {
	*turnPlan
	owner protocol.NodeID
	spec  *turnlog.Spec
	begin turnlog.Begin
	key   *protocol.IdempotencyKey // that the statement of the rows claims; nil: none

	// Set by encode.
	specText, parts string  // JSON
	routing         *string // JSON; nil: the user chose the profile
}

// begin generates the identifiers, builds the specification, and makes the first transition.
func (p *turnPlan) begin(on turnlog.Runner) (*turnRow, error) {
	if p.newConversation {
		p.conversation = protocol.NewConversationID()
	}
	if p.newConversation || p.forkedFrom != nil {
		p.branch = protocol.NewBranchID()
	}
	spec := &turnlog.Spec{
		AccountID: p.account, TurnID: p.turn, ConversationID: p.conversation, BranchID: p.branch,
		AssistantMessageID: protocol.NewMessageID(), ParentMessageID: p.parent, FollowUpID: p.followUp,
		Input: p.input, Attachments: p.attachments, Requested: p.requested, CreatedAt: p.at,
		AccountInstructions: p.instructions, Granted: p.granted,
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
	spec.DisabledTools = merged(spec.DisabledTools, p.tools.Disabled())
	first, err := on.Begin(spec)
	return &turnRow{turnPlan: p, owner: on.NodeID, spec: spec, begin: first}, err
}

// specify stores in the spec what the project determines for the whole turn.
func (p *projectFacts) specify(spec *turnlog.Spec) {
	if p.id == nil {
		return
	}
	spec.ProjectID, spec.InstructionsVersion = p.id, p.instructions
	spec.AskAll = p.approvals == protocol.ApproveAll
	choice := p.tools.Choice()
	spec.DisabledTools = choice.Disabled()
}

// merged returns the names of two sorted lists, sorted.
func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// queueWork adds the statements that record the turn in the work history of its project.
func (p *turnPlan) queueWork(batch *pgx.Batch) {
	if p.project.id == nil {
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
)

// newTurnColumns are the values of turns in new conversations, which storeNewTurnsSQL gets as one array a column.
var newTurnColumns = []column{
	columnOf("account_id", "uuid", func(r *turnRow) protocol.AccountID { return r.account }),
	columnOf("conversation_id", "uuid", func(r *turnRow) protocol.ConversationID { return r.conversation }),
	columnOf("branch_id", "uuid", func(r *turnRow) protocol.BranchID { return r.branch }),
	columnOf("turn_id", "uuid", func(r *turnRow) protocol.TurnID { return r.turn }),
	columnOf("question", "uuid", func(r *turnRow) protocol.MessageID { return r.spec.UserMessageID }),
	columnOf("answer", "uuid", func(r *turnRow) protocol.MessageID { return r.spec.AssistantMessageID }),
	columnOf("owner", "uuid", func(r *turnRow) protocol.NodeID { return r.owner }),
	columnOf("temporary", "bool", func(r *turnRow) bool { return r.temporary }),
	columnOf("parts", "text", func(r *turnRow) string { return r.parts }),
	columnOf("attachments", "text", func(r *turnRow) string { return pg.ArrayText(r.attachments) }),
	columnOf("spec", "text", func(r *turnRow) string { return r.specText }),
	columnOf("profile", "text", func(r *turnRow) string { return string(r.spec.Routing.Profile) }),
	columnOf("model", "text", func(r *turnRow) string { return r.spec.Routing.ModelID }),
	columnOf("routing", "text", func(r *turnRow) *string { return r.routing }),
	columnOf("state", "text", func(r *turnRow) string { return string(r.begin.State) }),
	columnOf("accepts", "bool", func(r *turnRow) bool { return r.begin.Accepts }),
	columnOf("last", "bigint", func(r *turnRow) int64 { return r.begin.Last }),
	columnOf("frames", "bytea", func(r *turnRow) []byte { return r.begin.Frames }),
	columnOf("at", "timestamptz", func(r *turnRow) time.Time { return r.at }),
	columnOf("key_hash", "bytea", func(r *turnRow) []byte {
		if r.key == nil {
			return nil
		}
		return idempotency.KeyHash(*r.key)
	}),
	columnOf("body_hash", "bytea", func(r *turnRow) []byte {
		if r.key == nil {
			return nil
		}
		return r.key.BodyHash[:]
	}),
	columnOf("path", "text", func(r *turnRow) *string {
		if r.key == nil {
			return nil
		}
		return &r.key.Path
	}),
	columnOf("title", "text", func(r *turnRow) string { return conversations.ProvisionalTitle(r.input) }),
	columnOf("project_id", "uuid", func(r *turnRow) *protocol.ProjectID { return r.project.id }),
}

// column is a column of rows that a statement gets as an array.
type column struct {
	name, kind string
	array      func(rows []*turnRow) any
}

func columnOf[T any](name, kind string, value func(*turnRow) T) column {
	return column{name, kind, func(rows []*turnRow) any {
		values := make([]T, len(rows))
		for i, row := range rows {
			values[i] = value(row)
		}
		return values
	}}
}

// unnest returns the table of the columns, whose arrays are the parameters from $1.
func unnest(columns []column) string {
	arrays, names := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		arrays[i], names[i] = fmt.Sprintf("$%d::%s[]", i+1, c.kind), c.name
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") as start (" + strings.Join(names, ", ") + ")"
}

// storeNewTurnsSQL creates many conversations with one turn each, for several accounts.
var storeNewTurnsSQL = `
with start as materialized (
    select * from ` + unnest(newTurnColumns) + `
), claims as (
    insert into idempotency (account_id, key_hash, path, body_hash, status, resource_id, created_at)
    select account_id, key_hash, path, body_hash, ` + strconv.Itoa(idempotency.Started) + `, turn_id, clock_timestamp() from start where key_hash is not null
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

// encode sets the values that are stored as JSON.
func (r *turnRow) encode() error {
	spec, err := pg.JSONText(r.spec)
	if err != nil {
		return err
	}
	parts, err := pg.JSONText(textParts(r.input))
	if err != nil {
		return err
	}
	r.specText, r.parts = string(spec), string(parts)
	r.routing, err = routingText(&r.spec.Routing)
	return err
}

// queue adds the statements that store the turn. The caller holds the locks, so each statement finds its row.
func (r *turnRow) queue(batch *pgx.Batch) error {
	if err := r.encode(); err != nil {
		return err
	}
	if r.newConversation {
		queueNewTurns(batch, []*turnRow{r})
		r.queueWork(batch)
		return nil
	}
	r.queueBranch(batch)
	depth := r.depth + 1 // of the user's message
	if r.existingMessage != nil {
		depth = r.depth
	}
	batch.Queue(storeTurnSQL, pgx.NamedArgs{
		"account": r.account, "conversation": r.conversation, "branch": r.branch, "turn": r.turn,
		"question": r.spec.UserMessageID, "answer": r.spec.AssistantMessageID, "depth": depth, "parent": r.parent,
		"parts": r.parts, "attachments": append([]protocol.FileID{}, r.attachments...), "new_question": r.existingMessage == nil,
		"profile": r.spec.Routing.Profile, "model": r.spec.Routing.ModelID, "follow_up": r.followUp, "spec": r.specText,
		"routing": r.routing, "title": conversations.ProvisionalTitle(r.input),
		"state": string(r.begin.State), "accepts": r.begin.Accepts, "owner": r.owner, "last": r.begin.Last, "at": r.at, "frames": r.begin.Frames,
	})
	r.queueWork(batch)
	return nil
}

// queueNewTurns adds the statement that stores turns in new conversations.
func queueNewTurns(batch *pgx.Batch, rows []*turnRow) {
	arrays := make([]any, len(newTurnColumns))
	for i, c := range newTurnColumns {
		arrays[i] = c.array(rows)
	}
	batch.Queue(storeNewTurnsSQL, arrays...)
}

// routingText encodes how auto chose the profile; nil if the user chose it.
func routingText(routing *protocol.TurnRouting) (*string, error) {
	if routing.Intelligence.Requested != protocol.ProfileAuto {
		return nil, nil // the column is null
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
