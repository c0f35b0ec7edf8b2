-- Research tasks. A task is a function of its entries; the row is what is published of it.
set local row_security = on; -- policies are meant

create table research_tasks (
    account_id      uuid not null,
    task_id         uuid not null,
    conversation_id uuid not null,
    question        text not null,                     -- for the search
    state           text not null check (state in ('queued', 'running', 'cancelling', 'completed', 'failed', 'cancelled')),
    spec            json not null,                     -- a researchlog.Spec; never changes
    body            json not null,                     -- a protocol.ResearchTask
    version         bigint not null,
    hidden          boolean not null default false,    -- its conversation or its project was deleted: no node runs the task
    owner           uuid,                              -- the node that runs the task
    owner_epoch     int not null default 0,
    attempts        int not null default 0,            -- claims since the last entry
    next_sequence   bigint not null,
    next_entry      bigint not null,
    created_at      timestamptz not null,
    finished_at     timestamptz,
    primary key (account_id, task_id),
    foreign key (account_id, conversation_id) references conversations on delete cascade
) with (fillfactor = 70);
create index research_of_conversation on research_tasks (account_id, conversation_id, task_id);
create index research_owned on research_tasks (owner) where state in ('queued', 'running', 'cancelling');
create index research_queued on research_tasks (account_id, task_id) where state = 'queued';
create index research_active on research_tasks (account_id) where state in ('queued', 'running', 'cancelling');

create table research_events (
    account_id     uuid not null,
    task_id        uuid not null,
    first_sequence bigint not null,
    last_sequence  bigint not null,
    frames         bytea not null,
    primary key (account_id, task_id, first_sequence),
    foreign key (account_id, task_id) references research_tasks on delete cascade
);

create table research_entries (
    account_id uuid not null,
    task_id    uuid not null,
    number     bigint not null,
    body       bytea not null,                         -- a researchlog.Entry, as JSON
    primary key (account_id, task_id, number),
    foreign key (account_id, task_id) references research_tasks on delete cascade
);

create table research_sources (
    account_id uuid not null,
    task_id    uuid not null,
    ordinal    int not null,
    body       json not null,                          -- a protocol.ResearchKeptSource
    primary key (account_id, task_id, ordinal),
    foreign key (account_id, task_id) references research_tasks on delete cascade
);

do $$
declare
    name text;
begin
    foreach name in array array['research_tasks', 'research_events', 'research_entries', 'research_sources'] loop
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
create policy engine on research_tasks to turnstone_engine using (true) with check (true);
grant select (account_id, task_id, conversation_id, question, state, hidden, owner, owner_epoch, attempts, created_at), update (owner, owner_epoch, attempts) on research_tasks to turnstone_engine;

select feed_attach('research_tasks', 'task', 'task', id => 'new.task_id', conversation => 'new.conversation_id', version => 'new.version', state => 'new.state',
    on_update => 'old.state is distinct from new.state');

-- The work of a project includes its research tasks.
alter table project_work drop constraint project_work_kind_check;
alter table project_work add constraint project_work_kind_check check (kind in (
    'project_created', 'project_renamed', 'project_archived', 'project_unarchived', 'project_deleted', 'project_restored', 'settings_changed',
    'instructions_changed', 'conversation_created', 'conversation_moved_in', 'conversation_moved_out', 'conversation_deleted', 'turn_started',
    'file_added', 'file_removed', 'task_started'));
alter table project_work add column task_id uuid;

-- Research tasks are found by their questions.
alter table search_rows drop constraint search_rows_kind_check;
alter table search_rows add column task_id uuid,
    add constraint search_rows_kind_check check (kind in ('conversation', 'message', 'file', 'artifact', 'task')),
    add constraint search_rows_task check ((kind = 'task') = (task_id is not null)),
    add foreign key (account_id, task_id) references research_tasks on delete cascade;
create index search_rows_task on search_rows (account_id, task_id) where task_id is not null;
alter table search_rows alter column task_id set statistics 1, alter column task_id set (n_distinct = 20);
alter table search_pending drop constraint search_pending_kind_check;
alter table search_pending add constraint search_pending_kind_check check (kind in ('conversation', 'message', 'file', 'artifact', 'task'));

create function search_task_added() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into search_pending (account_id, kind, id, conversation_id)
    values (new.account_id, 'task', new.task_id, new.conversation_id);
    return null;
end
$$;
revoke execute on function search_task_added() from public;
create trigger search_added after insert on research_tasks for each row execute function search_task_added();
