package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// SelfTest appends to turns of two accounts as the journal does, and rolls back. If the policies of the engine role are
// missing, such a statement finds too few rows without an error, and the journal would treat its appends as fenced.
func SelfTest(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("journal self-test: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // the transaction is never committed
	owner := protocol.NewNodeID()
	batch := make([]*journalEntry, 2)
	for i := range batch {
		if batch[i], err = selfTestTurn(ctx, tx, owner); err != nil {
			return fmt.Errorf("journal self-test: %w", pg.MissingGrant(err, pg.AppRole))
		}
	}
	if _, err := tx.Exec(ctx, setEngineRoleSQL); err != nil {
		return pg.MembershipError(ctx, conn.Config(), pg.EngineRole, err)
	}
	stored, err := appendBatch(ctx, tx.Conn(), batch)
	if err != nil {
		return fmt.Errorf("journal self-test: %w", pg.MissingGrant(err, pg.EngineRole))
	}
	if slices.Contains(stored, false) {
		return fmt.Errorf("journal self-test: rows were not found: the policies of %s are missing", pg.EngineRole)
	}
	return nil
}

const setEngineRoleSQL = `select set_config('turnstone.account_id', '', true), set_config('role', 'turnstone_engine', true)`

const (
	selfTestAccountSQL      = `insert into accounts (account_id, email, email_key, display_name) values ($1, '', 'self-test ' || $1::uuid::text, '')`
	selfTestConversationSQL = `insert into conversations (account_id, conversation_id, active_branch_id) values ($1, $2, $3)`
	selfTestTurnSQL         = `
insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, owner, next_sequence)
values ($1, $2, $3, $4, $4, $4, '{}', 'running', true, $5, 1)`
)

func selfTestTurn(ctx context.Context, tx pgx.Tx, owner protocol.NodeID) (*journalEntry, error) {
	account, turn := protocol.NewAccountID(), protocol.NewTurnID()
	conversation, branch := protocol.NewConversationID(), protocol.NewBranchID()
	batch := &pgx.Batch{}
	batch.Queue(pg.SetAccountSQL, pg.UUIDText(account))
	batch.Queue(selfTestAccountSQL, account)
	batch.Queue(selfTestConversationSQL, account, conversation, branch)
	batch.Queue(selfTestTurnSQL, account, turn, conversation, branch, owner)
	return &journalEntry{Append: &turnlog.Append{
		AccountID: account, TurnID: turn, Owner: owner, Epoch: 1, First: 1, Last: 1, Frames: []byte("{}\n"), State: protocol.TurnRunning,
		Records: []turnlog.Record{{Kind: turnlog.RecordStep, Key: "1", Sequence: 1, Body: []byte("{}")}},
	}}, tx.SendBatch(ctx, batch).Close()
}
