-- An address is the sign-in name of the one account that has a password with it (docs/adr/0013). Accounts that sign in by a
-- provider only may show the same address: who typed it first does not keep its owner from signing in with OpenID.
alter table accounts drop constraint accounts_email_key_key;
create unique index accounts_sign_in_name on accounts (email_key) where password_hash is not null;
create index accounts_email on accounts (email_key);

-- As in 002_roles.sql: the functions read accounts under the policy "lookup".
set local row_security = on;
create or replace function sign_in_lookup(wanted text) returns uuid
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$ select account_id from accounts where email_key = wanted and password_hash is not null $$;

-- accounts_with_email answers every account that shows an address, for the commands of operators.
create function accounts_with_email(wanted text) returns setof uuid
    language sql stable security definer set search_path = pg_catalog, public, pg_temp
as $$ select account_id from accounts where email_key = wanted order by created_at, account_id limit 100 $$;
revoke execute on function accounts_with_email(text) from public;
grant execute on function accounts_with_email(text) to turnstone_app;
