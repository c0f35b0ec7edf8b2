-- A share is an immutable snapshot of a conversation, in pages, which everybody who has its token can read. The token is not
-- stored, only its SHA-256. Revoking a share deletes its rows.
set local row_security = on; -- policies are meant

create table shares (
    account_id      uuid not null,
    share_id        uuid not null,
    conversation_id uuid not null,
    token_hash      bytea not null unique check (octet_length(token_hash) = 32),
    title           text not null check (char_length(title) <= 200),
    message_count   int not null check (message_count between 1 and 20000),
    page_count      int not null check (page_count >= 1),
    open_count      bigint not null default 0,
    last_opened_at  timestamptz,
    audited_at      timestamptz,                       -- when the audit recorded last that it was opened
    created_at      timestamptz not null default now(),
    expires_at      timestamptz not null,
    primary key (account_id, share_id),
    foreign key (account_id, conversation_id) references conversations on delete cascade
) with (fillfactor = 90);
create index shares_conversation on shares (account_id, conversation_id, share_id);
create index shares_live on shares (account_id, expires_at);                          -- how many an account has
create index shares_expiry on shares (expires_at);

create table share_pages (
    account_id uuid not null,
    share_id   uuid not null,
    page       int not null check (page >= 1),
    messages   json not null,                          -- an array of protocol.SharedMessage
    primary key (account_id, share_id, page),
    foreign key (account_id, share_id) references shares on delete cascade
);

do $$
declare
    name text;
begin
    foreach name in array array['shares', 'share_pages'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy own on %I
            using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
            with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)$p$, name);
        execute format('grant select, insert, update, delete on %I to turnstone_app', name);
        execute format('create policy engine on %I to turnstone_engine using (true) with check (true)', name);
        -- See migration 016.
        execute format('alter table %1$I alter column account_id set statistics 1, alter column account_id set (n_distinct = 20)', name);
        execute format('analyze %I', name);
    end loop;
    alter table shares alter column conversation_id set statistics 1, alter column conversation_id set (n_distinct = 20);
end
$$;
grant select (account_id, share_id, expires_at), delete on shares to turnstone_engine;
grant select (account_id, share_id, page), delete on share_pages to turnstone_engine;

-- Revoking sets the time of expiry before it deletes the row, so that the feed reports it, but not the purge of a conversation.
select feed_attach('shares', 'share', 'shr', id => 'new.share_id', conversation => 'new.conversation_id',
    deleted => 'new.expires_at <= now()', on_update => 'old.expires_at is distinct from new.expires_at');
select feed_attach('messages', 'feedback', 'msg', id => 'new.message_id', conversation => 'new.conversation_id',
    on_insert => 'false', on_update => 'old.feedback is distinct from new.feedback');

-- share_lookup returns the account whose share has a token, and nothing else. The caller continues as that account.
create policy lookup on shares for select to current_user using (true);
create function share_lookup(hash bytea) returns uuid
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$ select account_id from shares where token_hash = hash $$;
revoke execute on function share_lookup(bytea) from public;
grant execute on function share_lookup(bytea) to turnstone_app;
