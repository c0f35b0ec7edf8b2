package turnlog

import "turnstone/protocol"

// Scope is what a tool may read: the files of the project if the conversation has one, else those of the library, and in both
// cases those that messages of the conversation have.
type Scope struct {
	AccountID      protocol.AccountID
	ConversationID protocol.ConversationID
	ProjectID      *protocol.ProjectID // nil: none
}
