-- The budget of model tokens per account and UTC day. Without a configured limit nothing is written here.
set local row_security = on; -- policies are meant

create table token_days (
    account_id uuid not null references accounts on delete cascade,
    day        date not null,                          -- in UTC
    used       bigint not null default 0,              -- of model calls that are over
    primary key (account_id, day)
);
create index token_days_age on token_days (day);

-- What model calls under way may still use. A call whose node died frees its tokens when its reservation expires.
create table token_reservations (
    account_id     uuid not null references accounts on delete cascade,
    reservation_id uuid not null,
    day            date not null,
    tokens         bigint not null check (tokens > 0),
    expires_at     timestamptz not null,
    primary key (account_id, reservation_id)
);
create index token_reservations_expiry on token_reservations (expires_at);

-- Temporary conversations, by when they expire.
create index conversations_temporary on conversations (last_activity_at) where temporary and deleted_at is null;
grant select (temporary, last_activity_at) on conversations to turnstone_engine;

do $$
declare
    name text;
begin
    foreach name in array array['token_days', 'token_reservations'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy own on %I
            using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
            with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, update, delete on %I to turnstone_app', name);
        execute format('create policy engine on %I to turnstone_engine using (true) with check (true)', name);
    end loop;
end
$$;
grant select (account_id, day), delete on token_days to turnstone_engine;
grant select (account_id, reservation_id, expires_at), delete on token_reservations to turnstone_engine;
