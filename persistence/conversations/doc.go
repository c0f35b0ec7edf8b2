// Package conversations stores conversations with their branches, messages, drafts and follow-ups, deletes them, and
// expires the temporary ones. Turns write messages and follow-ups too: package turns does that, under the lock of
// LockConversation.
//
// It starts, continues and ends no turn.
package conversations
