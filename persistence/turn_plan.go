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

const (
	insertUserMessageSQL = `
insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, attachments, turn_id, created_at)
values (@account, @user_message, @conversation, @branch, @user_depth, @parent, 'user', 'complete', @parts, @attachments, @turn, @at)`
	insertAnswerSQL = `
insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, turn_id, profile, model_id, created_at)
values (@account, @answer, @conversation, @branch, @user_depth + 1, @user_message, 'assistant', 'streaming', '[]', @turn, @profile, @model, @at)`
	moveHeadSQL = `
update branches set head_message_id = @answer, head_depth = @user_depth + 1 where account_id = @account and branch_id = @branch`
	insertTurnSQL = `
insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, follow_up_id, spec,
                   state, accepting, owner, owner_epoch, next_sequence, created_at)
values (@account, @turn, @conversation, @branch, @user_message, @answer, @follow_up, @spec, @state, @accepts, @owner, 1, @last + 1, @at)`
	insertEventsSQL = `
insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
values (@account, @turn, @first, @last, @epoch, @frames)`
	occupyConversationSQL = `
update conversations set live_turn_id = @turn, message_count = message_count + @added, last_activity_at = @at
where account_id = @account and conversation_id = @conversation`
)

// queue adds the statements that store the turn. The caller holds the locks, so each of them touches its row.
func (p *turnPlan) queue(batch *pgx.Batch, spec *protocol.TurnSpec, begin protocol.TurnBegin) error {
	text, err := jsonText(spec)
	if err != nil {
		return err
	}
	parts, err := jsonText(textParts(p.input))
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{
		"account": p.account, "conversation": p.conversation, "branch": p.branch, "turn": p.turn, "owner": p.owner,
		"user_message": spec.UserMessageID, "answer": spec.AssistantMessageID, "parent": p.parent, "follow_up": p.followUp,
		"user_depth": p.depth + 1, "parts": parts, "attachments": append([]protocol.FileID{}, p.attachments...), "at": p.at, "added": 2,
		"profile": spec.Routing.Profile, "model": spec.Routing.ModelID, "spec": text,
		"state": string(begin.State), "accepts": begin.Accepts, "first": int64(1), "last": begin.Last, "epoch": int32(1), "frames": begin.Frames,
	}
	p.queuePlace(batch, args)
	if p.answers != nil {
		args["user_depth"], args["added"] = p.depth, 1
	} else {
		batch.Queue(insertUserMessageSQL, args)
	}
	batch.Queue(insertAnswerSQL, args)
	batch.Queue(moveHeadSQL, args)
	batch.Queue(insertTurnSQL, args)
	batch.Queue(insertEventsSQL, args)
	batch.Queue(occupyConversationSQL, args)
	return nil
}

// queuePlace makes the conversation or the branch on which the turn stands, if it is new.
func (p *turnPlan) queuePlace(batch *pgx.Batch, args pgx.NamedArgs) {
	if p.newConversation {
		batch.Queue(insertConversationSQL, pgx.NamedArgs{
			"account": p.account, "conversation": p.conversation, "branch": p.branch, "title": "", "title_source": "auto",
			"profile": nil, "metadata": map[string]string{}, "temporary": p.temporary,
		})
	}
	if p.leaves != nil {
		base := p.parent
		if p.answers != nil {
			base = p.answers
		}
		batch.Queue(insertBranchSQL, pgx.NamedArgs{
			"account": p.account, "conversation": p.conversation, "branch": p.branch, "name": "", "base": base, "base_depth": p.depth, "source": *p.leaves,
		})
		batch.Queue(activateBranchSQL, pgx.NamedArgs{"account": p.account, "conversation": p.conversation, "branch": p.branch})
	}
}
