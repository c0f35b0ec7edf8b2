-- The account feed (docs/adr/0018): one row for each change of a resource that clients display. Triggers on the tables of
-- resources write the rows, so no statement of the service can change a resource and leave the feed without it.
set local row_security = on; -- policies are meant

-- Transactions do not commit in the order of their numbers. A reader takes only rows whose xid is below the oldest
-- transaction that is still running, in the order (xid, n): such a position never gets another row before it.
create table feed_items (
    account_id      uuid not null,                     -- no foreign key: its check would lock the account in every change
    xid             xid8 not null default pg_current_xact_id(),
    n               bigint generated always as identity (cache 50), -- the order within a transaction
    kind            text not null,                     -- of the resource: protocol.FeedKinds
    deleted         boolean not null,
    prefix          text not null,                     -- of the identifier, so that a node can report kinds of a later version
    id              uuid not null,
    conversation_id uuid,
    version         bigint,
    state           text,
    at              timestamptz not null default now(),
    primary key (account_id, xid, n)
);
-- What is new for all accounts, and what is expired.
create index feed_items_order on feed_items (xid, n);
alter table feed_items alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14

-- The last transaction of which the feed has lost rows to their expiry. A position before it may have a gap behind it.
create table feed_expiry (
    one  boolean primary key default true check (one),
    xid  xid8 not null
);
insert into feed_expiry (xid) values ('0');

alter table feed_items enable row level security;
alter table feed_items force row level security;
create policy own on feed_items
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
create policy engine on feed_items to turnstone_engine using (true) with check (true);
create policy fill on feed_items for insert to current_user with check (true);   -- the functions of feed_attach
create policy erase_find on feed_items for select to current_user using (true);  -- feed_erase
create policy erase on feed_items for delete to current_user using (true);
grant select on feed_items to turnstone_app;
grant select, delete on feed_items to turnstone_engine;
grant select on feed_expiry to turnstone_app;
grant select, update on feed_expiry to turnstone_engine;

-- feed_attach makes the changes of a table appear in the feed as items of a kind. prefix is that of the identifiers. The
-- other arguments are SQL expressions over the row "new" (the row "old" is the one before an update):
--   id, conversation, version, state   the fields of the item; identifiers are of type uuid
--   deleted                            whether the change deletes the resource for its account
--   on_insert, on_update               the condition under which a change is reported; 'false': never
--   on_delete                          the condition over "old" under which a removed row is reported as deleted
-- A condition on_update is checked for every update of a row, so it must compare columns that are cheap to compare, and no
-- column that a turn changes with every append. Do not use on_delete for rows that are removed with their conversation or
-- account: a purge would write an item for each of them.
create function feed_attach(rel regclass, kind text, prefix text, id text, conversation text default 'null', version text default 'null',
        state text default 'null', deleted text default 'false', on_insert text default 'true', on_update text default 'true',
        on_delete text default 'false') returns void
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
declare
    name constant text := 'feed_' || kind;
begin
    execute format($f$
        create function public.%I() returns trigger
            language plpgsql security definer set search_path = pg_catalog, public, pg_temp
        as $body$
        begin
            if tg_op = 'DELETE' then
                new := old;
            end if;
            insert into public.feed_items (account_id, kind, deleted, prefix, id, conversation_id, version, state)
            values (new.account_id, %L, tg_op = 'DELETE' or %s, %L, %s, %s, %s, %s);
            return null;
        end
        $body$ $f$, name, kind, deleted, prefix, id, conversation, version, state);
    execute format('revoke execute on function public.%I() from public', name);
    if on_insert <> 'false' then
        execute format('create trigger %I after insert on %s for each row when (%s) execute function public.%I()',
            name || '_insert', rel, on_insert, name);
    end if;
    if on_update <> 'false' then
        execute format('create trigger %I after update on %s for each row when (%s) execute function public.%I()',
            name || '_update', rel, on_update, name);
    end if;
    if on_delete <> 'false' then
        execute format('create trigger %I after delete on %s for each row when (%s) execute function public.%I()',
            name || '_delete', rel, on_delete, name);
    end if;
end
$$;
revoke execute on function feed_attach(regclass, text, text, text, text, text, text, text, text, text, text) from public;

-- A title of the service and the point up to which the account has read do not change the version, but are displayed.
-- What a turn changes in its conversation is reported as a change of the turn.
select feed_attach('conversations', 'conversation', 'conv', id => 'new.conversation_id', conversation => 'new.conversation_id',
    version => 'new.version', deleted => 'new.deleted_at is not null',
    on_update => 'old.version is distinct from new.version or old.title is distinct from new.title
        or old.read_message_id is distinct from new.read_message_id or old.deleted_at is distinct from new.deleted_at');
select feed_attach('conversations', 'draft', 'conv', id => 'new.conversation_id', conversation => 'new.conversation_id',
    version => 'new.draft_version', on_insert => 'false',
    on_update => 'old.draft_version is distinct from new.draft_version and new.deleted_at is null');
select feed_attach('conversations', 'queue', 'conv', id => 'new.conversation_id', conversation => 'new.conversation_id',
    version => 'new.queue_version', on_insert => 'false',
    on_update => 'old.queue_version is distinct from new.queue_version and new.deleted_at is null');
select feed_attach('follow_ups', 'follow_up', 'fu', id => 'new.follow_up_id', conversation => 'new.conversation_id',
    version => 'new.version', state => 'new.state',
    on_update => 'old.version is distinct from new.version or old.state is distinct from new.state');
-- The first branch of a conversation comes with the conversation. The head of a branch moves with every turn.
select feed_attach('branches', 'branch', 'br', id => 'new.branch_id', conversation => 'new.conversation_id',
    on_insert => 'new.base_message_id is not null', on_update => 'old.name is distinct from new.name');
select feed_attach('turns', 'turn', 'turn', id => 'new.turn_id', conversation => 'new.conversation_id', state => 'new.state',
    on_update => 'old.state is distinct from new.state');
select feed_attach('account_settings', 'settings', 'acct', id => 'new.account_id', version => 'new.version',
    on_update => 'old.version is distinct from new.version');

-- feed_erase removes the items of an account that is erased.
create function feed_erase() returns trigger
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
begin
    delete from public.feed_items where account_id = old.account_id;
    return null;
end
$$;
revoke execute on function feed_erase() from public;
create trigger feed_erase after delete on accounts for each row execute function feed_erase();
