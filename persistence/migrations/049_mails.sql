-- Mails to the owners of accounts, and the address that an account changes to when it is confirmed. Nodes of the previous
-- version leave all of this unused; one that changes an address directly leaves the waiting one as it is.
set local row_security = on; -- policies are meant

alter table accounts
    add column pending_email text check (char_length(pending_email) <= 254),
    add column pending_email_expires_at timestamptz;

-- Other devices show the address that waits.
drop trigger feed_account_update on accounts;
drop function feed_account();
select feed_attach('accounts', 'account', 'acct', id => 'new.account_id', on_insert => 'false',
    on_update => 'old.email is distinct from new.email or old.display_name is distinct from new.display_name
        or old.pending_email is distinct from new.pending_email');

-- A mail that is to be sent, or one that was sent and whose link can still be used. Its text is made when it is sent, from its
-- kind, and is not stored. Neither is the token of its link: that is an HMAC of the identifiers.
create table mails (
    account_id uuid not null references accounts on delete cascade,
    mail_id    uuid not null,
    kind       text not null check (kind in ('password_reset', 'password_changed', 'email_confirmation', 'email_change_requested')),
    recipient  text not null check (char_length(recipient) between 1 and 254),
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,                   -- of the link, or when the mail is not worth sending any more
    sent_at    timestamptz,                            -- null: to be sent
    primary key (account_id, mail_id)
);
create index mails_expiry on mails (expires_at);
alter table mails enable row level security;
alter table mails force row level security;
create policy own on mails
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
create policy engine on mails to turnstone_engine using (true) with check (true);
grant select, insert, update, delete on mails to turnstone_app;
grant select (account_id, mail_id, expires_at), delete on mails to turnstone_engine;
-- See migration 016.
alter table mails alter column account_id set statistics 1, alter column account_id set (n_distinct = 20);

-- A request to reset the password of the account that signs in with an address. A job looks for that account afterwards, so
-- that the request does the same work whether there is one. Nobody is known yet, so there is no row-level security.
create table password_requests (
    password_request_id uuid primary key,
    email_key           text not null check (octet_length(email_key) <= 2048),
    request_id          text not null,                 -- of the requester, for the audit
    address             text not null,
    requested_at        timestamptz not null
);
create index password_requests_age on password_requests (requested_at);
create index password_requests_email on password_requests (email_key);
grant select, insert, delete on password_requests to turnstone_app;
grant select (password_request_id, requested_at), delete on password_requests to turnstone_engine;
