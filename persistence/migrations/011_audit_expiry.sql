-- Entries of the audit are kept for 400 days. What goes is named by a checkpoint: an entry "audit.expired" of the same chain
-- with the number and the hash of the last entry that went. The chain is then verified from there on: the first entry that is
-- left has to follow that hash. The checkpoint is an entry like any other, so nobody changes, removes or invents one without
-- breaking the chain, and only audit_expire writes one.
create index audit_age on audit (at);
create index audit_checkpoints on audit (account_id, n) where event = 'audit.expired';
create policy engine on audit for select to turnstone_engine using (true);
grant select (account_id, at) on audit to turnstone_engine;

set local row_security = on;
create or replace function audit_append(account uuid, event text, session uuid, request text, address text, detail jsonb) returns bigint
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
begin
    if event = 'audit.expired' then
        raise exception 'audit.expired is written by audit_expire only' using errcode = 'insufficient_privilege';
    end if;
    return audit_extend(account, event, session, request, address, detail);
end
$$;

-- audit_extend is what audit_append was.
create function audit_extend(account uuid, event text, session uuid, request text, address text, detail jsonb) returns bigint
    language plpgsql set search_path = pg_catalog, public, pg_temp
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

-- audit_origin answers what the first entry of an account's chain has to follow: its newest checkpoint, or nothing.
create type audit_origin as (n bigint, hash bytea);
create function audit_origin(account uuid) returns audit_origin
    language sql stable set search_path = pg_catalog, public, pg_temp
as $$
    select coalesce(
        (select row((a.detail->>'n')::bigint, decode(a.detail->>'hash', 'hex'))::audit_origin
         from audit a where a.account_id = account and a.event = 'audit.expired' order by a.n desc limit 1),
        row(0, ''::bytea)::audit_origin)
$$;

-- audit_expire removes entries of an account that are older than 400 whole days (UTC), at most most of them, and answers how
-- many. What does not hold stays, with all that follows it: the checkpoint would hide where the chain breaks.
create function audit_expire(account uuid, most int) returns bigint
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp
as $$
declare
    cutoff  timestamptz := date_trunc('day', now(), 'UTC') - interval '400 days';
    origin  audit_origin;
    entry   audit;
    removed bigint := 0;
begin
    perform from audit_heads h where h.account_id = account for update;
    select * into origin from audit_origin(account);
    for entry in select * from audit a where a.account_id = account order by a.n limit most loop
        exit when entry.at >= cutoff or entry.n <> origin.n + 1 or entry.previous <> origin.hash
            or entry.hash <> audit_hash(entry.previous, entry.account_id, entry.n, entry.at, entry.event, entry.session_id,
                entry.request_id, entry.address, entry.detail);
        origin := row(entry.n, entry.hash);
        removed := removed + 1;
    end loop;
    if removed > 0 then
        perform audit_extend(account, 'audit.expired', null, '', '',
            jsonb_build_object('n', origin.n, 'hash', encode(origin.hash, 'hex')));
        delete from audit a where a.account_id = account and a.n <= origin.n;
    end if;
    return removed;
end
$$;

-- audit_verify answers the first entry of an account's chain that does not hold; null when all do. The chain begins at its
-- newest checkpoint, or at nothing.
create or replace function audit_verify(account uuid) returns bigint
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$
    with chain as (
        select a.n, a.hash, a.previous, o.n + row_number() over w as place, lag(a.hash, 1, o.hash) over w as before,
               audit_hash(a.previous, a.account_id, a.n, a.at, a.event, a.session_id, a.request_id, a.address, a.detail) as expected
        from audit a, audit_origin(account) o where a.account_id = account window w as (order by a.n)
    )
    select min(n) from (
        select n from chain where n <> place or previous <> before or hash <> expected
        union all
        select h.n from audit_heads h where h.account_id = account
            and not exists (select from chain c where c.n = h.n and c.hash = h.hash) and h.n > 0
    ) broken
$$;

revoke execute on function audit_origin(uuid), audit_extend(uuid, text, uuid, text, text, jsonb), audit_expire(uuid, int) from public;
grant execute on function audit_expire(uuid, int) to turnstone_engine;
