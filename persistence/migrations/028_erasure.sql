-- The erasure of an account. An account that is being erased has no address and no sign-in; its rows go in steps.
set local row_security = on; -- policies are meant
alter table accounts add column erasing_at timestamptz;

-- What was erased. A row holds no content and no address; it is kept for 400 days, like the audit of the account. The column
-- is not named account_id: tables with such a column are erased.
create table erasures (
    erasure_id   uuid primary key,
    subject      uuid not null unique,                 -- the account
    requested_at timestamptz not null default now(),
    finished_at  timestamptz,
    counts       jsonb not null default '{}'           -- rows by table, and objects
);
grant select, insert, update on erasures to turnstone_app;
grant select, delete on erasures to turnstone_engine;
create index erasures_age on erasures (requested_at);

-- account_tables lists the tables that have rows of accounts, children before their parents, so that no deletion cascades.
-- Partitions count as tables. The audit stays, and the account itself goes last. A new table is in the list without any
-- change.
create function account_tables() returns setof regclass
    language sql stable set search_path = pg_catalog, public, pg_temp
as $$
    with recursive owned as (
        select c.oid from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = 'account_id' and not a.attisdropped
          and c.relname not in ('accounts', 'audit', 'audit_heads')
    ), nested as (
        select oid, 0 as depth from owned
        union
        select o.oid, n.depth + 1
        from nested n
        join pg_constraint f on f.confrelid = n.oid and f.contype = 'f' and f.conrelid <> f.confrelid
        join owned o on o.oid = f.conrelid
        where n.depth < 20
    )
    select oid::regclass from nested group by oid order by max(depth) desc, oid
$$;

-- erase_account_rows deletes at most so many rows of the account of the transaction, if that account is being erased, and
-- returns how many of which table. When there are none left, it deletes the account and returns {"accounts": 1}; when that is
-- gone, {}.
create function erase_account_rows(most int) returns jsonb
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp set enable_seqscan = off
as $$
declare
    account constant uuid := nullif(current_setting('turnstone.account_id', true), '')::uuid;
    rel     regclass;
    name    text;
    n       int;
    counts  jsonb := '{}';
begin
    perform from public.accounts a where a.account_id = account and a.erasing_at is not null for update;
    if not found then
        return counts;
    end if;
    for rel in select public.account_tables() loop
        execute format('with gone as (
                delete from %1$s where ctid = any (array(select ctid from %1$s where account_id = $1 limit $2)) returning 1)
            select count(*)::int from gone', rel)
            into n using account, most;
        if n > 0 then
            name := regexp_replace(rel::text, '^turn_events_.*$', 'turn_events');
            counts := jsonb_set(counts, array[name], to_jsonb(coalesce((counts ->> name)::int, 0) + n));
            most := most - n;
        end if;
        exit when most <= 0;
    end loop;
    if counts = '{}' then
        delete from public.accounts a where a.account_id = account;
        counts := '{"accounts": 1}';
    end if;
    return counts;
end
$$;
revoke execute on function account_tables(), erase_account_rows(int) from public;
grant execute on function erase_account_rows(int) to turnstone_app;
