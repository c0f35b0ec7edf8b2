package resource

import "turnstone/protocol"

// InConversation is embedded by inputs of routes below a conversation.
type InConversation struct {
	ConversationID protocol.ConversationID `path:"conversation_id"`
}

// ConversationPath returns the path of a conversation.
func ConversationPath(id protocol.ConversationID) string { return "/conversations/" + id.String() }
