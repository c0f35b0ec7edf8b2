-- Counts the changes of a branch's name.
alter table branches add column version bigint not null default 1;
