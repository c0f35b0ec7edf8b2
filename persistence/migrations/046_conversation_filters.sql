-- The list of conversations is filtered by when they were created and changed. A range that few conversations are in is read
-- from these indexes; see persistence/conversations/filter.go.
create index conversations_created on conversations (account_id, created_at, conversation_id) where deleted_at is null and not temporary;
create index conversations_updated on conversations (account_id, updated_at, conversation_id) where deleted_at is null and not temporary;
