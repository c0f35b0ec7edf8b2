-- Texts are also found by other forms of their words: by their stems and, in German, by the ends of compounds. So all of them are
-- indexed again, after those that change. Until then, each is found by its words.
insert into search_backfill
select kind, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'
from unnest(array['conversation', 'message', 'file', 'artifact', 'task']) kind
on conflict (kind) do update set after_account = excluded.after_account, after_id = excluded.after_id;

-- search_known returns which of some queries find a text of the account, in their order, at most a number of them. Each reads the index
-- only, so its work does not depend on how many texts the account has.
create function search_known(queries tsquery[], most int) returns setof int
    language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp set enable_seqscan = off
as $$
declare
    account constant uuid := nullif(current_setting('turnstone.account_id', true), '')::uuid;
begin
    if account is null then
        return;
    end if;
    return query
        select q.n::int
        from unnest(queries) with ordinality q (query, n)
        cross join lateral (select from search_rows r where r.tokens @@ q.query and (r.account_id = account) is true limit 1) r
        limit most;
end
$$;
revoke execute on function search_known(tsquery[], int) from public;
grant execute on function search_known(tsquery[], int) to turnstone_app;

-- in: finds a project by its name in any case. Under row-level security, Postgres uses no index on an expression, so the name is stored
-- in the form in which it is compared.
alter table projects add column name_key text not null generated always as (lower(name)) stored;
create index projects_by_name on projects (account_id, name_key, archived_at nulls first, project_id) where state <> 'deleted';
