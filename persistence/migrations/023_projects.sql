-- Projects group conversations. A deleted project hides its conversations from every read until it is restored, or purged
-- 30 days later. Deleting and restoring change only the row of the project: the condition conversations.Visible of package
-- persistence/conversations reads it.
set local row_security = on; -- policies are meant

create table projects (
    account_id           uuid not null references accounts on delete cascade,
    project_id           uuid not null,
    name                 text not null check (char_length(name) between 1 and 200),
    archived_at          timestamptz,
    deleted_at           timestamptz,                  -- an archived project stays archived when it is restored
    purge_at             timestamptz,
    state                text not null generated always as (
        case when deleted_at is not null then 'deleted' when archived_at is not null then 'archived' else 'active' end) stored,
    conversation_count   bigint not null default 0,    -- maintained by count_project_conversations
    version              bigint not null default 1,    -- counts changes of name, archived_at and deleted_at
    settings             jsonb not null default '{}',  -- protocol.ProjectSettings; a missing field has its default
    settings_version     bigint not null default 0,
    instructions_version bigint not null default 0,    -- the newest row of project_instructions; 0: none
    created_at           timestamptz not null default now(),
    updated_at           timestamptz not null default now(),
    primary key (account_id, project_id),
    check (state in ('active', 'archived', 'deleted')),
    check ((deleted_at is null) = (purge_at is null))
) with (fillfactor = 75);
create index projects_state on projects (account_id, state, project_id desc);
create index projects_purge on projects (purge_at) where deleted_at is not null;

-- Every version of the instructions, since a turn uses the version that was current when it started.
create table project_instructions (
    account_id uuid not null,
    project_id uuid not null,
    version    bigint not null check (version >= 1),
    content    text not null check (char_length(content) <= 16000),
    created_at timestamptz not null default now(),
    primary key (account_id, project_id, version),
    foreign key (account_id, project_id) references projects on delete cascade
);

-- Who did what in a project, and when. An entry has identifiers and versions, and no text.
create table project_work (
    account_id      uuid not null,
    work_id         uuid not null,
    project_id      uuid not null,
    kind            text not null check (kind in ('project_created', 'project_renamed', 'project_archived', 'project_unarchived',
                        'project_deleted', 'project_restored', 'settings_changed', 'instructions_changed',
                        'conversation_created', 'conversation_moved_in', 'conversation_moved_out', 'conversation_deleted', 'turn_started')),
    session_id      uuid,                              -- null: the service did it
    conversation_id uuid,
    turn_id         uuid,
    other_project_id uuid,                             -- where a conversation came from or went to
    version         bigint,                            -- of what was changed
    at              timestamptz not null default now(),
    primary key (account_id, work_id),
    foreign key (account_id, project_id) references projects on delete cascade
);
create index project_work_history on project_work (account_id, project_id, work_id desc);

-- hidden repeats for the indexes below that the project of a conversation is deleted, so that the lists of an account skip
-- its conversations at once. It is set and cleared in steps after the project was deleted or restored, so it only decides
-- where an index has a conversation, and never what a read returns.
alter table conversations add column hidden boolean not null default false;
alter table conversations add foreign key (account_id, project_id) references projects;
drop index conversations_open;
drop index conversations_archived;
create index conversations_open on conversations
    (account_id, (pinned_at is not null) desc, last_activity_at desc, conversation_id desc)
    where deleted_at is null and not temporary and archived_at is null and not hidden;
create index conversations_archived on conversations
    (account_id, (pinned_at is not null) desc, last_activity_at desc, conversation_id desc)
    where deleted_at is null and not temporary and archived_at is not null and not hidden;
-- The conversations of a project that still have to be hidden, shown or purged, the most recently used first.
create index conversations_hidden on conversations (account_id, project_id, hidden, last_activity_at desc, conversation_id desc)
    where project_id is not null and deleted_at is null;

-- The number of conversations is maintained, since counting would read all of them.
create function count_project_conversations() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    if tg_op <> 'INSERT' and old.project_id is not null and old.deleted_at is null then
        update projects set conversation_count = conversation_count - 1
        where account_id = old.account_id and project_id = old.project_id;
    end if;
    if tg_op <> 'DELETE' and new.project_id is not null and new.deleted_at is null then
        update projects set conversation_count = conversation_count + 1
        where account_id = new.account_id and project_id = new.project_id;
    end if;
    return null;
end
$$;
revoke execute on function count_project_conversations() from public;
create trigger project_insert after insert on conversations for each row
    when (new.project_id is not null) execute function count_project_conversations();
create trigger project_update after update of project_id, deleted_at on conversations for each row
    when ((old.project_id, old.deleted_at is null) is distinct from (new.project_id, new.deleted_at is null))
    execute function count_project_conversations();

do $$
declare
    name text;
begin
    foreach name in array array['projects', 'project_instructions', 'project_work'] loop
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
alter table project_instructions alter column project_id set statistics 1, alter column project_id set (n_distinct = 20);
alter table project_work alter column project_id set statistics 1, alter column project_id set (n_distinct = 20);
alter table conversations alter column project_id set statistics 1, alter column project_id set (n_distinct = 20);
-- The sweeps for stalled queues and due purges.
create policy engine on projects to turnstone_engine using (true) with check (true);
grant select (account_id, project_id, state, deleted_at, purge_at) on projects to turnstone_engine;
grant select (project_id) on conversations to turnstone_engine;

-- A deletion hides the conversations of the project without an item for each of them.
select feed_attach('projects', 'project', 'proj', id => 'new.project_id', version => 'new.version', state => 'new.state',
    on_update => 'old.version is distinct from new.version or old.settings_version is distinct from new.settings_version
        or old.instructions_version is distinct from new.instructions_version');
