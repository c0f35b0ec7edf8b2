-- Passkeys are public keys of authenticators (WebAuthn) with which their account signs in. Like sessions, they are not in
-- the account feed.
set local row_security = on; -- policies are meant

create table passkeys (
    account_id      uuid not null references accounts on delete cascade,
    passkey_id      uuid not null,
    credential_id   bytea not null unique check (octet_length(credential_id) between 1 and 1023),
    public_key      bytea not null check (octet_length(public_key) <= 4096),
    sign_count      bigint not null check (sign_count between 0 and 4294967295),  -- of the last use; 0: the authenticator has none
    transports      text[] not null default '{}',
    aaguid          uuid not null,                     -- the model of the authenticator; zero: unknown
    name            text not null check (char_length(name) between 1 and 100),
    backup_eligible boolean not null,
    backed_up       boolean not null,
    created_at      timestamptz not null,
    last_used_at    timestamptz,
    primary key (account_id, passkey_id)
);
alter table passkeys enable row level security;
alter table passkeys force row level security;
create policy own on passkeys
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
grant select, insert, update, delete on passkeys to turnstone_app;
-- See migration 016.
alter table passkeys alter column account_id set statistics 1, alter column account_id set (n_distinct = 20);

-- passkey_lookup returns the account whose passkey has a credential identifier, and nothing else. The caller continues as
-- that account.
create policy lookup on passkeys for select to current_user using (true);
create function passkey_lookup(wanted bytea) returns uuid
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$ select account_id from passkeys where credential_id = wanted $$;
revoke execute on function passkey_lookup(bytea) from public;
grant execute on function passkey_lookup(bytea) to turnstone_app;

-- A request to an authenticator that is in progress. It is found by the HMAC of its challenge, before anybody is known, so
-- there is no row-level security.
create table passkey_flows (
    challenge_hash bytea primary key,
    browser_hash   bytea not null,
    purpose        text not null check (purpose in ('register', 'sign_in', 'reauthenticate')),
    for_account    uuid,                               -- null: a sign-in
    expires_at     timestamptz not null,
    check ((for_account is null) = (purpose = 'sign_in'))
);
create index passkey_flows_expiry on passkey_flows (expires_at);
grant select, insert, delete on passkey_flows to turnstone_app;
grant select (challenge_hash, expires_at), delete on passkey_flows to turnstone_engine;
