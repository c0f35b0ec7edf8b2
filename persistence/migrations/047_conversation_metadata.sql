-- The list of conversations is filtered by their metadata. Row-level security keeps the operators of jsonb from using an
-- index, so each entry of the metadata has a row, which a trigger maintains: nodes of the previous version need not know it.

create function metadata_entry(key text, value text) returns uuid
    language sql immutable strict parallel safe
    return md5(octet_length(key) || ':' || key || value)::uuid;

create table conversation_metadata (
    account_id      uuid not null,
    entry           uuid not null,                      -- metadata_entry of the key and the value
    conversation_id uuid not null,
    primary key (account_id, entry, conversation_id),
    foreign key (account_id, conversation_id) references conversations on delete cascade
);
create index conversation_metadata_of on conversation_metadata (account_id, conversation_id);

create function store_metadata() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    if tg_op = 'UPDATE' then
        delete from conversation_metadata where account_id = new.account_id and conversation_id = new.conversation_id;
    end if;
    insert into conversation_metadata (account_id, entry, conversation_id)
    select new.account_id, metadata_entry(e.key, e.value), new.conversation_id from jsonb_each_text(new.metadata) e;
    return null;
end
$$;
revoke execute on function store_metadata() from public;
create trigger metadata_added after insert on conversations for each row
    when (new.metadata <> '{}') execute function store_metadata();
create trigger metadata_changed after update of metadata on conversations for each row
    when (new.metadata is distinct from old.metadata) execute function store_metadata();

-- The conversations from before. FORCE would bind the owner, who here reads the rows of all accounts. Until the end, no other session
-- reads or writes conversations: its statements fail at their lock timeout.
alter table conversations no force row level security;
insert into conversation_metadata (account_id, entry, conversation_id)
select c.account_id, metadata_entry(e.key, e.value), c.conversation_id
from conversations c cross join lateral jsonb_each_text(c.metadata) e
where c.metadata <> '{}';
alter table conversations force row level security;

alter table conversation_metadata enable row level security;
alter table conversation_metadata force row level security;
create policy own on conversation_metadata
    using (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid)
    with check (account_id = nullif(current_setting('turnstone.account_id', true), '')::uuid);
grant select, insert, delete on conversation_metadata to turnstone_app;
-- See migration 016.
alter table conversation_metadata alter column account_id set statistics 1, alter column account_id set (n_distinct = 20);
analyze conversation_metadata;
