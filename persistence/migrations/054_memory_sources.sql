-- The consents of accounts to the sources of memory, and the places that conversations have while the account consents.
set local row_security = on; -- policies are meant

create table memory_consents (
    account_id uuid not null references accounts on delete cascade,
    source     text not null check (source in ('conversations', 'files', 'projects', 'location', 'connectors')),
    granted    boolean not null,
    precise    boolean not null default false,         -- the location is not rounded
    changed_at timestamptz not null default now(),
    primary key (account_id, source),
    check (not precise or granted and source = 'location')
);

create table location_contexts (
    account_id      uuid not null,
    conversation_id uuid not null,
    latitude        double precision not null check (latitude between -90 and 90),
    longitude       double precision not null check (longitude between -180 and 180),
    accuracy_m      double precision not null check (accuracy_m between 0 and 1001000),
    place           text check (char_length(place) between 1 and 200),
    precise         boolean not null,
    expires_at      timestamptz not null,
    updated_at      timestamptz not null default now(),
    primary key (account_id, conversation_id),
    foreign key (account_id, conversation_id) references conversations on delete cascade
);
create index location_contexts_expiry on location_contexts (expires_at);

do $$
declare
    name text;
begin
    foreach name in array array['memory_consents', 'location_contexts'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy own on %I
            using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
            with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, update, delete on %I to turnstone_app', name);
        execute format('alter table %1$I alter column account_id set statistics 1, alter column account_id set (n_distinct = 20)', name); -- ADR 14
    end loop;
end
$$;

-- A start for several accounts (004) reads their consents.
create policy shared_read on memory_consents for select to turnstone_app
    using (account_id in (select unnest(nullif(current_setting('turnstone.account_ids', true), '')::uuid[])));

-- The engine removes the contexts that have expired.
create policy engine on location_contexts to turnstone_engine using (true) with check (true);
grant select (account_id, conversation_id, expires_at), delete on location_contexts to turnstone_engine;

select feed_attach('memory_consents', 'consent', 'acct', id => 'new.account_id',
    on_update => 'old.granted is distinct from new.granted or old.precise is distinct from new.precise');
