-- How auto chose the profile of an answer, so that the notice survives a reload: {requested, resolved, reason}. Null: the
-- user chose the profile, or the answer is older than this column.
alter table messages add column routing jsonb;

-- The first words of a conversation, its title until the service or the user sets one.
alter table conversations add column provisional_title text not null default '' check (char_length(provisional_title) <= 200);

-- An input that the user wanted to be applied at once leaves a record, so that its receipt can be read again.
alter table turn_records drop constraint turn_records_kind_check;
alter table turn_records add constraint turn_records_kind_check check (kind in ('step', 'steering', 'cancel', 'withdraw', 'apply'));
