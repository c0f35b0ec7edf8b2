-- The schema of Turnstone. Run by the owner role; the service itself runs as turnstone_app (requests, one account at a
-- time, under row-level security) and turnstone_engine (journal, leases, sweeps: across accounts, on few tables).
-- Every owned table has account_id first in its key, so that another account's identifier cannot even be stored.

create table accounts (
    account_id    uuid primary key,
    email         text not null,                       -- as typed, for display
    email_key     text not null unique,                -- normalised, for look-ups
    display_name  text not null,
    password_hash text,                                -- argon2id; null: signs in by a provider only
    disabled_at   timestamptz,
    created_at    timestamptz not null default now()
);

-- Identities at OpenID providers. Looked up before anybody is signed in: no row-level security.
create table account_identities (
    issuer     text not null,
    subject    text not null,
    account_id uuid not null references accounts on delete cascade,
    created_at timestamptz not null default now(),
    primary key (issuer, subject)
);
create index account_identities_account on account_identities (account_id);

-- Keyed by the HMAC of the token; looked up before anybody is known: no row-level security.
create table sessions (
    token_hash       bytea primary key,
    key_version      smallint not null default 1,
    session_id       uuid not null,
    account_id       uuid not null references accounts on delete cascade,
    user_agent       text not null default '',
    created_at       timestamptz not null default now(),
    last_used_at     timestamptz not null default now(),
    expires_at       timestamptz not null,             -- absolute end
    rotated_at       timestamptz not null default now(),
    successor_hash   bytea,                            -- the token that replaced this one
    successor_used_at timestamptz,                     -- from when the old one has 60 s left
    revoked_at       timestamptz,
    reauthenticated_at timestamptz
);
create index sessions_account on sessions (account_id, session_id);
create index sessions_expiry on sessions (expires_at);

-- One sign-in at a provider under way; single use, ten minutes, bound to the browser.
create table oidc_flows (
    state_hash   bytea primary key,
    browser_hash bytea not null,
    provider     text not null,
    verifier     text not null,
    nonce        text not null,
    link_account uuid,                                 -- a signed-in account links another identity
    return_to    text not null default '/',
    expires_at   timestamptz not null
);

create table account_settings (
    account_id uuid primary key references accounts on delete cascade,
    settings   jsonb not null,
    version    bigint not null default 1,
    updated_at timestamptz not null default now()
);

create table audit (
    account_id uuid not null,                          -- all zero where nobody is known
    n          bigint not null,
    at         timestamptz not null default now(),
    event      text not null,
    session_id uuid,
    request_id text not null default '',
    address    text not null default '',               -- prefix only
    detail     jsonb not null default '{}',            -- identifiers and counts, never content
    previous   bytea not null,
    hash       bytea not null,
    primary key (account_id, n)
);

-- The end of every account's chain: what the next entry hashes, and what shows that entries were cut off.
create table audit_heads (
    account_id uuid primary key,
    n          bigint not null,
    hash       bytea not null
);

create table idempotency (
    account_id  uuid not null references accounts on delete cascade,
    method      text not null,
    path        text not null,
    key         text not null,
    body_hash   bytea not null,
    status      smallint,                              -- null while the first request works
    headers     jsonb,
    body        bytea,
    resource_id uuid,                                  -- POST /chat: the turn
    created_at  timestamptz not null default now(),   -- also names the claim: a taken-over one has another
    primary key (account_id, method, path, key)
);
create index idempotency_age on idempotency (created_at);

create table conversations (
    account_id       uuid not null references accounts on delete cascade,
    conversation_id  uuid not null,
    title            text not null default '' check (char_length(title) <= 200),
    title_source     text not null default 'auto' check (title_source in ('auto', 'user')),
    profile          text check (profile in ('auto', 'balanced', 'deep_reasoning', 'coding')),
    metadata         jsonb not null default '{}',
    project_id       uuid,
    temporary        boolean not null default false,
    pinned_at        timestamptz,
    archived_at      timestamptz,
    active_branch_id uuid not null,
    live_turn_id     uuid,
    message_count    int not null default 0,               -- of all branches
    read_message_id  uuid,                                 -- the newest message that the account has seen; never goes back
    read_at          timestamptz,
    queue_version    bigint not null default 1,
    draft            text not null default '',
    draft_attachments uuid[] not null default '{}',
    draft_version    bigint not null default 0,
    draft_updated_at timestamptz,
    version          bigint not null default 1,            -- counts title, profile, metadata, project, pin, archive, active branch
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),   -- moves with version
    last_activity_at timestamptz not null default now(),   -- moves when a message comes or a turn ends, and with nothing else
    deleted_at       timestamptz,                          -- the row stays, blanked: its identifier was used
    primary key (account_id, conversation_id)
) with (fillfactor = 75);
create index conversations_list on conversations
    (account_id, (pinned_at is not null) desc, last_activity_at desc, conversation_id desc) where deleted_at is null;

-- A branch is a path through the tree of messages. Its segments say which depths of which branch it shows, so a page of
-- any branch is read by key, without recursion. Depths count from 1 without a gap, and the segments of a branch cover
-- all of them once: those it shares with the branch it came from, and its own, open-ended one from the depth after its
-- base. head_message_id and head_depth name the last message, one that still streams included.
create table branches (
    account_id      uuid not null,
    branch_id       uuid not null,
    conversation_id uuid not null,
    name            text not null default '' check (char_length(name) <= 200),
    base_message_id uuid,
    head_message_id uuid,
    head_depth      int not null default 0,             -- depth of the head; 0: empty
    created_at      timestamptz not null default now(),
    primary key (account_id, branch_id),
    unique (account_id, conversation_id, branch_id),
    foreign key (account_id, conversation_id) references conversations on delete cascade
) with (fillfactor = 75);

create table branch_segments (
    account_id        uuid not null,
    branch_id         uuid not null,
    source_branch_id  uuid not null,
    from_depth        int not null,                     -- inclusive
    to_depth          int not null,                     -- inclusive; 2147483647 for the branch's own, open end
    primary key (account_id, branch_id, from_depth),
    foreign key (account_id, branch_id) references branches on delete cascade
);

create table messages (
    account_id        uuid not null,
    message_id        uuid not null,
    conversation_id   uuid not null,
    branch_id         uuid not null,                    -- where it was written
    depth             int not null check (depth >= 1),
    parent_message_id uuid,
    role              text not null check (role in ('user', 'assistant')),
    status            text not null check (status in ('complete', 'streaming', 'cancelled', 'failed', 'incomplete')),
    parts             json not null,
    attachments       uuid[] not null default '{}',
    turn_id           uuid,
    profile           text,
    model_id          text,
    usage             jsonb,
    created_at        timestamptz not null default now(),
    primary key (account_id, message_id),
    unique (account_id, branch_id, depth),
    foreign key (account_id, conversation_id, branch_id) references branches (account_id, conversation_id, branch_id) on delete cascade
) with (fillfactor = 80);
create index messages_siblings on messages (account_id, conversation_id, parent_message_id, message_id);
-- The newest answer of a conversation (is it unread?), and what a purge erases.
create index messages_conversation on messages (account_id, conversation_id, message_id);

create table follow_ups (
    account_id      uuid not null,
    follow_up_id    uuid not null,
    conversation_id uuid not null,
    state           text not null check (state in ('queued', 'held', 'started', 'cancelled')),
    content         text not null,
    attachments     uuid[] not null default '{}',
    profile         text,
    position        bigint not null,
    version         bigint not null default 1,
    turn_id         uuid,
    source          text not null default 'user' check (source in ('user', 'steering')),
    created_at      timestamptz not null default now(),
    primary key (account_id, follow_up_id),
    foreign key (account_id, conversation_id) references conversations on delete cascade
);
create index follow_ups_queue on follow_ups (account_id, conversation_id, position);
create index follow_ups_standing on follow_ups (created_at) where state = 'queued';

create table nodes (
    node_id    uuid primary key,
    address    text not null,                          -- where peers reach it; empty on a single node
    renewals   bigint not null default 0,
    dead       boolean not null default false,
    draining   boolean not null default false,
    started_at timestamptz not null default now()
) with (fillfactor = 50);

create table turns (
    account_id           uuid not null,
    turn_id              uuid not null,
    conversation_id      uuid not null,
    branch_id            uuid not null,
    user_message_id      uuid not null,
    assistant_message_id uuid not null,
    follow_up_id         uuid,
    spec                 json not null,                 -- protocol.TurnSpec
    state                text not null check (state in ('queued', 'running', 'requires_action', 'recovering', 'cancelling',
                                                        'completed', 'cancelled', 'failed', 'incomplete')),
    terminal             boolean generated always as (state in ('completed', 'cancelled', 'failed', 'incomplete')) stored,
    accepting            boolean not null,
    owner                uuid,
    owner_epoch          int not null default 1,
    adoptions            int not null default 0,
    next_sequence        bigint not null,
    stop_reason          text,
    usage                jsonb,
    error                jsonb,
    created_at           timestamptz not null default now(),
    finished_at          timestamptz,
    primary key (account_id, turn_id),
    unique (account_id, follow_up_id),
    check (not accepting or state in ('queued', 'running', 'requires_action', 'recovering')),
    foreign key (account_id, conversation_id) references conversations on delete cascade
) with (fillfactor = 70, toast_tuple_target = 512);
-- Out of the row, which every append copies.
alter table turns alter column spec set storage external;
create index turns_conversation on turns (account_id, conversation_id, turn_id);
create index turns_live on turns (owner) where state not in ('completed', 'cancelled', 'failed', 'incomplete');
create index turns_live_account on turns (account_id) where state not in ('completed', 'cancelled', 'failed', 'incomplete');

-- The log of live turns: one row an append. Turn identifiers sort by time, so a day's turns share a partition, which is
-- dropped once all of them have ended and were folded into turn_replays.
create table turn_events (
    account_id     uuid not null,
    turn_id        uuid not null,
    first_sequence bigint not null,
    last_sequence  bigint not null,
    epoch          int not null,
    frames         bytea not null,                      -- events, one JSON object a line
    primary key (account_id, turn_id, first_sequence),
    check (last_sequence >= first_sequence)
) partition by range (turn_id);
create table turn_events_default partition of turn_events default;

create table turn_records (
    account_id uuid not null,
    turn_id    uuid not null,
    kind       text not null check (kind in ('step', 'steering', 'cancel')),
    key        text not null,
    sequence   bigint not null,
    body       json not null,
    primary key (account_id, turn_id, kind, key),
    foreign key (account_id, turn_id) references turns on delete cascade
);

-- A finished turn's whole log, the same bytes, compressed.
create table turn_replays (
    account_id    uuid not null,
    turn_id       uuid not null,
    last_sequence bigint not null,
    raw_bytes     int not null,
    frames        bytea not null,                       -- DEFLATE
    primary key (account_id, turn_id),
    foreign key (account_id, turn_id) references turns on delete cascade
);
alter table turn_replays alter column frames set storage external;

create table usage_records (
    account_id      uuid not null references accounts on delete cascade,
    usage_id        uuid not null,
    source          text not null check (source in ('server', 'client')),
    kind            text not null,
    quantity        double precision not null check (quantity > 0),
    unit            text not null,
    conversation_id uuid,                               -- kept when the conversation is gone
    turn_id         uuid,
    profile         text,
    model_id        text,
    usage           jsonb,
    occurred_at     timestamptz not null default now(),
    primary key (account_id, usage_id)
);
create index usage_records_time on usage_records (account_id, occurred_at);
create index usage_records_conversation on usage_records (account_id, conversation_id, occurred_at);
create unique index usage_records_turn on usage_records (account_id, turn_id) where source = 'server';
