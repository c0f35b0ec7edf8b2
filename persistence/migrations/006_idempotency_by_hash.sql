-- A kept answer is found by the account and a hash of method, path and key, so that no text that a client sent is in a
-- statement that several accounts share. The path stays for the purge of a conversation, which finds by it what was made
-- below it. FORCE would bind the owner, who here rewrites the rows of all accounts.
alter table idempotency no force row level security;
alter table idempotency add column key_hash bytea;
update idempotency set key_hash = sha256(convert_to(method || E'\n' || path || E'\n' || key, 'UTF8'));
alter table idempotency drop constraint idempotency_pkey;
alter table idempotency drop column method, drop column key, add primary key (account_id, key_hash);
alter table idempotency force row level security;
grant select (key_hash) on idempotency to turnstone_engine;
