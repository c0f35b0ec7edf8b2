-- The usage that the server has recorded, by UTC day and profile and by conversation and UTC day, so that a sum reads days
-- and not records. A trigger keeps both in the transaction of the record. The usage that clients report is not counted.
create table usage_days (
    account_id          uuid not null references accounts on delete cascade,
    day                 date not null,
    profile             text not null,                   -- none: not a turn
    turns               bigint not null,
    input_tokens        bigint not null,
    output_tokens       bigint not null,
    reasoning_tokens    bigint not null,
    cached_input_tokens bigint not null,
    primary key (account_id, day, profile)
) with (fillfactor = 50);

create table usage_conversation_days (
    account_id          uuid not null references accounts on delete cascade,
    conversation_id     uuid not null,                   -- kept when the conversation is gone
    day                 date not null,
    turns               bigint not null,
    input_tokens        bigint not null,
    output_tokens       bigint not null,
    reasoning_tokens    bigint not null,
    cached_input_tokens bigint not null,
    primary key (account_id, conversation_id, day)
) with (fillfactor = 50);

-- FORCE would bind the owner, who here reads the rows of all accounts.
alter table usage_records no force row level security;
insert into usage_days (account_id, day, profile, turns, input_tokens, output_tokens, reasoning_tokens, cached_input_tokens)
select account_id, (occurred_at at time zone 'UTC')::date, coalesce(profile, 'none'), count(*) filter (where kind = 'turn'),
    coalesce(sum((usage ->> 'input_tokens')::bigint), 0), coalesce(sum((usage ->> 'output_tokens')::bigint), 0),
    coalesce(sum((usage ->> 'reasoning_tokens')::bigint), 0), coalesce(sum((usage ->> 'cached_input_tokens')::bigint), 0)
from usage_records where source = 'server' group by 1, 2, 3;
insert into usage_conversation_days (account_id, conversation_id, day, turns, input_tokens, output_tokens, reasoning_tokens, cached_input_tokens)
select account_id, conversation_id, (occurred_at at time zone 'UTC')::date, count(*) filter (where kind = 'turn'),
    coalesce(sum((usage ->> 'input_tokens')::bigint), 0), coalesce(sum((usage ->> 'output_tokens')::bigint), 0),
    coalesce(sum((usage ->> 'reasoning_tokens')::bigint), 0), coalesce(sum((usage ->> 'cached_input_tokens')::bigint), 0)
from usage_records where source = 'server' and conversation_id is not null group by 1, 2, 3;
alter table usage_records force row level security;

create function count_usage() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
declare
    on_day    date := (new.occurred_at at time zone 'UTC')::date;
    turn      bigint := case new.kind when 'turn' then 1 else 0 end;
    input     bigint := coalesce((new.usage ->> 'input_tokens')::bigint, 0);
    output    bigint := coalesce((new.usage ->> 'output_tokens')::bigint, 0);
    reasoning bigint := coalesce((new.usage ->> 'reasoning_tokens')::bigint, 0);
    cached    bigint := coalesce((new.usage ->> 'cached_input_tokens')::bigint, 0);
begin
    insert into usage_days as d (account_id, day, profile, turns, input_tokens, output_tokens, reasoning_tokens, cached_input_tokens)
    values (new.account_id, on_day, coalesce(new.profile, 'none'), turn, input, output, reasoning, cached)
    on conflict (account_id, day, profile) do update
    set turns = d.turns + turn, input_tokens = d.input_tokens + input, output_tokens = d.output_tokens + output,
        reasoning_tokens = d.reasoning_tokens + reasoning, cached_input_tokens = d.cached_input_tokens + cached;
    if new.conversation_id is not null then
        insert into usage_conversation_days as d (account_id, conversation_id, day, turns, input_tokens, output_tokens, reasoning_tokens, cached_input_tokens)
        values (new.account_id, new.conversation_id, on_day, turn, input, output, reasoning, cached)
        on conflict (account_id, conversation_id, day) do update
        set turns = d.turns + turn, input_tokens = d.input_tokens + input, output_tokens = d.output_tokens + output,
            reasoning_tokens = d.reasoning_tokens + reasoning, cached_input_tokens = d.cached_input_tokens + cached;
    end if;
    return null;
end
$$;
revoke execute on function count_usage() from public;
create trigger usage_records_counted after insert on usage_records for each row when (new.source = 'server') execute function count_usage();

-- The sums replace the reads of the records by time.
drop index usage_records_time;

set local row_security = on; -- policies are meant
do $$
declare
    name text;
begin
    foreach name in array array['usage_days', 'usage_conversation_days'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy own on %I
            using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
            with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, update, delete on %I to turnstone_app', name);
        -- See migration 016.
        execute format('alter table %1$I alter column account_id set statistics 1, alter column account_id set (n_distinct = 20)', name);
    end loop;
    alter table usage_conversation_days alter column conversation_id set statistics 1, alter column conversation_id set (n_distinct = 20);
    analyze usage_days;
    analyze usage_conversation_days;
end
$$;
