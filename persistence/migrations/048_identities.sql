-- Identities at OpenID providers get an identifier, so that their account can name one that it unlinks. Nodes of the previous
-- version insert identities without it; the identifier of such a row is random, and not ordered by time.
set local row_security = on; -- policies are meant

alter table account_identities add column identity_id uuid not null default gen_random_uuid();
