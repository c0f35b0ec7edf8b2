-- What one account can make the service keep and repeat is bounded.

-- The runs of an import that ended with their processes. After the second one the import fails.
alter table imports add column lost_runs int not null default 0;

-- Rejected contents that are not deleted yet: malware stays in quarantine for days, and counts for the quota.
create index uploads_kept on uploads (account_id) include (size) where reap_at is not null and state = 'rejected';

-- An account can have a limited amount of text, and its files wait behind the first files of others.
alter table file_texts drop constraint file_texts_reason_check,
    add constraint file_texts_reason_check check (reason in ('encrypted', 'damaged', 'too_complex', 'no_reader', 'unreadable', 'text_limit'));
create index file_texts_pending on file_texts (account_id) where state = 'pending';
