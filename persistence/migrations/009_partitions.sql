-- Dropping old partitions of turn_events. One partition is dropped per transaction, so the caller decides how long to wait
-- for its lock and one that cannot be dropped does not keep the others. Whether a partition is needed is asked of the live
-- turns alone, of which there are few: a turn that has ended was folded into turn_replays in the same transaction.
set local row_security = on; -- the functions below rely on policies
drop function drop_turn_partitions();
drop policy fold on turn_replays;

-- drop_turn_partition drops the partition of one day and returns true; false when a live turn needs it. It refuses whatever
-- is not a partition of turn_events older than two days. Row-level security applies to the owner too, hence the policy
-- "fold" on turns (002). Without sequential scans the live turns are found by their partial index.
create function drop_turn_partition(part text) returns boolean
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp set enable_seqscan = off
as $$
declare
    day date;
begin
    perform pg_advisory_xact_lock(hashtextextended('turnstone.turn_partitions', 0));
    select to_date(right(c.relname, 8), 'YYYYMMDD') into day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.turn_events'::regclass and c.relname = part and c.relname ~ '^turn_events_\d{8}$';
    if day is null then
        return true; -- dropped by another node
    end if;
    if day >= (now() at time zone 'UTC')::date - 2 then
        raise exception 'partition % is too young to be dropped', part;
    end if;
    if exists (
        select from public.turns t
        where t.state not in ('completed', 'cancelled', 'failed', 'incomplete')
          and t.turn_id >= turn_partition_bound(day) and t.turn_id < turn_partition_bound(day + 1))
    then
        return false;
    end if;
    execute format('drop table public.%I', part);
    return true;
end
$$;

-- clear_turn_events_default deletes old rows of ended turns from the default partition, at most so many, and returns how
-- many. The partition is empty unless a day's partition was missing.
create function clear_turn_events_default(most int) returns int
    language sql security definer set search_path = pg_catalog, public, pg_temp
as $$
    with deleted as (
        delete from public.turn_events_default where ctid in (
            select e.ctid from public.turn_events_default e
            where e.turn_id < turn_partition_bound((now() at time zone 'UTC')::date - 2)
              and not exists (
                select from public.turns t
                where t.account_id = e.account_id and t.turn_id = e.turn_id
                  and t.state not in ('completed', 'cancelled', 'failed', 'incomplete'))
            limit most)
        returning 1
    )
    select count(*)::int from deleted
$$;

revoke execute on function drop_turn_partition(text), clear_turn_events_default(int) from public;
grant execute on function drop_turn_partition(text), clear_turn_events_default(int) to turnstone_engine;
