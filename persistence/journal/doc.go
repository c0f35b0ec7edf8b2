// Package journal appends the events of live turns to their logs. It is the group commit of a node: one statement
// stores the queued appends of many turns, each fenced by owner, epoch and next sequence.
//
// It retries an append until the append is stored or fenced, and never changes its bytes. It neither starts nor ends
// turns.
package journal
