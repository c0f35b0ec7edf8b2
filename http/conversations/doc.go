// Package conversations handles the requests for conversations and for what is in them: messages, branches and drafts.
//
// It contains no SQL and no state.
package conversations
