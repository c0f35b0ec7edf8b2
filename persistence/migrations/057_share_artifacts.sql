-- The artifacts that a share carries, each as it was when the share was created: the oldest versions of an artifact are dropped,
-- so a share has a copy of the one that it shows.
set local row_security = on; -- policies are meant

create table share_artifacts (
    account_id  uuid not null,
    share_id    uuid not null,
    n           int not null check (n between 1 and 20),
    artifact_id uuid not null,
    version     bigint not null check (version >= 1),
    kind        text not null check (kind in ('document', 'code', 'html', 'svg', 'table', 'diagram')),
    title       text not null check (char_length(title) between 1 and 200),
    language    text check (char_length(language) between 1 and 40),
    content     text not null,
    bytes       int not null check (bytes between 0 and 1048576 and bytes = octet_length(content)),
    sha256      bytea not null check (octet_length(sha256) = 32),
    primary key (account_id, share_id, n),
    foreign key (account_id, share_id) references shares on delete cascade
);
alter table share_artifacts enable row level security;
alter table share_artifacts force row level security;
create policy own on share_artifacts
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
create policy engine on share_artifacts to turnstone_engine using (true) with check (true);
grant select, insert, update, delete on share_artifacts to turnstone_app;
grant select (account_id, share_id, n), delete on share_artifacts to turnstone_engine;
alter table share_artifacts alter column account_id set statistics 1, alter column account_id set (n_distinct = 20); -- ADR 14
analyze share_artifacts;
