// Package queues has every statement that changes a follow-up or the version of a queue: follow_up.go adds follow-ups,
// follow_up_change.go changes one of them or their order, settle.go holds, cancels and erases many. A queue is the follow-ups of
// one conversation; its version is a column of the conversation.
//
// It decides nothing and takes no lock except in LockOfProject and HoldOfAccount: its callers have locked the conversation
// (conversations.LockConversation). They are package followups (requests on a queue), turns (the end of a turn, and a start that is
// queued), research (returned inputs), conversations (deletion and purge), projects (archives), operator (disabled accounts) and imports.
package queues
