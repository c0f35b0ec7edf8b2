-- A search of an account with very many conversations read all of them: for "exists", Postgres may build a table of every
-- conversation of the account instead of looking up the few that match. It looks up the value of a sub-query. The function
-- is otherwise that of 024.
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
    if in_conversation is null then
        open newest for
            select r.id, r.conversation_id, r.at, coalesce(r.tokens @@ words, false) as has_words,
                case when r.tokens @@ matching and (
                        select c.deleted_at is null from conversations c where c.account_id = account and c.conversation_id = r.conversation_id)
                    then 1 + coalesce(r.tokens @@ whole, false)::int + 2 * coalesce(r.tokens @@ adjacent, false)::int else 0 end as score
            from search_rows r
            where r.account_id = account and r.kind = of_kind and (r.at, r.id) < (before, before_id)
            order by r.at desc, r.id desc;
    else
        open newest for
            select r.id, r.conversation_id, r.at, coalesce(r.tokens @@ words, false) as has_words,
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
            select m.*, coalesce((
                select c.deleted_at is null from conversations c where c.account_id = account and c.conversation_id = m.conversation_id), false) as visible
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
