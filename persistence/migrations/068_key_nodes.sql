-- The node whose request claimed a key. Once that node is dead, the key can be claimed again. Null: a program before this migration
-- claimed it, or the claim is committed together with its response.
alter table idempotency add column node_id uuid;
