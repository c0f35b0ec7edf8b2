package search

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	firstSlices = 16 // that the first statement for a text reads, 1 MiB
	moreSlices  = 8  // so many times as many each further one reads than the one before it
	mostSlices  = 512
)

// slicesSQL reads slices of the visible text of a message, in their order, in bytes. An empty part has one slice. Parts
// may have U+0000, which Postgres cannot decode; it separates words as U+FFFD does. The materialized parts are decoded once.
const slicesSQL = `
	with parts as materialized (
		select p.n as part, convert_to(coalesce(case p.type when 'code' then p.code else p.text end, ''), 'UTF8') as text
		from messages m
		cross join lateral rows from (json_to_recordset(replace(m.parts::text, '\u0000', '\ufffd')::json) as (type text, text text, code text))
			with ordinality p (type, text, code, n)
		where m.account_id = @account and m.message_id = @id and m.status <> 'streaming' and p.type in ('text', 'code'))` + cutSQL

// artifactSlicesSQL is slicesSQL for an artifact, whose title is its first part.
const artifactSlicesSQL = `
	with parts as materialized (
		select p.n as part, convert_to(p.text, 'UTF8') as text
		from artifacts a
		join artifact_versions v on v.account_id = a.account_id and v.artifact_id = a.artifact_id and v.version = a.version
		cross join lateral (values (1::bigint, a.title), (2, v.content)) p (n, text)
		where a.account_id = @account and a.artifact_id = @id)` + cutSQL

const cutSQL = `
	select p.part, s.start, substring(p.text from s.start + 1 for 65536) as slice
	from parts p cross join lateral generate_series(0, greatest(length(p.text) - 1, 0), 65536) s (start)
	offset @from limit @limit`

var errSlices = errors.New("the slices of a text are not in their order")

// readSlices passes the text of a long message or artifact to a flow, and returns how many bytes of it were read. Memory does not
// depend on its size. send runs a statement. What was deleted in the meantime has no text.
func readSlices(d *document, to *flow, send func(sql string, args pgx.NamedArgs, read func(pgx.Rows) error) error) (size int, err error) {
	sql := slicesSQL
	if d.Kind == protocol.SearchArtifact {
		sql = artifactSlicesSQL
	}
	var lastPart int64
	ended := false
	for from, limit := 0, firstSlices; !ended; from, limit = from+limit, min(moreSlices*limit, mostSlices) {
		rowsRead, next := 0, 0
		var failed error
		read := func(rows pgx.Rows) error {
			var part int64
			var start int
			var slice []byte
			_, err := pgx.ForEachRow(rows, []any{&part, &start, &slice}, func() error {
				rowsRead++
				size += len(slice)
				switch {
				case part < lastPart || part == lastPart && start != next && next > 0:
					failed = errSlices
				case part > lastPart:
					failed = to.part()
				}
				if lastPart, next = part, start+len(slice); failed == nil {
					failed = to.write(slice)
				}
				return failed
			})
			return err
		}
		err := send(sql, pgx.NamedArgs{"account": d.AccountID, "id": d.ID, "from": from, "limit": limit}, read)
		switch {
		case errors.Is(failed, errEnough):
			return size, nil
		case failed != nil:
			return size, pg.Classify(failed)
		case err != nil:
			return size, pg.Classify(err)
		}
		ended = rowsRead < limit
	}
	return size, ignoreEnough(to.end())
}

// readWhole passes a text that was read to a flow.
func readWhole(to *flow, parts []string) error {
	err := to.add(parts)
	if err == nil {
		err = to.end()
	}
	return pg.Classify(ignoreEnough(err))
}

// ignoreEnough returns the error of a reading that may have ended early.
func ignoreEnough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// readText passes a text to a flow.
func (f *finder) readText(d *document, to *flow) error {
	if !d.Long {
		return readWhole(to, d.texts())
	}
	select {
	case f.longTexts <- struct{}{}:
		defer func() { <-f.longTexts }()
	case <-to.ctx.Done():
		return pg.Classify(to.ctx.Err())
	}
	size, err := readSlices(d, to, func(sql string, args pgx.NamedArgs, read func(pgx.Rows) error) error {
		batch := &pgx.Batch{}
		batch.Queue(sql, args).Query(read)
		return f.db.Send(to.ctx, f.account, batch)
	})
	f.slices += size
	return err
}
