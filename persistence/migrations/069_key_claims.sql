-- The claim of a key whose request is in progress. It is chosen before the key is claimed, so a node can give up a claim although it never
-- got the reply. Null: a program before this migration claimed the key, or the claim is committed together with its response.
alter table idempotency add column claim_id uuid;
