-- Prompts are texts that a user saves, and inserts into messages. One belongs to the account or to a project, which hides it while the
-- project is deleted, and erases it at the end.
set local row_security = on; -- policies are meant

create table prompts (
    account_id  uuid not null references accounts on delete cascade,
    prompt_id   uuid not null,
    project_id  uuid,                                  -- null: it belongs to the account
    name        text not null check (char_length(name) between 1 and 64),
    name_key    text not null generated always as (lower(name)) stored,
    description text not null default '' check (char_length(description) <= 200),
    text        text not null check (char_length(text) between 1 and 16000),
    version     bigint not null default 1,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    primary key (account_id, prompt_id),
    foreign key (account_id, project_id) references projects on delete cascade,
    constraint prompts_name unique nulls not distinct (account_id, project_id, name_key)
);
alter table prompts enable row level security;
alter table prompts force row level security;
create policy own on prompts
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
grant select, insert, update, delete on prompts to turnstone_app;
alter table prompts alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14
alter table prompts alter column project_id set statistics 1, alter column project_id set (n_distinct = 20);

-- An account has so few prompts that a purge may report each of them.
select feed_attach('prompts', 'prompt', 'prompt', id => 'new.prompt_id', version => 'new.version',
    on_update => 'old.version is distinct from new.version', on_delete => 'true');
