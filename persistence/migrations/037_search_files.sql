-- Files are found by their names and their texts. A text is indexed in sections of 32 kB, because a tsvector has positions only
-- for 16,383 words; the first has the name of the file, too. All words of a query have to be in one section. The transaction that
-- stores a text also indexes it, because no request waits for it. Only the first section, which a new name changes, is pending
-- first, like the other kinds.
set local row_security = on; -- policies are meant

-- The number of the section that starts at a byte of a text (see package files), and the id of a section. The ids of a file
-- differ only in their last 16 bits, so its sections follow one another in the order of a search.
create function search_section_at(start_at int) returns int
    language sql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$ select (start_at + 16384) / 32768 $$;
create function search_section(file_id uuid, section int) returns uuid
    language sql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$ select (left(file_id::text, 32) || lpad(to_hex(section), 4, '0'))::uuid $$;
create function search_section_number(id uuid) returns int
    language sql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$ select ('x' || right(id::text, 4))::bit(16)::int $$;

alter table search_rows drop constraint search_rows_kind_check;
alter table search_rows add column file_id uuid, alter column conversation_id drop not null,
    add constraint search_rows_kind_check check (kind in ('conversation', 'message', 'file')),
    add constraint search_rows_container check ((kind = 'file') = (file_id is not null) and (kind = 'file') = (conversation_id is null)),
    add foreign key (account_id, file_id) references files on delete cascade;
create index search_rows_file on search_rows (account_id, file_id, at desc, id desc) where file_id is not null;
alter table search_rows alter column file_id set statistics 1, alter column file_id set (n_distinct = 20);

alter table search_pending drop constraint search_pending_kind_check;
alter table search_pending add column file_id uuid, alter column conversation_id drop not null,
    add constraint search_pending_kind_check check (kind in ('conversation', 'message', 'file')),
    add constraint search_pending_container check ((kind = 'file') = (file_id is not null) and (kind = 'file') = (conversation_id is null));

alter table search_backfill drop constraint search_backfill_kind_check;
alter table search_backfill add constraint search_backfill_kind_check check (kind in ('conversation', 'message', 'file'));
insert into search_backfill values ('file', '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000');

-- The messages of a conversation that have files: a search in a conversation finds these.
create index messages_with_files on messages (account_id, conversation_id, message_id) where attachments <> '{}';

-- The job reads the names and the texts of all files.
grant select (filename, created_at) on files to turnstone_engine;
create policy engine on file_text_chunks for select to turnstone_engine using (true);
grant select on file_text_chunks to turnstone_engine;
create policy search on files for select to current_user using (true);

create function search_file_changed() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into search_pending (account_id, kind, id, file_id)
    values (new.account_id, 'file', search_section(new.file_id, 0), new.file_id);
    return null;
end
$$;
revoke execute on function search_file_changed() from public;
create trigger search_added after insert on files for each row execute function search_file_changed();
create trigger search_changed after update of filename on files for each row
    when (new.filename is distinct from old.filename) execute function search_file_changed();
create trigger search_added after insert on file_text_chunks for each row when (new.start_at = 0) execute function search_file_changed();

-- search_window is that of 034, for files, too: conversation_id of a match is then the id of its file.
create or replace function search_window(of_kind text, matching tsquery, words tsquery, whole tsquery, adjacent tsquery, in_conversation uuid,
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
    if of_kind = 'file' then
        open newest for
            select r.id, r.file_id as container_id, r.at, coalesce(r.tokens @@ words, false) as has_words,
                case when r.tokens @@ matching and (
                        select f.deleted_at is null from files f where f.account_id = account and f.file_id = r.file_id)
                    then 1 + coalesce(r.tokens @@ whole, false)::int + 2 * coalesce(r.tokens @@ adjacent, false)::int else 0 end as score
            from search_rows r
            where r.account_id = account and r.kind = of_kind and (r.at, r.id) < (before, before_id)
            order by r.at desc, r.id desc;
    elsif in_conversation is null then
        open newest for
            select r.id, r.conversation_id as container_id, r.at, coalesce(r.tokens @@ words, false) as has_words,
                case when r.tokens @@ matching and (
                        select c.deleted_at is null from conversations c where c.account_id = account and c.conversation_id = r.conversation_id)
                    then 1 + coalesce(r.tokens @@ whole, false)::int + 2 * coalesce(r.tokens @@ adjacent, false)::int else 0 end as score
            from search_rows r
            where r.account_id = account and r.kind = of_kind and (r.at, r.id) < (before, before_id)
            order by r.at desc, r.id desc;
    else
        open newest for
            select r.id, r.conversation_id as container_id, r.at, coalesce(r.tokens @@ words, false) as has_words,
                case when r.tokens @@ matching and (
                        select c.deleted_at is null from conversations c where c.account_id = account and c.conversation_id = r.conversation_id)
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
            return next row(entry.id, entry.container_id, entry.at, entry.score)::search_match;
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
            select m.*, coalesce(case when of_kind = 'file' then (
                    select f.deleted_at is null from files f where f.account_id = account and f.file_id = m.container_id)
                else (
                    select c.deleted_at is null from conversations c where c.account_id = account and c.conversation_id = m.container_id) end, false) as visible
            from (
                select r.id, coalesce(r.conversation_id, r.file_id) as container_id, r.at,
                    1 + coalesce(r.tokens @@ whole, false)::int + 2 * coalesce(r.tokens @@ adjacent, false)::int as score
                from search_rows r
                where r.tokens @@ matching and (r.account_id = account) is true and (r.kind = of_kind) is true
                  and (in_conversation is null or r.conversation_id = in_conversation)
                  and ((r.at, r.id) < (before, before_id)) is true
                order by r.at desc, r.id desc offset 0) m
        loop
            continue when not entry.visible;
            matched := matched + 1;
            return next row(entry.id, entry.container_id, entry.at, entry.score)::search_match;
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
