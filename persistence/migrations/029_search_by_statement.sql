-- One statement records all messages of an insert for the search: a fork or an import adds thousands at once.
create function search_messages_added() returns trigger language plpgsql as $$
begin
    insert into public.search_pending (account_id, kind, id, conversation_id)
    select account_id, 'message', message_id, conversation_id from added where status <> 'streaming';
    return null;
end
$$;
drop trigger search_added on messages;
create trigger search_added after insert on messages referencing new table as added for each statement
    execute function search_messages_added();
