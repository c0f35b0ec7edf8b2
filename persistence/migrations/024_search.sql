-- Search. A change of a text only adds a row to search_pending; a job makes the rows of search_rows from it, in batches. A
-- search reads the index and what is pending, so it finds what is committed. See docs/adr/0021.
set local row_security = on; -- policies are meant

-- One row for each title and message that can be found. The tokens are made by package search, for the index and for
-- queries alike. Each token begins with a letter for the kind and with characters of the account, so what a search reads
-- in the index belongs to its account, and to none of the others. Rows are kept uncompressed in the table, because a
-- search reads the newest ones one by one.
create table search_rows (
    account_id      uuid not null,
    kind            text not null check (kind in ('conversation', 'message')),
    id              uuid not null,                     -- of the conversation or the message
    conversation_id uuid not null,
    message_id      uuid generated always as (case when kind = 'message' then id end) stored,
    at              timestamptz not null,              -- of the creation
    n               bigint not null,                   -- of the newest row of search_pending that it includes
    tokens          tsvector not null,
    primary key (account_id, kind, id),
    foreign key (account_id, conversation_id) references conversations on delete cascade,
    foreign key (account_id, message_id) references messages on delete cascade
) with (toast_tuple_target = 8160);
create index search_rows_newest on search_rows (account_id, kind, at desc, id desc);
create index search_rows_conversation on search_rows (account_id, conversation_id, kind, at desc, id desc);
create index search_rows_message on search_rows (account_id, message_id) where message_id is not null;
-- New entries go to a list first, which makes adding many at once three times cheaper. Every search reads the list, so it is
-- short, and empty after each batch of the job (search_flush).
create index search_rows_tokens on search_rows using gin (tokens) with (fastupdate = on, gin_pending_list_limit = 1024);

-- What has changed since it was indexed: identifiers only. Rows are added and never changed, so a change that is committed
-- while an older one of the same object is indexed has a row of its own, with a higher n.
create table search_pending (
    account_id      uuid not null,
    n               bigint generated always as identity,
    kind            text not null check (kind in ('conversation', 'message')),
    id              uuid not null,
    conversation_id uuid not null,
    primary key (account_id, n)
);

-- How far the texts from before this migration have been added to search_pending. A row is deleted when all of its kind
-- have been.
create table search_backfill (
    kind          text primary key check (kind in ('conversation', 'message')),
    after_account uuid not null,                       -- the last one that was added
    after_id      uuid not null
);
insert into search_backfill
select kind, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000' from unnest(array['conversation', 'message']) kind;

do $$
declare
    name text;
begin
    foreach name in array array['search_rows', 'search_pending'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy own on %I
            using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
            with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, update, delete on %I to turnstone_app', name);
        execute format('create policy engine on %I to turnstone_engine using (true) with check (true)', name);
        execute format('grant select, insert, update, delete on %I to turnstone_engine', name);
        execute format('alter table %I alter column account_id set statistics 1, alter column account_id set (n_distinct = 20)', name); -- ADR 14
    end loop;
end
$$;
alter table search_rows alter column conversation_id set statistics 1, alter column conversation_id set (n_distinct = 20);
-- A start for several accounts (004) adds rows for them.
create policy shared_start on search_pending for insert to turnstone_app
    with check (account_id in (select unnest(nullif(current_setting('turnstone.account_ids', true), '')::uuid[])));
grant select, update, delete on search_backfill to turnstone_engine;

-- The job reads the texts of all accounts.
create policy search on messages for select to turnstone_engine using (true);
grant select (account_id, message_id, conversation_id, branch_id, status, parts, created_at) on messages to turnstone_engine;
grant select (title, provisional_title, project_id, created_at) on conversations to turnstone_engine;

create function search_message_changed() returns trigger language plpgsql as $$
begin
    insert into public.search_pending (account_id, kind, id, conversation_id)
    values (new.account_id, 'message', new.message_id, new.conversation_id);
    return null;
end
$$;
create trigger search_added after insert on messages for each row
    when (new.status <> 'streaming') execute function search_message_changed();
create trigger search_changed after update of parts, status on messages for each row
    when (new.status <> 'streaming') execute function search_message_changed();

create function search_title_changed() returns trigger language plpgsql as $$
begin
    insert into public.search_pending (account_id, kind, id, conversation_id)
    values (new.account_id, 'conversation', new.conversation_id, new.conversation_id);
    return null;
end
$$;
create trigger search_added after insert on conversations for each row
    when (not new.temporary and (new.title <> '' or new.provisional_title <> '')) execute function search_title_changed();
create trigger search_changed after update of title, provisional_title on conversations for each row
    when (not new.temporary and new.deleted_at is null
          and (new.title, new.provisional_title) is distinct from (old.title, old.provisional_title)) execute function search_title_changed();

-- search_window finds objects of one kind that match a query, newest first, before a position: at most so many, which the
-- caller then ranks by their score. If there may be older ones, the last row has the score 0 and the position where the
-- next window starts. The queries are written for the tokens of the account: matching decides what matches; words has
-- the words of matching in any order, if their order matters; whole and adjacent raise the score.
--
-- The newest objects are read one by one, as long as enough of them match, so that a search for common words ends after a
-- few hundred. For rarer words, the index finds all matches. If it would find many more than match, because the words are
-- common and only their order is rare, the window ends after a number of objects.
--
-- Row-level security keeps the operator @@ from using an index. So the function runs as its owner, sees every row, and
-- filters by the account of the transaction itself.
create policy search on search_rows for select to current_user using (true);
create policy search on conversations for select to current_user using (true);
create type search_match as (id uuid, conversation_id uuid, at timestamptz, score int);
create function search_window(of_kind text, matching tsquery, words tsquery, whole tsquery, adjacent tsquery, in_conversation uuid,
        before timestamptz, before_id uuid, most int) returns setof search_match
    language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp
as $$
declare
    account constant uuid := nullif(current_setting('turnstone.account_id', true), '')::uuid;
    sample  constant int := 400;    -- objects that are read before the index is considered
    longest constant int := 20000;  -- objects that are read at most
    one_in  constant int := 16;     -- the index is used if fewer objects than one in so many have the words
    newest  refcursor;
    entry   record;
    seen    int := 0;
    matched int := 0;
    likely  int := 0;               -- objects that have the words
begin
    if account is null then
        return;
    end if;
    if in_conversation is null then
        open newest for
            select r.id, r.conversation_id, r.at, coalesce(r.tokens @@ words, false) as has_words,
                case when r.tokens @@ matching and exists (
                        select from conversations c where c.account_id = account and c.conversation_id = r.conversation_id and c.deleted_at is null)
                    then 1 + coalesce(r.tokens @@ whole, false)::int + 2 * coalesce(r.tokens @@ adjacent, false)::int else 0 end as score
            from search_rows r
            where r.account_id = account and r.kind = of_kind and (r.at, r.id) < (before, before_id)
            order by r.at desc, r.id desc;
    else
        open newest for
            select r.id, r.conversation_id, r.at, coalesce(r.tokens @@ words, false) as has_words,
                case when r.tokens @@ matching and exists (
                        select from conversations c where c.account_id = account and c.conversation_id = r.conversation_id and c.deleted_at is null)
                    then 1 + coalesce(r.tokens @@ whole, false)::int + 2 * coalesce(r.tokens @@ adjacent, false)::int else 0 end as score
            from search_rows r
            where r.account_id = account and r.conversation_id = in_conversation and r.kind = of_kind and (r.at, r.id) < (before, before_id)
            order by r.at desc, r.id desc;
    end if;
    loop
        fetch newest into entry;
        if not found then
            return;
        end if;
        seen := seen + 1;
        if entry.score > 0 then
            matched := matched + 1;
            return next row(entry.id, entry.conversation_id, entry.at, entry.score)::search_match;
        end if;
        likely := likely + (entry.score > 0 or entry.has_words)::int;
        exit when matched = most or seen = longest or seen >= sample and likely * one_in < seen;
    end loop;
    close newest;
    before := entry.at;
    before_id := entry.id;
    if matched < most and seen < longest then
        -- The conditions are written so that only the index on the tokens serves this statement.
        for entry in
            select m.*, exists (
                select from conversations c where c.account_id = account and c.conversation_id = m.conversation_id and c.deleted_at is null) as visible
            from (
                select r.id, r.conversation_id, r.at,
                    1 + coalesce(r.tokens @@ whole, false)::int + 2 * coalesce(r.tokens @@ adjacent, false)::int as score
                from search_rows r
                where r.tokens @@ matching and (r.account_id = account) is true and (r.kind = of_kind) is true
                  and (in_conversation is null or r.conversation_id = in_conversation)
                  and ((r.at, r.id) < (before, before_id)) is true
                order by r.at desc, r.id desc offset 0) m
        loop
            continue when not entry.visible;
            matched := matched + 1;
            return next row(entry.id, entry.conversation_id, entry.at, entry.score)::search_match;
            before := entry.at;
            before_id := entry.id;
            exit when matched = most;
        end loop;
        if matched < most then
            return;
        end if;
    end if;
    return next row(before_id, null, before, 0)::search_match;
end
$$;
-- search_flush moves the new entries of the index on the tokens to their places.
create function search_flush() returns bigint
    language sql security definer set search_path = pg_catalog, public, pg_temp
as $$ select gin_clean_pending_list('public.search_rows_tokens') $$;

revoke execute on function search_flush() from public;
grant execute on function search_flush() to turnstone_engine;
revoke execute on function search_window(text, tsquery, tsquery, tsquery, tsquery, uuid, timestamptz, uuid, int) from public;
grant execute on function search_window(text, tsquery, tsquery, tsquery, tsquery, uuid, timestamptz, uuid, int) to turnstone_app;
