-- The pages behind the first one of documents of pictures, as JPEG or PNG, for models that accept pictures. They have what the texts of an
-- account leave of its limit, and end with the text.
set local row_security = on; -- policies are meant

create table file_pages (
    account_id uuid not null,
    file_id    uuid not null,
    page       int not null check (page between 2 and 8),
    picture    bytea not null check (octet_length(picture) between 1 and 524288),
    primary key (account_id, file_id, page),
    foreign key (account_id, file_id) references file_texts on delete cascade
);
alter table file_pages alter column picture set storage external;
alter table file_pages enable row level security;
alter table file_pages force row level security;
create policy own on file_pages
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
grant select, insert, update, delete on file_pages to turnstone_app;
alter table file_pages alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14

-- A list of one kind has the order of this index, which no other has, so its plan does not depend on how common the kind is (ADR 14).
drop index files_by_kind;
create index files_by_kind on files (account_id, kind, file_id) where deleted_at is null;
