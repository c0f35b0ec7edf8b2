-- Reads that grew with an account's history.

-- Open streams check every few seconds whether their sessions have ended.
create index sessions_id on sessions (session_id);

-- The items that wait, beside any number that were started or cancelled.
create index follow_ups_open on follow_ups (account_id, conversation_id, position, follow_up_id) where state in ('queued', 'held');

-- A long log is compressed in blocks, so that reading its end does not decompress all of it. The frames hold the blocks
-- one after the other. Null: one block, as in all rows of older versions.
alter table turn_replays
    add column block_ends    bigint[], -- the last sequence of each block
    add column block_offsets int[];    -- where each block begins in frames, in bytes
