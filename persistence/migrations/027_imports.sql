-- Imports of exports of this service and others. The uploaded file is in the object store until the import has ended.
set local row_security = on; -- policies are meant

create table imports (
    account_id    uuid not null references accounts on delete cascade,
    import_id     uuid not null,
    state         text not null default 'receiving'
                  check (state in ('receiving', 'queued', 'running', 'completed', 'failed', 'cancelled')),
    source        text check (source in ('turnstone', 'chatgpt', 'claude')),
    size          bigint not null default 0,           -- bytes that were received
    chunks        int not null default 0,              -- objects that have them
    stored        boolean not null default true,       -- the objects may exist
    read_bytes    bigint not null default 0,
    handled       bigint not null default 0,           -- conversations of the file that are done; another run skips them
    imported      bigint not null default 0,
    skipped       bigint not null default 0,
    messages      bigint not null default 0,
    report        jsonb not null default '{}',
    failure       text,
    run           int not null default 0,              -- fences the job: only the last one to start may write
    active_at     timestamptz not null default now(),  -- moves while a request or a job works
    unfinished_id uuid,                                -- a conversation that is written in several transactions
    created_at    timestamptz not null default now(),
    finished_at   timestamptz,
    primary key (account_id, import_id)
);
create unique index imports_open on imports (account_id) where state in ('receiving', 'queued', 'running');
create index imports_recent on imports (account_id, created_at);
-- What a crash left behind, for the sweep.
create index imports_unfinished on imports (active_at) where state in ('receiving', 'queued', 'running') or stored;

-- What was imported already, by a hash of its source and its identifier there.
create table import_sources (
    account_id      uuid not null references accounts on delete cascade,
    source_hash     bytea not null,
    conversation_id uuid not null,                     -- can be deleted meanwhile: then it is imported again
    primary key (account_id, source_hash)
);

do $$
declare
    name text;
begin
    foreach name in array array['imports', 'import_sources'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy own on %I
            using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
            with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, update, delete on %I to turnstone_app', name);
        execute format('alter table %I alter column account_id set statistics 1, alter column account_id set (n_distinct = 20)', name); -- ADR 14
    end loop;
end
$$;
create policy engine on imports for select to turnstone_engine using (true);
grant select (account_id, import_id, state, stored, active_at) on imports to turnstone_engine;
