-- list_accounts lists accounts in the order of their creation, after one of them, for the commands of operators. It has nothing
-- that users wrote except their addresses. The role of requests may not call it, since requests are for one account.
set local row_security = on; -- policies are meant
create function list_accounts(after uuid, most int)
    returns table (account_id uuid, email text, created_at timestamptz, disabled_at timestamptz, erasing_at timestamptz, last_active_at timestamptz)
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$
    select a.account_id, a.email, a.created_at, a.disabled_at, a.erasing_at,
        (select max(s.last_used_at) from sessions s where s.account_id = a.account_id)
    from accounts a
    where a.account_id > after
    order by a.account_id limit most
$$;
revoke execute on function list_accounts(uuid, int) from public;
grant execute on function list_accounts(uuid, int) to turnstone_engine;
