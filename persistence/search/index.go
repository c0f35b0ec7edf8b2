package search

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	indexRows  = 500     // pending rows that are handled together
	indexBytes = 1 << 20 // of texts that are tokenized together
	indexRun   = 40 * time.Second
	// storeTimeoutSQL replaces the timeout of statements: a text of 100,000 characters may have tens of thousands of tokens.
	storeTimeoutSQL = `select set_config('statement_timeout', '30s', true)`
)

// runIndex indexes until nothing is pending. When indexRun is over, the next run continues.
func (s *Store) runIndex(ctx context.Context, _ indexArgs) error {
	ctx, cancel := context.WithTimeout(ctx, indexRun)
	defer cancel()
	if err := s.Index(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

const (
	indexLockSQL   = `select pg_try_advisory_lock(hashtextextended('turnstone.search', 0))`
	indexUnlockSQL = `select pg_advisory_unlock(hashtextextended('turnstone.search', 0))`
)

// Index indexes until nothing is pending and all texts from before the index are in it. If another call on any node is
// doing that, it returns at once.
func (s *Store) Index(ctx context.Context) error {
	conn, err := pg.Acquire(ctx, s.db.Engine)
	if err != nil {
		return err
	}
	defer conn.Release()
	var mine bool
	if err := conn.QueryRow(ctx, indexLockSQL).Scan(&mine); err != nil || !mine {
		return pg.Classify(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), pg.ProbeTimeout)
		defer cancel()
		if _, err := conn.Exec(closing, indexUnlockSQL); err != nil {
			_ = conn.Conn().Close(closing) // which also releases the lock
		}
	}()
	i := &indexer{conn: conn.Conn(), log: s.db.Log}
	return i.run(ctx)
}

// indexer indexes over one connection.
type indexer struct {
	conn *pgx.Conn
	log  *zap.Logger
}

// run indexes until nothing is left. Texts that Postgres refuses together are indexed one by one; one that it refuses
// alone is logged and left out, so that it does not keep the others.
func (i *indexer) run(ctx context.Context) error {
	for rows := indexRows; ; {
		pending, err := i.pending(ctx, rows)
		if err != nil {
			return err
		}
		if len(pending) == 0 {
			if _, err := i.conn.Exec(ctx, flushSQL); err != nil {
				return fmt.Errorf("flushing the index: %w", pg.Classify(err))
			}
			if done, err := i.backfill(ctx); err != nil || done {
				return err
			}
			continue
		}
		err = i.index(ctx, pending)
		switch {
		case err == nil:
			rows = min(rows*2, indexRows)
		case pg.RefersToMissing(err): // a text was deleted in the meantime; the next attempt does not find it
		case pg.IsTransient(err) && !pg.IsCancelled(err):
			return err
		case rows > 1:
			rows = max(1, rows/16)
		default:
			if err := i.leaveOut(ctx, pending[0], err); err != nil {
				return err
			}
		}
	}
}

// leaveOut removes a pending row whose text cannot be indexed.
func (i *indexer) leaveOut(ctx context.Context, text pendingKey, cause error) error {
	i.log.Error("a text cannot be indexed, so it cannot be found", zap.String("kind", string(text.Kind)), zap.Error(cause))
	_, err := i.conn.Exec(ctx, handledSQL, []protocol.AccountID{text.AccountID}, []int64{text.N})
	if err != nil {
		return fmt.Errorf("leaving out a text: %w", pg.Classify(err))
	}
	return nil
}

const (
	pendingSQL = `select account_id, n, kind, id, coalesce(conversation_id, file_id) from search_pending limit $1`
	flushSQL   = `select search_flush()`
)

// pendingKey is a row of search_pending.
type pendingKey struct {
	AccountID   protocol.AccountID
	N           int64
	Kind        protocol.SearchKind
	ID          [16]byte
	ContainerID [16]byte
}

func (p *pendingKey) object() object { return object{p.AccountID, p.Kind, p.ID} }

// pending returns some of what is pending.
func (i *indexer) pending(ctx context.Context, limit int) ([]pendingKey, error) {
	rows, err := i.conn.Query(ctx, pendingSQL, limit)
	if err != nil {
		return nil, fmt.Errorf("listing texts to index: %w", pg.Classify(err))
	}
	pending, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pendingKey])
	if err != nil {
		return nil, fmt.Errorf("listing texts to index: %w", pg.Classify(err))
	}
	return pending, nil
}

const (
	// Should two processes index the same text, the one that knows the newer change wins.
	storeSQL = `
	insert into search_rows (account_id, kind, id, conversation_id, file_id, artifact_id, task_id, at, n, tokens)
	select account_id, kind, id, case when kind <> 'file' then container_id end, case when kind = 'file' then container_id end,
		case when kind = 'artifact' then id end, case when kind = 'task' then id end, at, n, tokens
	from unnest(@accounts::uuid[], @kinds::text[], @ids::uuid[], @containers::uuid[], @ats::timestamptz[], @ns::bigint[], @tokens::tsvector[])
		stored (account_id, kind, id, container_id, at, n, tokens)
	on conflict (account_id, kind, id) do update set tokens = excluded.tokens, n = excluded.n where search_rows.n <= excluded.n`
	removeSQL = `
	delete from search_rows r
	using unnest(@accounts::uuid[], @kinds::text[], @ids::uuid[], @ns::bigint[]) gone (account_id, kind, id, n)
	where r.account_id = gone.account_id and r.kind = gone.kind and r.id = gone.id and r.n <= gone.n`
	handledSQL = `
	delete from search_pending p
	using unnest($1::uuid[], $2::bigint[]) handled (account_id, n)
	where p.account_id = handled.account_id and p.n = handled.n`
)

// object identifies a text.
type object struct {
	account protocol.AccountID
	kind    protocol.SearchKind
	id      [16]byte
}

// columns collects keys as array parameters.
type columns struct {
	accounts   []protocol.AccountID
	kinds      []string
	ids        [][16]byte
	containers [][16]byte
	ns         []int64
}

func (c *columns) add(of object, container [16]byte, n int64) {
	c.accounts, c.kinds, c.ids = append(c.accounts, of.account), append(c.kinds, string(of.kind)), append(c.ids, of.id)
	c.containers, c.ns = append(c.containers, container), append(c.ns, n)
}

func (c *columns) args() pgx.NamedArgs {
	return pgx.NamedArgs{"accounts": c.accounts, "kinds": c.kinds, "ids": c.ids, "containers": c.containers, "ns": c.ns}
}

// index indexes the texts of pending rows. The rows were read before the texts, so each text is at least as new as the
// change that added its row.
func (i *indexer) index(ctx context.Context, pending []pendingKey) error {
	newest := map[object]pendingKey{}
	for _, p := range pending {
		if of := p.object(); p.N > newest[of].N {
			newest[of] = p
		}
	}
	documents, err := i.texts(ctx, newest)
	if err != nil {
		return fmt.Errorf("reading texts to index: %w", err)
	}
	b := indexBatch{later: map[object]bool{}}
	for n := range documents {
		d := &documents[n]
		if err := i.add(ctx, &b, d, newest[d.object()].N); err != nil {
			return fmt.Errorf("reading texts to index: %w", err)
		}
		delete(newest, d.object())
	}
	for of, p := range newest { // those without a text
		b.removed.add(of, p.ContainerID, p.N)
	}
	batch := b.statements(pending)
	if err := i.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("indexing texts: %w", pg.Classify(err))
	}
	return nil
}

// indexBatch collects what one transaction changes in the index.
type indexBatch struct {
	stored, removed columns
	ats             []time.Time
	vectors         []string
	later           map[object]bool // their texts were not read
	long            bool            // it has a long text
}

// add adds a text to a batch. A long text is read in slices, and a batch has at most one, so that the memory of the job does
// not depend on the sizes of texts.
func (i *indexer) add(ctx context.Context, b *indexBatch, d *document, n int64) error {
	of := d.object()
	if d.Cut || d.Long && b.long {
		b.later[of] = true
		return nil
	}
	indexed := newIndexing(ctx, d)
	var err error
	if b.long = b.long || d.Long; d.Long {
		_, err = readSlices(d, &indexed.flow, func(sql string, args pgx.NamedArgs, read func(pgx.Rows) error) error {
			rows, err := i.conn.Query(ctx, sql, args)
			if err != nil {
				return pg.Classify(err)
			}
			defer rows.Close()
			return read(rows)
		})
	} else {
		err = readWhole(&indexed.flow, d.texts())
	}
	if err != nil {
		return err
	}
	vector := indexed.String()
	if vector == "" {
		b.removed.add(of, d.ContainerID, n)
		return nil
	}
	b.stored.add(of, d.ContainerID, n)
	b.ats, b.vectors = append(b.ats, d.At), append(b.vectors, vector)
	return nil
}

// statements returns the statements of the transaction, which also removes the pending rows that were handled.
func (b *indexBatch) statements(pending []pendingKey) *pgx.Batch {
	args := b.stored.args()
	args["ats"], args["tokens"] = b.ats, b.vectors
	var accounts []protocol.AccountID
	var handled []int64
	for _, p := range pending {
		if !b.later[p.object()] {
			accounts, handled = append(accounts, p.AccountID), append(handled, p.N)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(storeTimeoutSQL)
	batch.Queue(storeSQL, args)
	batch.Queue(removeSQL, b.removed.args())
	batch.Queue(handledSQL, accounts, handled)
	return batch
}

func (i *indexer) texts(ctx context.Context, wanted map[object]pendingKey) ([]document, error) {
	var keys columns
	for of, p := range wanted {
		keys.add(of, p.ContainerID, p.N)
	}
	args := keys.args()
	args["bytes"] = indexBytes
	rows, err := i.conn.Query(ctx, readTextsSQL, args)
	if err != nil {
		return nil, pg.Classify(err)
	}
	documents, err := pgx.CollectRows(rows, pgx.RowToStructByName[document])
	return documents, pg.Classify(err)
}
