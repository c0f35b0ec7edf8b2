-- Accounts are of unequal size. From the average one Postgres concludes that an account has a row or two in each table and
-- a conversation two messages; then any index will do, and for the largest accounts it chose ones that lead to all their
-- rows. The plans are to be made for large accounts, and cost small ones nothing: hence few distinct values, whatever a
-- sample says, and no list of common ones, by which Postgres would bound them. See docs/adr/0014.
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
        execute format('analyze %s', key.rel); -- the statistics follow at once
    end loop;
end $$;

-- A queue with all that it has started, in the order of its pages.
drop index follow_ups_queue;
create index follow_ups_queue on follow_ups (account_id, conversation_id, position, follow_up_id);
