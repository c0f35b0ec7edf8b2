-- The entry of a decision in the audit names the session that has made it. A record of the previous release has none.
create or replace function audit_approval() returns trigger
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
    perform audit_append(new.account_id, happened, (new.body ->> 'session')::uuid, '', '', jsonb_strip_nulls(detail));
    return null;
end
$$;
