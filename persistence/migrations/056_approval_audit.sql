-- Requests for approvals, the decisions of the user, and the calls that run under them are in the audit of the account. They are
-- stored with the records of the turn, in the same statement. Records of several accounts are inserted in the order of the
-- accounts, so that two nodes do not wait for each other's chains.
alter table turn_records drop constraint turn_records_kind_check;
alter table turn_records add constraint turn_records_kind_check
    check (kind in ('step', 'steering', 'cancel', 'withdraw', 'apply', 'approval', 'decision', 'use', 'result'));

create function audit_approval() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
declare
    happened text := case new.kind
        when 'approval' then 'approval.requested'
        when 'use' then 'approval.used'
        else case when new.body ->> 'decision' = 'reject' then 'approval.rejected' else 'approval.approved' end end;
    detail jsonb := case new.kind
        when 'use' then jsonb_build_object('tool_id', new.key, 'approval_id', new.body ->> 'approval_id')
        when 'approval' then jsonb_build_object('approval_id', new.key, 'tool_id', new.body -> 'approval' ->> 'tool_id')
        else jsonb_build_object('approval_id', new.key, 'decision', new.body ->> 'decision') end;
begin
    perform audit_append(new.account_id, happened, null, '', '', jsonb_strip_nulls(detail));
    return null;
end
$$;
revoke execute on function audit_approval() from public;
grant execute on function audit_approval() to turnstone_app, turnstone_engine;
create trigger turn_records_audit after insert on turn_records for each row
    when (new.kind in ('approval', 'use') or new.kind = 'decision' and new.body ->> 'by' = 'user') execute function audit_approval();
