package feed

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// retention is how long items are kept. A reader that was away for longer has to reload.
const retention = "7 days"

// Store reads the feed. Its methods may be called from any goroutine.
type Store struct{ db *pg.DB }

// New returns a store.
func New(db *pg.DB) *Store { return &Store{db} }

// Position is a position between two items. The items of an account, and those of all accounts, are in the order of their
// positions.
type Position struct {
	Transaction uint64 `json:"x"`
	N           int64  `json:"n"` // the order within the transaction
	// History identifies the history of the database in which the transaction has its number. It changes when the
	// database is restored from a backup or a standby takes over: from then on, the numbers of lost transactions are
	// used again. 0, in a cursor of an earlier version: any history.
	History uint64 `json:"h,omitempty"`
}

// Before reports whether p precedes q.
func (p Position) Before(q Position) bool {
	return p.Transaction < q.Transaction || p.Transaction == q.Transaction && p.N < q.N
}

// Item is one change of a resource.
type Item struct {
	Account  protocol.AccountID
	Position Position
	protocol.FeedItem
}

// Page is the result of one read.
type Page struct {
	Items []Item
	// End is the position up to which the read is complete: the next one continues there.
	End Position
	// More reports whether the read was cut off at its limit.
	More bool
	// Gap reports whether items after the given position may be missing: they expired, the database has never reached the
	// position, or the position is of another history. Items is then empty, and End is the present.
	Gap bool
}

// The first row of a read is always there: its left part is the state of the feed, in the same snapshot as the items. The
// history combines the identity of the cluster with its timeline: the first eight digits in the name of a log file.
const (
	selectItems = `
	select h.present::text, h.expired::text,
		(select system_identifier # ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint from pg_control_system()), f.account_id, f.xid::text, f.n, f.kind, f.deleted, f.prefix, f.id, f.conversation_id, f.version, f.state, f.at
	from (select pg_snapshot_xmin(pg_current_snapshot()) as present, (select xid from feed_expiry) as expired) h
	left join lateral (
		select account_id, xid, n, kind, deleted, prefix, id, conversation_id, version, state, at from feed_items
		where `
	upToPresent = `(xid, n) > (@xid::text::xid8, @n) and xid < h.present
		order by xid, n
		limit @limit
	) f on true`
	readSQL = selectItems + `account_id = @account and ` + upToPresent
	tailSQL = selectItems + upToPresent
)

// Read returns at most limit items of an account after a position.
func (s *Store) Read(ctx context.Context, account protocol.AccountID, after Position, limit int) (*Page, error) {
	rows, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[row], readSQL, args(account, after, limit))
	if err != nil {
		return nil, fmt.Errorf("reading the feed: %w", err)
	}
	return pageOf(rows, after, limit)
}

// Present returns the position of a reader that needs only what happens from now on.
func (s *Store) Present(ctx context.Context, account protocol.AccountID) (Position, error) {
	page, err := s.Read(ctx, account, Position{}, 0)
	if err != nil {
		return Position{}, err
	}
	return page.End, nil
}

// Tail returns at most limit items of all accounts after a position. One call of it per node finds out which readers have
// something to read.
func (s *Store) Tail(ctx context.Context, after Position, limit int) (*Page, error) {
	ctx, cancel := context.WithTimeout(ctx, pg.RequestTimeout)
	defer cancel()
	found, err := s.db.Engine.Query(ctx, tailSQL, args(pg.NoAccount, after, limit))
	if err != nil {
		return nil, fmt.Errorf("reading the end of the feed: %w", pg.Classify(err))
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, fmt.Errorf("reading the end of the feed: %w", pg.Classify(err))
	}
	return pageOf(rows, after, limit)
}

func args(account protocol.AccountID, after Position, limit int) pgx.NamedArgs {
	return pgx.NamedArgs{"account": account, "xid": strconv.FormatUint(after.Transaction, 10), "n": after.N, "limit": limit}
}

// row is the state of the feed and an item; the fields of the item are nil if there is none.
type row struct {
	Present, Expired string
	History          int64
	Account          *protocol.AccountID
	Transaction      *string
	N                *int64
	Kind             *string
	Deleted          *bool
	Prefix           *string
	ID               *[16]byte
	ConversationID   *protocol.ConversationID
	Version          *int64
	State            *string
	At               *time.Time
}

// pageOf returns the page of a read after a position. A position that the database has not reached, and one of another
// history, come from a database that was replaced by an older copy. An expiry that the database has not reached comes from
// a dump that was loaded into a new cluster, whose numbers begin again: every position is after it.
func pageOf(rows []row, after Position, limit int) (*Page, error) {
	present, err := strconv.ParseUint(rows[0].Present, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading the feed: %w", err)
	}
	expired, err := strconv.ParseUint(rows[0].Expired, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading the feed: %w", err)
	}
	if expired > present {
		expired = 0
	}
	history := uint64(rows[0].History)
	page := &Page{End: Position{Transaction: present, History: history}}
	if after.Transaction <= expired || after.Transaction > present || after.History != 0 && after.History != history {
		page.Gap = true
		return page, nil
	}
	if rows[0].Account == nil {
		return page, nil
	}
	page.Items = make([]Item, len(rows))
	for i := range rows {
		if page.Items[i], err = rows[i].item(); err != nil {
			return nil, err
		}
	}
	if page.More = len(rows) == limit; page.More {
		page.End = page.Items[len(rows)-1].Position
	}
	return page, nil
}

func (r *row) item() (Item, error) {
	transaction, err := strconv.ParseUint(*r.Transaction, 10, 64)
	if err != nil {
		return Item{}, fmt.Errorf("reading the feed: %w", err)
	}
	item := protocol.NewFeedItem(*r.Kind, *r.Deleted, *r.Prefix, *r.ID)
	item.ConversationID, item.Version, item.At = r.ConversationID, r.Version, *r.At
	if r.State != nil {
		item.State = *r.State
	}
	return Item{Account: *r.Account, Position: Position{transaction, *r.N, uint64(r.History)}, FeedItem: item}, nil
}

// Latest returns the items without those that a later item about the same resource replaces. The order stays. Each item
// has its own position, so a reader that stops at any of them misses nothing.
func Latest(items []Item) []Item {
	type resource struct{ kind, id string }
	last := make(map[resource]int, len(items))
	for i := range items {
		last[resource{items[i].Kind(), items[i].ID}] = i
	}
	latest := items[:0:0]
	for i := range items {
		if last[resource{items[i].Kind(), items[i].ID}] == i {
			latest = append(latest, items[i])
		}
	}
	return latest
}

// expireSQL removes at most $1 of the oldest items. The position after the last one is stored with it, so that a read sees
// either the items or that they are gone.
const expireSQL = `
	with oldest as (
		select account_id, xid, n, at from feed_items order by xid, n limit $1
	), removed as (
		delete from feed_items f using oldest o
		where f.account_id = o.account_id and f.xid = o.xid and f.n = o.n and o.at < now() - '` + retention + `'::interval
		returning f.xid
	), marked as (
		update feed_expiry set xid = greatest(xid, (select xid from removed order by xid desc limit 1))
		where exists (select from removed)
	)
	select from removed`

// Expire removes the items that are older than retention.
func (s *Store) Expire(ctx context.Context) error { return s.db.DeleteExpired(ctx, expireSQL) }
