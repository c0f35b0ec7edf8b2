-- Texts are cut into more words (names with signs, parts of names, emoji) and compared in fewer forms, so all of them are indexed
-- again, after those that change. Until then, each is found by its former words.
alter table search_backfill drop constraint search_backfill_kind_check;
alter table search_backfill add constraint search_backfill_kind_check check (kind in ('conversation', 'message', 'file', 'artifact', 'task'));
insert into search_backfill
select kind, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'
from unnest(array['conversation', 'message', 'file', 'artifact', 'task']) kind
on conflict (kind) do update set after_account = excluded.after_account, after_id = excluded.after_id;
