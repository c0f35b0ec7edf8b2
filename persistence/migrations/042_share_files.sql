-- The files that a share carries, each with the number and the name that it had when the share was created. A share never keeps
-- the bytes of a file: a file that was deleted from the library is in no share any more.
set local row_security = on; -- policies are meant

create table share_files (
    account_id uuid not null,
    share_id   uuid not null,
    n          int not null check (n between 1 and 50),
    file_id    uuid not null,
    filename   text not null check (char_length(filename) between 1 and 255),
    primary key (account_id, share_id, n),
    foreign key (account_id, share_id) references shares on delete cascade,
    foreign key (account_id, file_id) references files on delete cascade
);
create index share_files_by_file on share_files (account_id, file_id);
alter table share_files enable row level security;
alter table share_files force row level security;
create policy own on share_files
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
create policy engine on share_files to turnstone_engine using (true) with check (true);
grant select, insert, update, delete on share_files to turnstone_app;
grant select (account_id, share_id, n), delete on share_files to turnstone_engine;
alter table share_files alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14
analyze share_files;
