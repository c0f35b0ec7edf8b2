package limits

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// reservationLifetime is longer than any model call: a turn ends at its deadline, after at most 15 minutes.
const reservationLifetime = 30 * time.Minute

// reservedRetry is when a caller may try again that only reservations have stopped, in seconds. Many model calls end within it.
const reservedRetry = 5

// Budget counts the model tokens of each account and UTC day and refuses calls beyond the limit. Before each call,
// Reserve sets aside the tokens that the call may use, under a lock on the account's row for the day; Settle replaces
// the reservation by the tokens that were used. So concurrent calls exceed the limit only by what a provider uses
// beyond the reservation (an input whose estimate was too low), and by the calls of nodes that failed: their
// reservations expire uncounted.
type Budget struct {
	db    *pg.DB
	limit int64
}

// NewBudget returns a budget of limit tokens per account and day. limit must be positive.
func NewBudget(db *pg.DB, limit int64) *Budget { return &Budget{db: db, limit: limit} }

const (
	// This update changes nothing but locks the row.
	lockTokenDaySQL = `
	insert into token_days (account_id, day) values (@account, (now() at time zone 'UTC')::date)
	on conflict (account_id, day) do update set used = token_days.used`
	tokensUsedSQL = `
	select coalesce((select used from token_days where account_id = @account and day = (now() at time zone 'UTC')::date), 0) as used,
		coalesce((select sum(tokens) from token_reservations
			where account_id = @account and day = (now() at time zone 'UTC')::date and expires_at > now()), 0)::bigint as reserved`
	reservedTokensSQL = `
	select tokens from token_reservations where account_id = @account and reservation_id = @reservation`
	reserveTokensSQL = `
	insert into token_reservations (account_id, reservation_id, day, tokens, expires_at)
	values (@account, @reservation, (now() at time zone 'UTC')::date, @tokens, now() + @lifetime::interval)`
	settleTokensSQL = `
	with settled as (
		delete from token_reservations where account_id = @account and reservation_id = @reservation returning day
	)
	insert into token_days (account_id, day, used) select @account, day, @used from settled
	on conflict (account_id, day) do update set used = token_days.used + excluded.used`
)

const (
	expireTokenDaysSQL = `
	delete from token_days d using (
		select account_id, day from token_days where day < now() - interval '40 days' limit $1) x
	where d.account_id = x.account_id and d.day = x.day`
	expireReservationsSQL = `
	delete from token_reservations r using (
		select account_id, reservation_id from token_reservations where expires_at < now() limit $1) x
	where r.account_id = x.account_id and r.reservation_id = x.reservation_id`
)

// ExpireTokens deletes old counts and expired reservations.
func ExpireTokens(ctx context.Context, db *pg.DB) error {
	return db.DeleteExpired(ctx, expireTokenDaysSQL, expireReservationsSQL)
}

// Reserve sets tokens aside for a model call: most, or the rest of the day's budget if that is at least least. It
// returns protocol.CodeBudgetReached if less than least is left. A repeated call with the same reservation, after a
// lost reply, returns what the first call granted.
func (b *Budget) Reserve(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, least, most int) (granted int, err error) {
	args := pgx.NamedArgs{"account": account, "reservation": reservation, "lifetime": reservationLifetime}
	err = b.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, lockTokenDaySQL, args); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, reservedTokensSQL, args).Scan(&granted)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var used, reserved int64
		if err := tx.QueryRow(ctx, tokensUsedSQL, args).Scan(&used, &reserved); err != nil {
			return err
		}
		left := b.limit - used - reserved
		if left < int64(least) {
			return b.reached()
		}
		granted = int(min(left, int64(most)))
		args["tokens"] = granted
		_, err = tx.Exec(ctx, reserveTokensSQL, args)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reserving tokens: %w", err)
	}
	return granted, nil
}

// Settle replaces a reservation by the tokens that the call used. A repeated call changes nothing.
func (b *Budget) Settle(ctx context.Context, account protocol.AccountID, reservation protocol.UsageID, used int) error {
	_, err := b.db.Exec(ctx, account, settleTokensSQL, pgx.NamedArgs{"account": account, "reservation": reservation, "used": used})
	if err != nil {
		return fmt.Errorf("settling tokens: %w", err)
	}
	return nil
}

// Check returns protocol.CodeBudgetReached if nothing of the day's budget is left, or if model calls that run have reserved the rest.
func (b *Budget) Check(ctx context.Context, account protocol.AccountID) error {
	state, err := b.State(ctx, account)
	switch {
	case err != nil:
		return err
	case state.Used >= state.Limit:
		return b.reached()
	case state.Used+state.Reserved >= state.Limit:
		return &protocol.Error{
			Code: protocol.CodeBudgetReached, RetryAfter: reservedRetry,
			Detail: fmt.Sprintf("Model calls in progress have reserved the rest of the account's %d model tokens for today. Try again when they have ended.", b.limit),
		}
	}
	return nil
}

// CheckUsed is Check for work that outlasts the model calls that run now: what these have reserved is not counted.
func (b *Budget) CheckUsed(ctx context.Context, account protocol.AccountID) error {
	state, err := b.State(ctx, account)
	if err == nil && state.Used >= state.Limit {
		err = b.reached()
	}
	return err
}

// State returns how much of the day's budget an account has used.
func (b *Budget) State(ctx context.Context, account protocol.AccountID) (*protocol.TokenBudget, error) {
	state, err := pg.Row(ctx, b.db, account, pgx.RowToAddrOfStructByNameLax[protocol.TokenBudget], tokensUsedSQL, pgx.NamedArgs{"account": account})
	if err != nil {
		return nil, fmt.Errorf("reading the budget: %w", err)
	}
	state.Limit, state.ResetsAt = b.limit, nextDay(time.Now())
	return state, nil
}

func nextDay(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// reached returns the error for an exhausted budget, with the time until the next UTC day.
func (b *Budget) reached() error {
	now := time.Now().UTC()
	reset := nextDay(now)
	return &protocol.Error{
		Code: protocol.CodeBudgetReached, RetryAfter: int(reset.Sub(now)/time.Second) + 1,
		Detail: fmt.Sprintf("The account has used its %d model tokens for today. The budget resets at %s.", b.limit, reset.Format(time.RFC3339)),
	}
}
