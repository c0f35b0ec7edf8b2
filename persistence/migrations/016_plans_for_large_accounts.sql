-- Accounts differ in size, but Postgres plans for the average one: one or two rows in each table, two messages in a
-- conversation. All indexes then have the same cost, and for the largest accounts it chose indexes that lead to all of their
-- rows. Few distinct values, whatever a sample contains, make the plans fit large accounts, at no cost for small ones. There
-- is no list of common values, because Postgres would limit its estimates by it. See docs/adr/0014.
do $$
declare
    key record;
begin
    for key in
        select c.oid::regclass as rel, a.attname as name
        from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
          and (c.relname, a.attname) not in (('accounts', 'account_id'), ('account_settings', 'account_id'), ('audit_heads', 'account_id'),
                                             ('conversations', 'conversation_id'), ('branches', 'branch_id'), ('turns', 'turn_id'), ('turn_replays', 'turn_id'))
          and a.attname in ('account_id', 'conversation_id', 'branch_id')
    loop
        execute format('alter table %1$s alter column %2$I set statistics 1, alter column %2$I set (n_distinct = 20)', key.rel, key.name);
    end loop;
    for key in select c.oid::regclass as rel from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') loop
        execute format('analyze %s', key.rel); -- update the statistics at once
    end loop;
end $$;

-- The queue, including the items that were started, in the order of its pages.
drop index follow_ups_queue;
create index follow_ups_queue on follow_ups (account_id, conversation_id, position, follow_up_id);
