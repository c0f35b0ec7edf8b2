-- The instructions of an account are part of every request to a model.
set local row_security = on; -- policies are meant

-- Every version of the instructions, since a turn uses the version that was current when it started.
create table account_instructions (
    account_id uuid not null references accounts on delete cascade,
    version    bigint not null check (version >= 1),
    content    text not null check (char_length(content) <= 16000),
    created_at timestamptz not null default now(),
    primary key (account_id, version)
);
alter table account_instructions enable row level security;
alter table account_instructions force row level security;
create policy own on account_instructions
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
-- A start for several accounts (004) reads their versions.
create policy shared_read on account_instructions for select to turnstone_app
    using (account_id in (select unnest(nullif(current_setting('turnstone.account_ids', true), '')::uuid[])));
grant select, insert, delete on account_instructions to turnstone_app;
alter table account_instructions alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14

select feed_attach('account_instructions', 'instructions', 'acct', id => 'new.account_id', version => 'new.version', on_update => 'false');
