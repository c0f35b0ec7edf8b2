-- Other devices show the name and the address of the account, so their changes are in the account feed.
select feed_attach('accounts', 'account', 'acct', id => 'new.account_id', on_insert => 'false',
    on_update => 'old.email is distinct from new.email or old.display_name is distinct from new.display_name');
