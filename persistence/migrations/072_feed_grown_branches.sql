-- A branch for another version of the first message has a head when it is inserted by an import, and was missing in the feed. Only an import
-- sets the time at which a branch was created.
create or replace trigger feed_branch_root after insert on branches for each row
    when (new.base_message_id is null and (new.head_depth = 0 or new.created_at <> now())) execute function feed_root_branch();
