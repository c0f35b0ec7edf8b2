-- An input that was taken back leaves a record, so that its receipt can be read again after the turn has ended.
alter table turn_records drop constraint turn_records_kind_check;
alter table turn_records add constraint turn_records_kind_check check (kind in ('step', 'steering', 'cancel', 'withdraw'));
