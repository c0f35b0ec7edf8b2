// Package open has the conditions of the rows that have not ended. They are exactly those of the partial indexes, character by
// character: a query uses an index only under the same condition. Statements of several files use them, and packages of several
// nouns, so the package is below all of them. It runs no statement.
package open

// HideTasks is the beginning of a statement that makes nodes stop research tasks t, because what they belong to was deleted: it fences
// their owners.
const HideTasks = `update research_tasks t set hidden = true, owner = null, owner_epoch = t.owner_epoch + 1`

// The conditions are on the column state of a table.
const (
	Turns        = `state not in ('completed', 'cancelled', 'failed', 'incomplete')`
	Tasks        = `state in ('queued', 'running', 'cancelling')`
	BusyTasks    = `state in ('running', 'cancelling')` // those that a node works on
	Imports      = `state in ('receiving', 'queued', 'running')`
	EndedImports = `state in ('completed', 'failed', 'cancelled')` // the other imports
	Uploads      = `state in ('pending', 'receiving', 'scanning')`
	BusyUploads  = `state in ('receiving', 'scanning')` // those that a node works on
	FollowUps    = `state in ('queued', 'held')`        // neither started nor cancelled
)
