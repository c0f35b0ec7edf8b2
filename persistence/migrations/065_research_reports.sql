-- The task of a report is found by the message or the artifact that is the report. They are columns, because row-level security
-- keeps an index of an expression from being used.
alter table research_tasks
    add column message_id text generated always as (body ->> 'message_id') stored,
    add column artifact_id text generated always as (body ->> 'artifact_id') stored;
create index research_messages on research_tasks (account_id, message_id) where message_id is not null;
create index research_artifacts on research_tasks (account_id, artifact_id) where artifact_id is not null;
