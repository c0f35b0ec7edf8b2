-- Approvals of tool calls. The log of a turn is their source: its records of the kinds approval and decision come first, and this
-- table is what lists and the grants of a conversation are read from.
set local row_security = on; -- policies are meant

alter table turn_records drop constraint turn_records_kind_check;
alter table turn_records add constraint turn_records_kind_check
    check (kind in ('step', 'steering', 'cancel', 'withdraw', 'apply', 'approval', 'decision', 'result'));

-- A turn that waits for an approval has no owner until the approval is decided or this time has passed. With an owner the column
-- means nothing: a node of the previous version may claim such a turn, and does not know it.
alter table turns add column parked_until timestamptz;

create table approvals (
    account_id      uuid not null,
    approval_id     uuid not null,
    turn_id         uuid not null,
    conversation_id uuid not null,
    body            json not null,                     -- a protocol.Approval without the decision
    tool_name       text not null,
    resource        text not null,
    definition      text not null,                     -- digest of the definition of the tool
    created_at      timestamptz not null,
    expires_at      timestamptz not null,
    decision        text check (decision in ('approve_once', 'approve_for_conversation', 'approve_with_edits', 'reject', 'expired', 'cancelled')),
    decided_at      timestamptz,
    primary key (account_id, approval_id),
    foreign key (account_id, turn_id) references turns on delete cascade,
    check ((decision is null) = (decided_at is null))
) with (fillfactor = 90);
create index approvals_turn on approvals (account_id, turn_id);
create index approvals_pending on approvals (account_id, approval_id) where decision is null;
create index approvals_conversation on approvals (account_id, conversation_id, approval_id) where decision is null;
create index approvals_granted on approvals (account_id, conversation_id) where decision = 'approve_for_conversation';

do $$
begin
    alter table approvals enable row level security;
    alter table approvals force row level security;
    create policy own on approvals
        using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
        with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
    grant select, insert, update, delete on approvals to turnstone_app;
    create policy engine on approvals to turnstone_engine using (true) with check (true);
    grant select, insert, update on approvals to turnstone_engine;
    -- See migration 016.
    alter table approvals alter column account_id set statistics 1, alter column account_id set (n_distinct = 20);
    analyze approvals;
    alter table approvals alter column conversation_id set statistics 1, alter column conversation_id set (n_distinct = 20);
end
$$;

create function store_approval() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
declare
    asked json;
begin
    if new.kind = 'decision' then
        update approvals set decision = new.body ->> 'decision', decided_at = (new.body ->> 'at')::timestamptz
        where account_id = new.account_id and approval_id = (new.body ->> 'id')::uuid and decision is null;
        return null;
    end if;
    asked := new.body -> 'approval';
    insert into approvals (account_id, approval_id, turn_id, conversation_id, body, tool_name, resource, definition, created_at, expires_at)
    select new.account_id, (new.body ->> 'id')::uuid, new.turn_id, t.conversation_id, asked, asked ->> 'tool_name', asked -> 'scope' ->> 'resource',
        new.body ->> 'definition', (asked ->> 'created_at')::timestamptz, (asked ->> 'expires_at')::timestamptz
    from turns t where t.account_id = new.account_id and t.turn_id = new.turn_id;
    return null;
end
$$;
revoke execute on function store_approval() from public;
grant execute on function store_approval() to turnstone_app, turnstone_engine;
create trigger turn_records_approval after insert on turn_records for each row
    when (new.kind in ('approval', 'decision')) execute function store_approval();

select feed_attach('approvals', 'approval', 'ap', id => 'new.approval_id', conversation => 'new.conversation_id',
    state => $$case when new.decision is null then 'pending' when new.decision in ('expired', 'cancelled') then new.decision
        when new.decision = 'reject' then 'rejected' else 'approved' end$$,
    on_update => 'old.decision is distinct from new.decision');

-- The tools that the turn of a follow-up may use, a protocol.ToolChoice. Null: all.
alter table follow_ups add column tools jsonb;
