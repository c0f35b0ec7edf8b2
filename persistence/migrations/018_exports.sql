-- The export of an account that is running. The row is a lease, so that an account has one export at a time on all nodes: its
-- process renews it, and after a crash it expires.
set local row_security = on; -- policies are meant

create table exports (
    account_id uuid primary key references accounts on delete cascade,
    export_id  uuid not null,
    started_at timestamptz not null default now(),
    expires_at timestamptz not null
);
alter table exports enable row level security;
alter table exports force row level security;
create policy own on exports
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
grant select, insert, update, delete on exports to turnstone_app;
