package search

import (
	"bytes"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// window is a range of the objects of a kind, newest first, with its matches.
type window struct {
	kind    protocol.SearchKind
	loose   bool
	from    time.Time // what is older does not count
	matches []match
	next    *Place // where the next window starts; nil: there is none
}

const windowSQL = `
	select id, conversation_id as container_id, at, score
	from search_window(@kind, @matching::tsquery, @words::tsquery, @whole::tsquery, @adjacent::tsquery, @conversation, @at, @id, @limit)`

// queueWindows queues the first window of each kind from a position on.
func (f *finder) queueWindows(batch *pgx.Batch, at Position) {
	f.windows = map[protocol.SearchKind]*window{}
	for _, kind := range f.kinds[slices.Index(f.kinds, at.Kind):] {
		w := &window{}
		f.windows[kind] = w
		f.queueWindow(batch, Position{Kind: kind, Loose: at.Loose, Before: at.Before}, w)
		at.Before = nil
	}
}

func (f *finder) queueWindow(batch *pgx.Batch, at Position, w *window) {
	f.read++
	w.kind, w.from, w.loose = at.Kind, f.from, at.Loose
	batch.Queue(f.windowSQL(at.Kind), f.windowArgs(at)).Query(w.read)
}

// windowSQL returns the statement that reads a window.
func (f *finder) windowSQL(kind protocol.SearchKind) string {
	switch {
	case f.conversation != nil && kind == protocol.SearchFile:
		return conversationFilesSQL
	case f.project == nil:
		return windowSQL
	case kind == protocol.SearchFile:
		return projectFilesSQL
	}
	return projectWindowSQL
}

// windowArgs returns the arguments of windowSQL.
func (f *finder) windowArgs(at Position) pgx.NamedArgs {
	before := at.Before
	if before == nil {
		before = &f.newest
	}
	tag := tag(f.account, at.Kind)
	args := pgx.NamedArgs{
		"kind": at.Kind, "matching": f.query.tsquery(tag), "words": nil, "whole": nil, "adjacent": nil,
		"conversation": f.conversation, "at": before.At, "id": before.ID, "limit": windowMatches,
	}
	if at.Loose {
		args["matching"] = f.loose.tsquery(tag) + " & " + f.query.except(tag)
		if f.many || f.query.ordered() {
			args["words"] = f.loose.words(tag)
		}
	} else {
		f.query.rankArgs(tag, args)
	}
	if f.project != nil || f.conversation != nil && at.Kind == protocol.SearchFile {
		args["account"], args["project"], args["few"], args["wide"] = f.account, f.project, f.few, wideMatches
	}
	return args
}

// rankArgs sets the arguments of windowSQL that rank the matches.
func (q *query) rankArgs(tag string, args pgx.NamedArgs) {
	if q.ordered() {
		args["words"] = q.words(tag)
	}
	if whole, distinguishes := q.whole(); distinguishes {
		args["whole"] = whole.tsquery(tag, true)
	}
	if adjacent, distinguishes := q.together(); distinguishes {
		args["adjacent"] = adjacent.tsquery(tag, true)
	}
}

// read reads a window. A row without a score is the position of the next one. If there is none, but as many matches as a
// window may have, the next one starts after the oldest of them.
func (w *window) read(rows pgx.Rows) error {
	var id [16]byte
	var container *[16]byte
	var at time.Time
	var score int
	_, err := pgx.ForEachRow(rows, []any{&id, &container, &at, &score}, func() error {
		if container == nil {
			w.next = &Place{at, id}
			return nil
		}
		w.matches = append(w.matches, match{Place: Place{at, id}, container: *container, score: score, loose: w.loose})
		return nil
	})
	if w.next == nil && len(w.matches) == windowMatches {
		oldest := slices.MinFunc(w.matches, func(a, b match) int { return a.compare(b.Place) })
		w.next = &oldest.Place
	}
	w.skipFound()
	w.skipOlder()
	return err
}

// skipOlder removes what is older than from.
func (w *window) skipOlder() {
	w.matches = slices.DeleteFunc(w.matches, func(m match) bool { return m.At.Before(w.from) })
	if w.next != nil && w.next.At.Before(w.from) {
		w.next = nil
	}
}

// skipFound moves the start of the next window behind the file in which this one ends, if the file was found.
func (w *window) skipFound() {
	if w.next == nil || w.kind != protocol.SearchFile {
		return
	}
	for _, m := range w.matches {
		first := m.ID
		first[14], first[15] = 0, 0
		if m.At.Equal(w.next.At) && bytes.Equal(m.ID[:14], w.next.ID[:14]) {
			w.next = &Place{m.At, first}
		}
	}
}

// windowOf returns the statement that reads a window of the rows whose container is one of those that a statement selects.
func windowOf(container, selected string) string {
	return `
	with size as materialized (
		select count(*) <= @few as small
		from (
			select
			from (select id from (` + selected + `) s limit @few + 1) c
			left join lateral (
				select from search_rows r
				where r.account_id = @account and ` + container + ` = c.id and r.kind = @kind and (r.at, r.id) < (@at, @id)
				limit @few + 1) r on true
			limit @few + 1) counted)
	(
		select r.id, c.id as container_id, r.at, r.score
		from (` + selected + `) c
		cross join lateral (
			select r.id, r.at,
				1 + coalesce(r.tokens @@ @whole::tsquery, false)::int + 2 * coalesce(r.tokens @@ @adjacent::tsquery, false)::int as score
			from search_rows r
			where r.account_id = @account and ` + container + ` = c.id and r.kind = @kind and (r.at, r.id) < (@at, @id)
				and r.tokens @@ @matching::tsquery
			order by r.at desc, r.id desc limit @limit) r
		where (select small from size)
		order by r.at desc, r.id desc limit @limit)
	union all
	select w.id, w.conversation_id, w.at, w.score
	from search_window(@kind, @matching::tsquery, @words::tsquery, @whole::tsquery, @adjacent::tsquery, null, @at, @id, @wide) w
	where not (select small from size) and (w.conversation_id is null or exists (select from (` + selected + `) c where c.id = w.conversation_id))`
}
