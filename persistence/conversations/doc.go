// Package conversations stores conversations with their branches, messages and drafts, deletes them, and expires the temporary ones.
// Turns write messages too: package turns does that, under the lock of LockConversation.
//
// It starts, continues and ends no turn.
package conversations
