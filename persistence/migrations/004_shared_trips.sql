-- Requests that come at the same time share a round trip: starts of turns, and the look-ups before them. Such a
-- transaction is for several accounts, which it names in turnstone.account_ids as an array; these policies let it come to
-- their rows, on the few tables that it needs, and to nobody else's. Without the setting they let nothing pass. The
-- accounts are read once a statement, since the select does not depend on the row.
do $$
declare
    named constant text := $p$account_id in (select unnest(nullif(current_setting('turnstone.account_ids', true), '')::uuid[]))$p$;
    name  text;
begin
    foreach name in array array['accounts', 'account_settings', 'turns', 'idempotency'] loop
        execute format('create policy shared_read on %I for select to turnstone_app using (%s)', name, named);
    end loop;
    -- A start locks the account's row.
    execute format('create policy shared_lock on accounts for update to turnstone_app using (%s) with check (false)', named);
    foreach name in array array['idempotency', 'conversations', 'branches', 'branch_segments', 'messages', 'turns', 'turn_events'] loop
        execute format('create policy shared_start on %I for insert to turnstone_app with check (%s)', name, named);
    end loop;
end
$$;
