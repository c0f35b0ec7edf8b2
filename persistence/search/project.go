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
// The files of a project, and those of a conversation, are read by the same rule; see file.go.
var projectWindowSQL = windowOf("r.conversation_id", `
				select c.conversation_id as id from conversations c
				where c.account_id = @account and c.project_id = @project and `+conversations.Visible)
