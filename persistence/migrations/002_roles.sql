-- Who may do what. Three roles, none of them the login role, which is a NOINHERIT member of the last two:
--   the owner (who runs this file)   owns everything; the service never uses it
--   turnstone_app                    requests, one account at a time, under row-level security
--   turnstone_engine                 journal, leases, sweeps, expiry: across accounts, on the few tables named below
-- A new owned table needs: a line in the first loop below, its grants, and an engine policy only where a sweep needs one.
do $$
declare
    name text;
begin
    foreach name in array array['turnstone_app', 'turnstone_engine'] loop
        if not exists (select from pg_roles where rolname = name) then
            begin
                execute format('create role %I nologin noinherit', name);
            exception when duplicate_object or unique_violation then
                -- Roles belong to the whole server: another database's migration was faster. This session may remember
                -- that there was no such role; opening a relation for the first time makes it take notice.
                perform from pg_db_role_setting limit 1;
            end;
        end if;
    end loop;
end
$$;

grant usage on schema public to turnstone_app, turnstone_engine;

-- Owned tables: everybody, the owner included, sees only the rows of the account that the transaction is for. The
-- setting reads '' after the transaction that set it, hence nullif.
do $$
declare
    name text;
begin
    foreach name in array array[
        'accounts', 'account_settings', 'idempotency', 'conversations', 'branches', 'branch_segments', 'messages',
        'follow_ups', 'turns', 'turn_events', 'turn_records', 'turn_replays', 'usage_records'
    ] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy own on %I
            using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
            with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, update, delete on %I to turnstone_app', name);
    end loop;
end
$$;

-- Looked up before anybody is known, by hash or by an outside name: no row-level security.
grant select, insert, update, delete on account_identities, sessions, oidc_flows to turnstone_app;

-- Holds nothing of accounts.
grant select on nodes to turnstone_app;
grant select, insert, update, delete on nodes to turnstone_engine;
grant select on schema_version to turnstone_app, turnstone_engine;

-- The engine's tables.
do $$
declare
    name text;
begin
    foreach name in array array['turns', 'turn_events', 'turn_records', 'turn_replays', 'follow_ups', 'conversations', 'idempotency'] loop
        execute format('create policy engine on %I to turnstone_engine using (true) with check (true)', name);
    end loop;
end
$$;
grant select, update on turns to turnstone_engine;
grant select, insert on turn_events, turn_records to turnstone_engine;
grant select on turn_replays, follow_ups to turnstone_engine;
grant select (account_id, conversation_id, live_turn_id, deleted_at) on conversations to turnstone_engine;
grant select (account_id, method, path, key, created_at), delete on idempotency to turnstone_engine;
grant select (token_hash, expires_at), delete on sessions to turnstone_engine;
grant select (state_hash, expires_at), delete on oidc_flows to turnstone_engine;

-- Functions of the owner, for what neither role may do itself. FORCE binds the owner too, so each table that such a
-- function reads across accounts says so in a policy. Migrations run with row_security = off, under which any policy is an
-- error: here they are meant.
set local row_security = on;

-- sign_in_lookup answers which account signs in with an address, and nothing else: the caller goes on as that account.
create policy lookup on accounts for select to current_user using (true);
create function sign_in_lookup(wanted text) returns uuid
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$ select account_id from accounts where email_key = wanted $$;

-- audit: append only, by function; an account may read its own entries. The chain of nobody (all zero) takes what
-- happens before anybody is known. Not FORCE: the functions below are the only way in, and they serve every account.
alter table audit enable row level security;
create policy own on audit for select to turnstone_app
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
grant select on audit to turnstone_app;

-- audit_hash is what an entry's hash is made of: the previous hash, then every field, in an unambiguous spelling.
create function audit_hash(previous bytea, account uuid, n bigint, at timestamptz, event text, session uuid,
        request text, address text, detail jsonb) returns bytea
    language sql stable set search_path = pg_catalog, pg_temp
as $$
    select sha256(previous || convert_to(jsonb_build_array(
        account, n, (extract(epoch from at) * 1000000)::bigint, event, session, request, address, detail)::text, 'UTF8'))
$$;

create function audit_append(account uuid, event text, session uuid, request text, address text, detail jsonb) returns bigint
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
declare
    head audit_heads;
    now_ timestamptz := clock_timestamp();
begin
    insert into audit_heads (account_id, n, hash) values (account, 0, ''::bytea) on conflict do nothing;
    select * into head from audit_heads h where h.account_id = account for update;
    insert into audit (account_id, n, at, event, session_id, request_id, address, detail, previous, hash)
    values (account, head.n + 1, now_, event, session, request, address, detail, head.hash,
            audit_hash(head.hash, account, head.n + 1, now_, event, session, request, address, detail));
    update audit_heads h
    set n = head.n + 1,
        hash = audit_hash(head.hash, account, head.n + 1, now_, event, session, request, address, detail)
    where h.account_id = account;
    return head.n + 1;
end
$$;

-- audit_verify answers the first entry of an account's chain that does not hold; null when all do.
create function audit_verify(account uuid) returns bigint
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$
    with chain as (
        select a.n, a.hash, a.previous, row_number() over w as place, lag(a.hash, 1, ''::bytea) over w as before,
               audit_hash(a.previous, a.account_id, a.n, a.at, a.event, a.session_id, a.request_id, a.address, a.detail) as expected
        from audit a where a.account_id = account window w as (order by a.n)
    )
    select min(n) from (
        select n from chain where n <> place or previous <> before or hash <> expected
        union all
        select h.n from audit_heads h where h.account_id = account
            and not exists (select from chain c where c.n = h.n and c.hash = h.hash) and h.n > 0
    ) broken
$$;

-- The partitions of turn_events, one a day. The roles of the service create and drop nothing themselves.
create function turn_partition_bound(day date) returns uuid
    language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select (lpad(to_hex((extract(epoch from day::timestamp at time zone 'UTC') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- ensure_turn_partitions makes the partitions from yesterday to some days ahead and answers how many were missing. What
-- had gone to the default partition because one was missing moves over. Attaching, unlike "create … partition of",
-- does not stop the journal.
create function ensure_turn_partitions(ahead int) returns int
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
declare
    today date := (now() at time zone 'UTC')::date;
    day   date;
    part  text;
    made  int := 0;
begin
    perform pg_advisory_xact_lock(hashtextextended('turnstone.turn_partitions', 0));
    for day in select generate_series(today - 1, today + ahead, interval '1 day')::date loop
        part := 'turn_events_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('public.' || part) is not null;
        execute format('create table public.%I (like public.turn_events including all)', part);
        execute format('with moved as (delete from public.turn_events_default where turn_id >= %L and turn_id < %L returning *)
            insert into public.%I select * from moved', turn_partition_bound(day), turn_partition_bound(day + 1), part);
        execute format('alter table public.turn_events attach partition public.%I for values from (%L) to (%L)',
            part, turn_partition_bound(day), turn_partition_bound(day + 1));
        made := made + 1;
    end loop;
    return made;
end
$$;

-- drop_turn_partitions drops the days before the last two whose turns have all ended and were folded, or are gone, and
-- answers how many. What one unfinished turn needs keeps its whole day.
create policy fold on turns for select to current_user using (true);
create policy fold on turn_replays for select to current_user using (true);
create function drop_turn_partitions() returns int
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
declare
    today   date := (now() at time zone 'UTC')::date;
    part    text;
    needed  boolean;
    dropped int := 0;
begin
    perform pg_advisory_xact_lock(hashtextextended('turnstone.turn_partitions', 0));
    for part in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'public.turn_events'::regclass and c.relname ~ '^turn_events_\d{8}$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') < today - 2
        order by c.relname
    loop
        execute format('select exists (
            select from public.%I e join public.turns t on t.account_id = e.account_id and t.turn_id = e.turn_id
            where not exists (select from public.turn_replays r where r.account_id = e.account_id and r.turn_id = e.turn_id))', part)
            into needed;
        continue when needed;
        execute format('drop table public.%I', part);
        dropped := dropped + 1;
    end loop;
    delete from public.turn_events_default e
    where e.turn_id < turn_partition_bound(today - 2)
      and (exists (select from public.turn_replays r where r.account_id = e.account_id and r.turn_id = e.turn_id)
           or not exists (select from public.turns t where t.account_id = e.account_id and t.turn_id = e.turn_id));
    return dropped;
end
$$;

revoke execute on all functions in schema public from public;
grant execute on function sign_in_lookup(text) to turnstone_app;
grant execute on function audit_append(uuid, text, uuid, text, text, jsonb), audit_verify(uuid) to turnstone_app, turnstone_engine;
grant execute on function ensure_turn_partitions(int), drop_turn_partitions() to turnstone_engine;

select ensure_turn_partitions(3);
