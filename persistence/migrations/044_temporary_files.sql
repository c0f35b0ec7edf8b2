-- A file that was uploaded for a temporary conversation ends with it.
set local row_security = on; -- policies are meant

-- The purpose of the upload; null for a file from before, which stays. uploaded_for is the conversation that the upload
-- named, or else the first one with a message that has the file.
alter table files add column purpose text check (purpose in ('attachment', 'project', 'library')), add column uploaded_for uuid;
create index files_of_conversation on files (account_id, uploaded_for) where uploaded_for is not null and deleted_at is null;
create index conversations_draft_files on conversations (account_id) where draft_attachments <> '{}';

create or replace function add_message_files() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into message_files (account_id, file_id, message_id)
    select new.account_id, f.file_id, new.message_id from files f where f.account_id = new.account_id and f.file_id = any (new.attachments);
    update files set uploaded_for = new.conversation_id
    where account_id = new.account_id and file_id = any (new.attachments) and purpose = 'attachment' and uploaded_for is null;
    return null;
end
$$;
