-- An import of an export of this service also creates its projects and files.
set local row_security = on; -- policies are meant

alter table imports
    add column parts    bigint not null default 0,  -- projects, instructions and files of the export that are done; another run skips them
    add column projects bigint not null default 0,  -- that were created
    add column files    bigint not null default 0;

-- What the projects and files of exports have become here. Conversations name them by the identifiers of the export.
create table import_items (
    account_id uuid not null references accounts on delete cascade,
    kind       text not null check (kind in ('project', 'file')),
    source_id  uuid not null,                       -- in the export
    item_id    uuid,                                -- here; can be deleted meanwhile; null: the file was not imported
    import_id  uuid not null,                       -- the import that created it
    name       text check (char_length(name) <= 255), -- of a file that was not imported, for the messages that have it
    hidden     boolean not null default false,      -- the end of the import deletes the file from the library, as it was in the export
    primary key (account_id, kind, source_id)
);
create index import_items_hidden on import_items (account_id, import_id) where hidden;

alter table import_items enable row level security;
alter table import_items force row level security;
create policy own on import_items
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
grant select, insert, update, delete on import_items to turnstone_app;
alter table import_items alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14
