-- With an index on the session alone, a statement about a session of an account read the row of a foreign one before it
-- refused it, and none for a missing one. Every statement names the account and uses sessions_account.
drop index sessions_id;
