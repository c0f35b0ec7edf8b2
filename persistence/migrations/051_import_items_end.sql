-- What has become of an import is forgotten with the project or the file, whichever node deletes it.
set local row_security = on; -- policies are meant

create index import_items_item on import_items (account_id, item_id) where item_id is not null;

-- The argument is the kind of the item.
create function forget_import_item() returns trigger
    language plpgsql set search_path = pg_catalog, public, pg_temp
as $$
begin
    delete from import_items where account_id = old.account_id and item_id = (to_jsonb(old) ->> (tg_argv[0] || '_id'))::uuid and kind = tg_argv[0];
    return null;
end
$$;
revoke execute on function forget_import_item() from public;
create trigger files_forget_import after delete on files for each row execute function forget_import_item('file');
create trigger projects_forget_import after delete on projects for each row execute function forget_import_item('project');
