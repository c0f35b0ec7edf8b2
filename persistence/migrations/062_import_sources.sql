-- Exports of more services, and conversations that have grown since their first import.
set local row_security = on; -- policies are meant

alter table imports
    drop constraint imports_source_check,
    add constraint imports_source_check check (source in ('turnstone', 'chatgpt', 'claude', 'openwebui', 'librechat', 'deepseek', 'gemini')),
    add column updated bigint not null default 0; -- conversations that got new messages
