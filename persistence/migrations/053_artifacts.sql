-- Artifacts: documents, code, pages, pictures, tables and diagrams that the model and the user write together. Each change is a
-- version, which never changes. The rows of an artifact end with its conversation.
set local row_security = on; -- policies are meant

create table artifacts (
    account_id      uuid not null,
    artifact_id     uuid not null,
    conversation_id uuid not null,
    message_id      uuid,                              -- the answer that created it
    kind            text not null check (kind in ('document', 'code', 'html', 'svg', 'table', 'diagram')),
    language        text check (char_length(language) between 1 and 40),
    title           text not null check (char_length(title) between 1 and 200), -- of the current version, as the columns below
    version         bigint not null check (version >= 1),
    created_by      text not null check (created_by in ('model', 'user')),
    bytes           int not null check (bytes between 0 and 1048576),
    sha256          bytea not null check (octet_length(sha256) = 32),
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    primary key (account_id, artifact_id),
    foreign key (account_id, conversation_id) references conversations on delete cascade
) with (fillfactor = 90);
create index artifacts_conversation on artifacts (account_id, conversation_id, artifact_id desc);

create table artifact_versions (
    account_id  uuid not null,
    artifact_id uuid not null,
    version     bigint not null check (version >= 1),
    message_id  uuid,                                  -- the answer that wrote it; null: the user
    tool_id     uuid,                                  -- the call that wrote it, so that it has its effect once
    title       text not null check (char_length(title) between 1 and 200),
    created_by  text not null check (created_by in ('model', 'user')),
    content     text not null,
    bytes       int not null check (bytes between 0 and 1048576 and bytes = octet_length(content)),
    sha256      bytea not null check (octet_length(sha256) = 32),
    created_at  timestamptz not null default now(),
    primary key (account_id, artifact_id, version),
    foreign key (account_id, artifact_id) references artifacts on delete cascade
);
create unique index artifact_versions_tool on artifact_versions (account_id, tool_id) where tool_id is not null;

do $$
declare
    name text;
begin
    foreach name in array array['artifacts', 'artifact_versions'] loop
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
alter table artifacts alter column conversation_id set statistics 1, alter column conversation_id set (n_distinct = 20);

-- The index of the search reads the texts of all accounts.
create policy engine on artifacts for select to turnstone_engine using (true);
create policy engine on artifact_versions for select to turnstone_engine using (true);
grant select (account_id, artifact_id, conversation_id, message_id, title, version, created_at) on artifacts to turnstone_engine;
grant select (account_id, artifact_id, version, content, bytes) on artifact_versions to turnstone_engine;

select feed_attach('artifacts', 'artifact', 'art', id => 'new.artifact_id', conversation => 'new.conversation_id', version => 'new.version',
    on_update => 'old.version is distinct from new.version');

-- The versions count in what an account stores. A trigger counts them, whatever adds or deletes them.
alter table file_totals add column artifact_bytes bigint not null default 0;
create function count_artifact_bytes() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    if tg_op = 'DELETE' then
        update file_totals t set artifact_bytes = t.artifact_bytes - g.bytes
        from (select account_id, sum(bytes) as bytes from gone group by account_id) g where t.account_id = g.account_id;
    else
        insert into file_totals as t (account_id, artifact_bytes)
        select account_id, sum(bytes) from added group by account_id
        on conflict (account_id) do update set artifact_bytes = t.artifact_bytes + excluded.artifact_bytes;
    end if;
    return null;
end
$$;
revoke execute on function count_artifact_bytes() from public;
create trigger artifact_versions_added after insert on artifact_versions referencing new table as added
    for each statement execute function count_artifact_bytes();
create trigger artifact_versions_gone after delete on artifact_versions referencing old table as gone
    for each statement execute function count_artifact_bytes();

-- Artifacts are found by their titles and the text of their current versions.
alter table search_rows drop constraint search_rows_kind_check;
alter table search_rows add column artifact_id uuid,
    add constraint search_rows_kind_check check (kind in ('conversation', 'message', 'file', 'artifact')),
    add constraint search_rows_artifact check ((kind = 'artifact') = (artifact_id is not null)),
    add foreign key (account_id, artifact_id) references artifacts on delete cascade;
create index search_rows_artifact on search_rows (account_id, artifact_id) where artifact_id is not null;
alter table search_rows alter column artifact_id set statistics 1, alter column artifact_id set (n_distinct = 20);
alter table search_pending drop constraint search_pending_kind_check;
alter table search_pending add constraint search_pending_kind_check check (kind in ('conversation', 'message', 'file', 'artifact'));

create function search_artifacts_changed() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into search_pending (account_id, kind, id, conversation_id)
    values (new.account_id, 'artifact', new.artifact_id, new.conversation_id);
    return null;
end
$$;
revoke execute on function search_artifacts_changed() from public;
create trigger search_added after insert on artifacts for each row execute function search_artifacts_changed();
create trigger search_changed after update of version on artifacts for each row
    when (new.version is distinct from old.version) execute function search_artifacts_changed();

-- The report of an import counts the artifacts that it has created.
alter table imports add column artifacts bigint not null default 0;
