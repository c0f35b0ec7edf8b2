package exports

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/exports/archive"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// source reads one conversation for its files.
type source struct {
	store   *Store
	account protocol.AccountID
	at      time.Time // branches that were created later are left out
	page    *protocol.ConversationPage

	alone   bool      // the export has nothing but this conversation, so its file has the artifacts
	only    *onlyPage // nil: one page does not have all messages
	written struct{ messages, branches, followUps, feedback int }
}

// onlyPage has all messages of a conversation, which the second file does not read again.
type onlyPage struct {
	branch   protocol.BranchID
	messages []protocol.Message
}

const serverTimeSQL = `select now()`

func (s *Store) open(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*source, error) {
	page, err := s.conversations.ConversationPage(ctx, account, id)
	if err != nil {
		return nil, err
	}
	at, err := pg.Row(ctx, s.db, account, pgx.RowTo[time.Time], serverTimeSQL) // later, so that the active branch is included
	if err != nil {
		return nil, fmt.Errorf("reading the time: %w", err)
	}
	return &source{store: s, account: account, at: at, page: page}, nil
}

const whyIncomplete = "The conversation was deleted while it was exported."

// writeJSON writes a protocol.ConversationExport.
func (s *source) writeJSON(ctx context.Context, to io.Writer) error {
	object := archive.NewObject(to)
	object.Member("format", protocol.ConversationExportFormat)
	object.Member("version", protocol.ExportVersion)
	object.Member("conversation", s.page.Conversation)
	object.Member("draft", s.page.Draft)
	object.Begin("follow_ups")
	err := s.followUps(ctx, func(item *protocol.FollowUp) { object.Item(item); s.written.followUps++ })
	object.End()
	if err == nil {
		object.Begin("branches")
		err = s.branches(ctx, func(b *exportedBranch) error { object.Item(b.Branch); s.written.branches++; return object.Err() })
		object.End()
	}
	if err == nil {
		object.Begin("messages")
		err = s.branches(ctx, func(b *exportedBranch) error {
			return s.messages(ctx, b.BranchID, b.FirstDepth, func(m *protocol.Message) error {
				object.Item(m)
				s.written.messages++
				if m.Feedback != nil {
					s.written.feedback++
				}
				return object.Err()
			})
		})
		object.End()
	}
	if err == nil && s.alone {
		object.Begin("artifacts")
		err = s.artifacts(ctx, false, func(a *protocol.ExportedArtifact) error { object.Item(a); return object.Err() })
		object.End()
	}
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound && object.Err() == nil:
		object.Member("incomplete", whyIncomplete)
	case err != nil:
		return err
	}
	return object.Close()
}

func (s *source) followUps(ctx context.Context, each func(*protocol.FollowUp)) error {
	var after *queues.Position
	for {
		queue, err := s.store.followUps.ListFollowUps(ctx, s.account, s.page.ConversationID, true, after, page)
		if err != nil {
			return err
		}
		for i := range queue.Items {
			each(&queue.Items[i])
		}
		if after = queue.Next; after == nil {
			return nil
		}
	}
}

// exportedBranch is a branch with the depths of its messages.
type exportedBranch struct {
	protocol.Branch
	FirstDepth int // of the first message that was written on it
	ShownDepth int // the last depth of it that the active branch shows; 0: none
}

// A branch always has its own segment, the last one. Segments that name it as their source show messages of it.
const branchesSQL = `
	select ` + conversations.BranchColumns + `,
		own.from_depth as first_depth,
		coalesce((select to_depth from branch_segments
			where account_id = @account and source_branch_id = b.branch_id and branch_id = c.active_branch_id), 0) as shown_depth
	from conversations c
	cross join lateral (
		select account_id, branch_id, name, base_message_id, head_message_id, head_depth, version, created_at from branches
		where account_id = @account and conversation_id = @conversation and branch_id > @after and created_at <= @at
		order by account_id, conversation_id, branch_id limit @limit) b
	cross join lateral (
		select from_depth from branch_segments
		where account_id = @account and branch_id = b.branch_id order by from_depth desc limit 1) own` + conversations.JoinBase + `
	where c.account_id = @account and c.conversation_id = @conversation and ` + conversations.Visible + `
	order by b.branch_id`

func (s *source) branches(ctx context.Context, each func(*exportedBranch) error) error {
	var after protocol.BranchID
	for {
		found, err := conversations.RowsOfConversation[exportedBranch](ctx, s.store.db, s.account, branchesSQL, pgx.NamedArgs{
			"account": s.account, "conversation": s.page.ConversationID, "after": after, "at": s.at, "limit": page,
		})
		if err != nil {
			return fmt.Errorf("reading branches: %w", err)
		}
		for i := range found {
			after = found[i].BranchID
			if err := each(&found[i]); err != nil {
				return err
			}
		}
		if len(found) < page {
			return nil
		}
	}
}

// messagePage is the number of messages that one statement reads; a page of large messages has fewer.
const messagePage = 100

// messages reads the path of a branch from a depth on.
func (s *source) messages(ctx context.Context, branch protocol.BranchID, from int, each func(*protocol.Message) error) error {
	if s.only != nil && s.only.branch == branch && from == 1 {
		return forEach(s.only.messages, each)
	}
	for more := true; more; {
		found, err := s.store.conversations.Messages(ctx, s.account, &conversations.MessageQuery{
			ConversationID: s.page.ConversationID, BranchID: &branch, Newer: true, After: from - 1, Limit: messagePage,
		})
		if err != nil {
			return err
		}
		if from == 1 && !found.Newer && len(found.Messages) >= s.page.MessageCount { // no other branch has messages
			s.only = &onlyPage{branch, found.Messages}
		}
		if err := forEach(found.Messages, each); err != nil {
			return err
		}
		more = found.Newer && len(found.Messages) > 0
		from = found.Last + 1
	}
	return nil
}

func forEach(messages []protocol.Message, each func(*protocol.Message) error) error {
	for i := range messages {
		if err := each(&messages[i]); err != nil {
			return err
		}
	}
	return nil
}
