-- A program that was built before the newest migration may use the schema if it knows this version, so that nodes of two versions
-- run side by side and an update can be taken back. A migration with which earlier programs cannot work raises it to its own
-- version. Programs that know only versions before 40 refuse every newer schema when they start.
alter table schema_version add column oldest_supported int not null default 40;
