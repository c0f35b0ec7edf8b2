-- Which messages have which files. A file that a message has stays readable after it was deleted from the library; its bytes
-- go with the last such message.
set local row_security = on; -- policies are meant

create table message_files (
    account_id uuid not null,
    file_id    uuid not null,
    message_id uuid not null,
    primary key (account_id, file_id, message_id),
    foreign key (account_id, message_id) references messages on delete cascade,
    foreign key (account_id, file_id) references files on delete cascade
);
create index message_files_by_message on message_files (account_id, message_id);
alter table message_files enable row level security;
alter table message_files force row level security;
create policy own on message_files
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
create policy engine on message_files for select to turnstone_engine using (true);
grant select, insert, update, delete on message_files to turnstone_app;
grant select on message_files to turnstone_engine;
alter table message_files alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14

-- Every statement that adds a message adds its files: a start, a fork, an import.
create function add_message_files() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into message_files (account_id, file_id, message_id)
    select new.account_id, f.file_id, new.message_id from files f where f.account_id = new.account_id and f.file_id = any (new.attachments);
    return null;
end
$$;
revoke execute on function add_message_files() from public;
create trigger messages_files after insert on messages for each row when (new.attachments <> '{}') execute function add_message_files();

-- Whether the file counts for the quota. One that was deleted while a message has it counts until its bytes are gone.
-- FORCE would bind the owner, who here writes the rows of all accounts.
alter table files no force row level security;
alter table files add column counted boolean not null default true;
update files set counted = false where deleted_at is not null;
alter table files force row level security;
-- What a sweep reads, and the follow-ups that will have files.
drop index files_deleted;
create index files_deleted on files (account_id, file_id) where deleted_at is not null;
create index follow_ups_with_files on follow_ups (account_id) where state in ('queued', 'held') and attachments <> '{}';
