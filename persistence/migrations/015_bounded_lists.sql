-- Reads that grew with what an account has. persistence/growth_test.go measures every read of the store.

-- The lists of conversations: an index for each filter that reads no others.
drop index conversations_list;
create index conversations_open on conversations
    (account_id, (pinned_at is not null) desc, last_activity_at desc, conversation_id desc)
    where deleted_at is null and not temporary and archived_at is null;
create index conversations_archived on conversations
    (account_id, (pinned_at is not null) desc, last_activity_at desc, conversation_id desc)
    where deleted_at is null and not temporary and archived_at is not null;
create index conversations_project_open on conversations
    (account_id, project_id, (pinned_at is not null) desc, last_activity_at desc, conversation_id desc)
    where deleted_at is null and not temporary and archived_at is null and project_id is not null;
create index conversations_project_archived on conversations
    (account_id, project_id, (pinned_at is not null) desc, last_activity_at desc, conversation_id desc)
    where deleted_at is null and not temporary and archived_at is not null and project_id is not null;

-- The position of a message among the alternatives at its place, so that they need not be counted. It is decided when the
-- message is written, under the lock of its conversation, and no sibling is ever deleted alone. FORCE would bind the owner,
-- who here writes the rows of all accounts.
alter table messages no force row level security;
alter table messages add column sibling_index int not null default 0;
update messages m set sibling_index = s.place
from (
    select account_id, message_id,
           row_number() over (partition by account_id, conversation_id, parent_message_id order by message_id) - 1 as place
    from messages
) s
where m.account_id = s.account_id and m.message_id = s.message_id and s.place > 0;
alter table messages force row level security;
drop index messages_siblings;
create index messages_siblings on messages (account_id, conversation_id, parent_message_id, sibling_index);

-- What waits to be started, beside any number of items that are held.
create index follow_ups_next on follow_ups (account_id, conversation_id, position, follow_up_id) where state = 'queued';

-- The sessions that have not ended, beside those that were signed out.
create index sessions_live on sessions (account_id, session_id) where revoked_at is null;

-- A client gives the time of its records, any number of them the same.
drop index usage_records_conversation;
create index usage_records_conversation on usage_records (account_id, conversation_id, occurred_at desc, usage_id desc);
