package search

import "turnstone/persistence/conversations"

const (
	fewRows     = 20_000 // of a kind in a project that a search reads itself
	wideMatches = 1000   // of the newest matches of an account, of which those in a large project are ranked together
)

// projectWindowSQL reads a window of one project. Rows of the index have no project, because a move would have to change
// all rows of a conversation. So where a conversation is now decides, and a move applies at once.
//
// In a project with few rows, the newest matches of each conversation are read and merged, whatever else the account has.
// In a larger one, this could read all rows for one match. Its windows are those of the account, which read a bounded
// number of rows, and contain what of them is in the project.
//
// The files of a project, and those of a conversation, are read by the same rule; see files.go.
var projectWindowSQL = windowOf("r.conversation_id", `
				select c.conversation_id as id from conversations c
				where c.account_id = @account and c.project_id = @project and `+conversations.Visible)

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
