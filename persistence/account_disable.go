package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/protocol"
)

const (
	disableAgain  = time.Second      // from one look for live turns of a disabled account to the next
	disableSettle = 15 * time.Second // after which no request that came before is under way any more
)

// DisableAccountArgs asks that the live turns of a disabled account be cancelled. The job looks until none is live and no
// request from before can begin one.
type DisableAccountArgs struct {
	AccountID protocol.AccountID `json:"account_id"`
}

// Kind names the job.
func (DisableAccountArgs) Kind() string { return "disable_account" }

// InsertOpts never give up: a disabled account must not go on working.
func (DisableAccountArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxPurgeAttempts}
}

// The conversations are locked before the account, as a start does.
const (
	lockQueuesSQL = `
	select from (
		select distinct conversation_id from follow_ups where account_id = @account and state = 'queued' order by conversation_id
	) waiting cross join lateral (
		select from conversations where account_id = @account and conversation_id = waiting.conversation_id
		limit 1 for no key update) c`
	holdQueuesSQL = `
	with held as (
		update follow_ups set state = 'held', version = version + 1
		where account_id = @account and state = 'queued'
		returning conversation_id
	)
	update conversations c set queue_version = queue_version + 1
	where c.account_id = @account and c.conversation_id = any (array(select conversation_id from held))`
	disableAccountSQL = `update accounts set disabled_at = @at where account_id = @account and disabled_at is null`
	enableAccountSQL  = `update accounts set disabled_at = null where account_id = $1 and disabled_at is not null`
)

func queueHeld(batch *pgx.Batch, account protocol.AccountID) {
	args := pgx.NamedArgs{"account": account}
	batch.Queue(lockQueuesSQL, args)
	batch.Queue(holdQueuesSQL, args)
}

// DisableAccount shuts an account out: its sessions end, what waits in its queues is held, and a job cancels its live turns.
// Nothing of it is deleted.
func (db *DB) DisableAccount(ctx context.Context, account protocol.AccountID, now time.Time, by Requester) error {
	return db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		queueHeld(batch, account)
		batch.Queue(disableAccountSQL, pgx.NamedArgs{"account": account, "at": now})
		by.queue(batch, account, EventAccountDisabled, nil)
		queueEnded(batch, account, now)
		if err := tx.Run(ctx, batch); err != nil {
			return err
		}
		return db.enqueue(ctx, tx, DisableAccountArgs{account})
	})
}

// EnableAccount lets an account sign in again. It starts nothing: what was held stays held.
func (db *DB) EnableAccount(ctx context.Context, account protocol.AccountID, by Requester) error {
	return db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(enableAccountSQL, account)
		by.queue(batch, account, EventAccountEnabled, nil)
		return tx.Run(ctx, batch)
	})
}

const (
	disabledAtSQL = `select disabled_at from accounts where account_id = $1`
	stillLiveSQL  = `select turn_id from turns where account_id = $1 and ` + liveStates
)

// stopAccount cancels what a disabled account has live, and holds what a turn that ended meanwhile would have started next.
func (db *DB) stopAccount(ctx context.Context, account protocol.AccountID,
	cancel func(context.Context, protocol.AccountID, protocol.TurnID) error,
) error {
	var disabled *time.Time
	var live []protocol.TurnID
	err := db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(disabledAtSQL, account).QueryRow(func(row pgx.Row) error { return row.Scan(&disabled) })
		if err := tx.Run(ctx, batch); err != nil || disabled == nil {
			return err
		}
		batch = &pgx.Batch{}
		queueHeld(batch, account)
		batch.Queue(stillLiveSQL, account).Query(func(rows pgx.Rows) (err error) {
			live, err = pgx.CollectRows(rows, pgx.RowTo[protocol.TurnID])
			return err
		})
		return tx.Run(ctx, batch)
	})
	if err != nil || disabled == nil { // it was enabled again
		return err
	}
	var failed []error
	for _, turn := range live {
		failed = append(failed, cancel(ctx, account, turn))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("cancelling the turns of a disabled account: %w", err)
	}
	if len(live) > 0 || time.Since(*disabled) < disableSettle {
		return river.JobSnooze(disableAgain)
	}
	return nil
}
