-- The versions of what an account changes about itself: its name and address, and its passkeys.
set local row_security = on; -- policies are meant

alter table accounts add column version bigint not null default 1;
alter table passkeys add column version bigint not null default 1;
