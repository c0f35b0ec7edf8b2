-- A place for another change, which is made at the same time.
select 1;
