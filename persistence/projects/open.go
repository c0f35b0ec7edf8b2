package projects

// The conditions of what has not ended in a project. They are exactly those of the partial indexes, character by character: a query uses
// an index only under the same condition.
const (
	LiveTurns   = `state not in ('completed', 'cancelled', 'failed', 'incomplete')`
	OpenTasks   = `state in ('queued', 'running', 'cancelling')`
	OpenUploads = `state in ('pending', 'receiving', 'scanning')`
	BusyUploads = `state in ('receiving', 'scanning')` // those that a node works on
)
