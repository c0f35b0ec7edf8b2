-- A branch for another version of the first message has no base, like the first branch of a conversation, and was missing in the feed. The
-- first branch comes with its conversation, whose active branch it is; another one is made active after it was inserted.
set local row_security = on; -- policies are meant
create function feed_root_branch() returns trigger
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
begin
    if not exists (select from public.conversations c
            where c.account_id = new.account_id and c.conversation_id = new.conversation_id and c.active_branch_id = new.branch_id) then
        insert into public.feed_items (account_id, kind, deleted, prefix, id, conversation_id)
        values (new.account_id, 'branch', false, 'br', new.branch_id, new.conversation_id);
    end if;
    return null;
end
$$;
revoke execute on function feed_root_branch() from public;
-- The first branch of a conversation that starts with a turn has a head when it is inserted.
create trigger feed_branch_root after insert on branches for each row
    when (new.base_message_id is null and new.head_depth = 0) execute function feed_root_branch();
