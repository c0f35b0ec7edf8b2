package pg

// The conditions that decide which node may own work. Their parameters are expressions: a parameter of the statement, or a column.

// NodeRuns is the condition that a node was not marked dead. A column is named with its table: node_id alone would be that of nodes.
func NodeRuns(node string) string {
	return `exists (select from nodes where node_id = ` + node + ` and not dead)`
}

// NodeClaims is the condition that a node may claim work: it was not marked dead, and does not drain.
func NodeClaims(node string) string {
	return `exists (select from nodes where node_id = ` + node + ` and not dead and not draining)`
}

// Unowned is the condition that no running node owns a row. Postgres makes no join of it, so an update that has waited for the row tests
// the row's new owner.
func Unowned(owner string) string { return `(` + owner + ` is null or not ` + NodeRuns(owner) + `)` }
