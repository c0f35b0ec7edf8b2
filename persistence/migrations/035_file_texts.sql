-- The texts of files, which a job reads from their contents.
set local row_security = on; -- policies are meant

create table file_texts (
    account_id uuid not null,
    file_id    uuid not null,
    state      text not null default 'pending' check (state in ('pending', 'done', 'none', 'failed')),
    reason     text check (reason in ('encrypted', 'damaged', 'too_complex', 'no_reader', 'unreadable')),
    attempts   int not null default 0,             -- that were begun
    pages      int check (pages > 0),              -- or sheets, slides, chapters; null: the type has none
    width      int check (width > 0),              -- of a picture, in pixels
    height     int check (height > 0),
    size       int not null default 0 check (size between 0 and 4194304), -- of the text, in bytes
    tokens     int not null default 0,             -- estimated
    truncated  boolean not null default false,
    read_at    timestamptz,
    primary key (account_id, file_id),
    foreign key (account_id, file_id) references files on delete cascade,
    check ((state = 'failed') = (reason is not null))
);

-- The text in pieces, so that a range is read without the rest. Each starts and ends between two characters, and has the
-- blocks (pages, sheets, slides, chapters) that have a part in it.
create table file_text_chunks (
    account_id uuid not null,
    file_id    uuid not null,
    start_at   int not null,                       -- byte of the whole text
    end_at     int not null check (end_at > start_at),
    text       text not null,
    blocks     jsonb not null,
    primary key (account_id, file_id, start_at),
    foreign key (account_id, file_id) references file_texts on delete cascade
);

do $$
declare
    name text;
begin
    foreach name in array array['file_texts', 'file_text_chunks'] loop
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

select feed_attach('file_texts', 'file_text', 'file', id => 'new.file_id', state => 'new.state', on_insert => 'false',
    on_update => 'old.state is distinct from new.state');
