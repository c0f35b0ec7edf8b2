package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// snapshot is the content of the database at the end of a round, read by its superuser.
type snapshot struct {
	Turns         map[string]*storedTurn
	FollowUps     []storedFollowUp
	Conversations map[string]storedConversation
	Messages      []storedMessage // of users
	Tasks         map[string]*storedTask
	Items         storedItems
	Data          storedData
}

type storedTurn struct {
	ID, Conversation, FollowUp string
	State                      protocol.TurnState
	Epoch                      int32
	Next                       int64
	Terminal                   bool
	Chunks                     []verify.Chunk
	Replay                     []byte
	ReplayLast                 int64
	Cancelled                  bool // a cancel record is stored
	Usages                     int
	Question                   string // text of the user's message
	Depth                      int    // of the user's message: the position of the turn in its conversation
	AnswerStatus               string
	Answer                     string // the parts of the assistant's message, as JSON
}

type storedFollowUp struct {
	ID, Conversation, Content, Turn string
	State                           protocol.FollowUpState
	Position                        int64
}

type storedConversation struct {
	Title        string
	Version      int64
	Draft        string
	DraftVersion int64
	Live         string
}

// storedMessage is a user's message and the turn that answers it; Turn is "" if there is none.
type storedMessage struct{ Text, Turn string }

const (
	turnsSQL = `
select t.account_id, t.turn_id, t.conversation_id, t.follow_up_id, t.state, t.owner_epoch, t.next_sequence, t.terminal,
       exists (select from turn_records r where r.account_id = t.account_id and r.turn_id = t.turn_id and r.kind = 'cancel'),
       (select count(*) from usage_records u where u.account_id = t.account_id and u.turn_id = t.turn_id and u.source = 'server'),
       coalesce((select m.parts::text from messages m where m.account_id = t.account_id and m.message_id = t.user_message_id), ''),
       coalesce((select m.depth from messages m where m.account_id = t.account_id and m.message_id = t.user_message_id), 0),
       coalesce((select m.status from messages m where m.account_id = t.account_id and m.message_id = t.assistant_message_id), ''),
       coalesce((select m.parts::text from messages m where m.account_id = t.account_id and m.message_id = t.assistant_message_id), '')
from turns t join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id
where c.created_at >= $1 and t.account_id = any($2)`
	chunksSQL = `
select turn_id, first_sequence, last_sequence, epoch, frames from turn_events
where account_id = any($1) and turn_id = any($2) order by account_id, turn_id, first_sequence`
	replaysSQL   = `select turn_id, last_sequence, frames from turn_replays where account_id = any($1) and turn_id = any($2)`
	followUpsSQL = `
select f.follow_up_id, f.conversation_id, f.state, f.content, f.turn_id, f.position
from follow_ups f join conversations c on c.account_id = f.account_id and c.conversation_id = f.conversation_id
where c.created_at >= $1 and f.account_id = any($2)`
	conversationsSQL = `
select conversation_id, title, version, draft, draft_version, live_turn_id from conversations
where created_at >= $1 and account_id = any($2)`
	messagesSQL = `
select m.parts::text, t.turn_id
from messages m join conversations c on c.account_id = m.account_id and c.conversation_id = m.conversation_id
left join turns t on t.account_id = m.account_id and t.user_message_id = m.message_id
where c.created_at >= $1 and m.account_id = any($2) and m.role = 'user'`
)

// readSnapshot reads the rows of conversations that were created since a time.
func readSnapshot(ctx context.Context, conn *pgx.Conn, accounts []protocol.AccountID, since any) (*snapshot, error) {
	s := &snapshot{Turns: map[string]*storedTurn{}, Conversations: map[string]storedConversation{}, Tasks: map[string]*storedTask{}}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	turns, err := s.readTurns(ctx, tx, accounts, since)
	if err != nil {
		return nil, fmt.Errorf("turns: %w", err)
	}
	for what, read := range map[string]func() error{
		"chunks":        func() error { return s.readChunks(ctx, tx, accounts, turns) },
		"replays":       func() error { return s.readReplays(ctx, tx, accounts, turns) },
		"follow-ups":    func() error { return s.readFollowUps(ctx, tx, accounts, since) },
		"conversations": func() error { return s.readConversations(ctx, tx, accounts, since) },
		"messages":      func() error { return s.readMessages(ctx, tx, accounts, since) },
		"items":         func() error { return s.readItems(ctx, tx, accounts, since) },
		"tasks":         func() error { return s.readTasks(ctx, tx, accounts, since) },
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return s, nil
}

func (s *snapshot) readTurns(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, since any) ([]protocol.TurnID, error) {
	rows, err := tx.Query(ctx, turnsSQL, since, accounts)
	if err != nil {
		return nil, err
	}
	var ids []protocol.TurnID
	var account protocol.AccountID
	var turn protocol.TurnID
	var conversation protocol.ConversationID
	var followUp *protocol.FollowUpID
	var parts string
	one := storedTurn{}
	_, err = pgx.ForEachRow(rows, []any{
		&account, &turn, &conversation, &followUp, &one.State, &one.Epoch, &one.Next, &one.Terminal, &one.Cancelled, &one.Usages,
		&parts, &one.Depth, &one.AnswerStatus, &one.Answer,
	}, func() error {
		stored := one
		stored.ID, stored.Conversation, stored.Question = turn.String(), conversation.String(), textOf(parts)
		if followUp != nil {
			stored.FollowUp = followUp.String()
		}
		s.Turns[stored.ID] = &stored
		ids, followUp = append(ids, turn), nil
		return nil
	})
	return ids, err
}

// textOf returns the text of the first part of a message.
func textOf(parts string) string {
	var list []protocol.Part
	if json.Unmarshal([]byte(parts), &list) != nil || len(list) == 0 {
		return ""
	}
	return list[0].Text
}

func (s *snapshot) readChunks(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, turns []protocol.TurnID) error {
	rows, err := tx.Query(ctx, chunksSQL, accounts, turns)
	if err != nil {
		return err
	}
	var turn protocol.TurnID
	var one verify.Chunk
	_, err = pgx.ForEachRow(rows, []any{&turn, &one.First, &one.Last, &one.Epoch, &one.Frames}, func() error {
		stored := s.Turns[turn.String()]
		stored.Chunks = append(stored.Chunks, one)
		one.Frames = nil
		return nil
	})
	return err
}

func (s *snapshot) readReplays(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, turns []protocol.TurnID) error {
	rows, err := tx.Query(ctx, replaysSQL, accounts, turns)
	if err != nil {
		return err
	}
	var turn protocol.TurnID
	var last int64
	var frames []byte
	_, err = pgx.ForEachRow(rows, []any{&turn, &last, &frames}, func() error {
		stored := s.Turns[turn.String()]
		stored.ReplayLast = last
		unpacker, failed := zstd.NewReader(bytes.NewReader(frames))
		if failed != nil {
			return failed
		}
		defer unpacker.Close()
		stored.Replay, failed = io.ReadAll(unpacker)
		return failed
	})
	return err
}

func (s *snapshot) readFollowUps(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, since any) error {
	rows, err := tx.Query(ctx, followUpsSQL, since, accounts)
	if err != nil {
		return err
	}
	var id protocol.FollowUpID
	var conversation protocol.ConversationID
	var turn *protocol.TurnID
	var one storedFollowUp
	_, err = pgx.ForEachRow(rows, []any{&id, &conversation, &one.State, &one.Content, &turn, &one.Position}, func() error {
		item := one
		item.ID, item.Conversation = id.String(), conversation.String()
		if turn != nil {
			item.Turn = turn.String()
		}
		s.FollowUps, turn = append(s.FollowUps, item), nil
		return nil
	})
	return err
}

func (s *snapshot) readConversations(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, since any) error {
	rows, err := tx.Query(ctx, conversationsSQL, since, accounts)
	if err != nil {
		return err
	}
	var id protocol.ConversationID
	var live *protocol.TurnID
	var one storedConversation
	_, err = pgx.ForEachRow(rows, []any{&id, &one.Title, &one.Version, &one.Draft, &one.DraftVersion, &live}, func() error {
		stored := one
		if live != nil {
			stored.Live = live.String()
		}
		s.Conversations[id.String()], live = stored, nil
		return nil
	})
	return err
}

func (s *snapshot) readMessages(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, since any) error {
	rows, err := tx.Query(ctx, messagesSQL, since, accounts)
	if err != nil {
		return err
	}
	var parts string
	var turn *protocol.TurnID
	_, err = pgx.ForEachRow(rows, []any{&parts, &turn}, func() error {
		message := storedMessage{Text: textOf(parts)}
		if turn != nil {
			message.Turn = turn.String()
		}
		s.Messages, turn = append(s.Messages, message), nil
		return nil
	})
	return err
}
