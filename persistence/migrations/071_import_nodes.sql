-- The node that runs an import. Once that node is dead, another one continues the import. Null: a program before this migration started the
-- run, which ends when it shows no activity.
alter table imports add column node_id uuid;
