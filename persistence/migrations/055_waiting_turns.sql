-- Turns that wait for an approval are not read by the nodes that look for turns without an owner, nor by the count of an account's
-- running turns, however many there are.
create index turns_live_owner on turns (owner, parked_until) where state not in ('completed', 'cancelled', 'failed', 'incomplete');
create index turns_live_of_account on turns (account_id, parked_until) where state not in ('completed', 'cancelled', 'failed', 'incomplete');
drop index turns_live;
drop index turns_live_account;
