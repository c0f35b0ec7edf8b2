-- Upload sessions and files. The bytes are in the object store: those of a session below q/, those of a file below f/.
set local row_security = on; -- policies are meant

create table uploads (
    account_id      uuid not null references accounts on delete cascade,
    upload_id       uuid not null,
    state           text not null default 'pending'
                    check (state in ('pending', 'receiving', 'scanning', 'ready', 'rejected', 'failed', 'expired', 'cancelled')),
    filename        text not null check (char_length(filename) between 1 and 255),
    media_type      text not null,                     -- declared
    size            bigint not null check (size > 0),  -- declared
    declared_sha256 bytea check (octet_length(declared_sha256) = 32),
    purpose         text not null check (purpose in ('attachment', 'project', 'library')),
    conversation_id uuid,
    project_id      uuid,
    session_id      uuid,
    object_name     text not null,                     -- random
    received_bytes  bigint not null default 0,
    content         jsonb,                             -- from scanning on: what is in quarantine
    failure         jsonb,
    file_id         uuid,
    owner           uuid,                              -- the node that works on the session, while it receives or scans
    owner_epoch     int not null default 0,
    next_sequence   bigint not null,
    reap_at         timestamptz,                       -- when the objects of a session that has ended are deleted; null: never again
    created_at      timestamptz not null,
    expires_at      timestamptz not null,
    finished_at     timestamptz,
    primary key (account_id, upload_id)
) with (fillfactor = 70);
-- The work of the nodes, the sessions whose lifetime is over, the objects to delete, and the open sessions of an account.
create index uploads_owned on uploads (owner) where state in ('receiving', 'scanning');
create index uploads_due on uploads (expires_at) where state = 'pending';
create index uploads_reap on uploads (reap_at) where reap_at is not null;
create index uploads_open on uploads (account_id, upload_id) where state in ('pending', 'receiving', 'scanning');
create index uploads_finished on uploads (finished_at) where finished_at is not null;

-- The events of a session: a few for each attempt.
create table upload_events (
    account_id     uuid not null,
    upload_id      uuid not null,
    first_sequence bigint not null,
    last_sequence  bigint not null,
    frames         bytea not null,
    primary key (account_id, upload_id, first_sequence),
    foreign key (account_id, upload_id) references uploads on delete cascade
);

create table files (
    account_id  uuid not null references accounts on delete cascade,
    file_id     uuid not null,
    filename    text not null check (char_length(filename) between 1 and 255),
    media_type  text not null,                         -- detected
    kind        text not null check (kind in ('document', 'text', 'image', 'audio', 'archive', 'other')),
    size        bigint not null check (size > 0),
    sha256      bytea not null check (octet_length(sha256) = 32),
    object_name text not null,
    scan_engine text not null,
    scanned_at  timestamptz not null,
    version     bigint not null default 1,
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    deleted_at  timestamptz,                           -- it is in no list any more; the bytes go with the last reference
    primary key (account_id, file_id)
);
create index files_library on files (account_id, file_id desc) where deleted_at is null;
create index files_by_name on files (account_id, lower(filename), file_id) where deleted_at is null;
create index files_by_size on files (account_id, size desc, file_id desc) where deleted_at is null;
create index files_by_kind on files (account_id, kind, file_id desc) where deleted_at is null;
create index files_deleted on files (deleted_at) where deleted_at is not null;

-- The files of a project.
create table project_files (
    account_id uuid not null,
    project_id uuid not null,
    file_id    uuid not null,
    added_at   timestamptz not null default now(),
    primary key (account_id, project_id, file_id),
    foreign key (account_id, project_id) references projects on delete cascade,
    foreign key (account_id, file_id) references files on delete cascade
);
create index project_files_by_file on project_files (account_id, file_id);

-- What an account stores: the bytes and the number of its files, and the declared bytes of its open sessions. The row is
-- locked by whoever changes it, so that no two sessions take the same rest of a quota.
create table file_totals (
    account_id uuid primary key references accounts on delete cascade,
    bytes      bigint not null default 0,
    files      bigint not null default 0,
    reserved   bigint not null default 0,
    sessions   bigint not null default 0
);

alter table projects add column file_count bigint not null default 0; -- maintained by count_project_files
create function count_project_files() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    if tg_op = 'DELETE' then
        update projects set file_count = file_count - 1 where account_id = old.account_id and project_id = old.project_id;
    else
        update projects set file_count = file_count + 1 where account_id = new.account_id and project_id = new.project_id;
    end if;
    return null;
end
$$;
revoke execute on function count_project_files() from public;
create trigger project_files_count after insert or delete on project_files for each row execute function count_project_files();

do $$
declare
    name text;
begin
    foreach name in array array['uploads', 'upload_events', 'files', 'project_files', 'file_totals'] loop
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
create policy engine on uploads to turnstone_engine using (true) with check (true);
grant select (account_id, upload_id, state, owner, owner_epoch, expires_at, reap_at, finished_at), update (owner, owner_epoch), delete on uploads to turnstone_engine;
create policy engine on files for select to turnstone_engine using (true);
grant select (account_id, file_id, deleted_at) on files to turnstone_engine;

select feed_attach('uploads', 'upload', 'upl', id => 'new.upload_id', conversation => 'new.conversation_id', state => 'new.state',
    on_update => 'old.state is distinct from new.state');
select feed_attach('files', 'file', 'file', id => 'new.file_id', version => 'new.version', deleted => 'new.deleted_at is not null',
    on_update => 'old.version is distinct from new.version or old.deleted_at is distinct from new.deleted_at');

-- The work of a project includes its files.
alter table project_work drop constraint project_work_kind_check;
alter table project_work add constraint project_work_kind_check check (kind in (
    'project_created', 'project_renamed', 'project_archived', 'project_unarchived', 'project_deleted', 'project_restored', 'settings_changed',
    'instructions_changed', 'conversation_created', 'conversation_moved_in', 'conversation_moved_out', 'conversation_deleted', 'turn_started',
    'file_added', 'file_removed'));
alter table project_work add column file_id uuid;
