-- Where a project wants its events sent. Secrets are sealed and bound to their row.

create table webhooks (
    id                        uuid primary key,
    org_id                    uuid        not null,
    project_id                uuid        not null,
    url                       text        not null check (length(url) <= 2000),
    description               text,
    -- Empty: every type.
    event_types               text[]      not null,
    status                    text        not null default 'active' check (status in ('active', 'disabled')),
    disabled_reason           text        check (disabled_reason in ('by_request', 'gone', 'failing')),
    secret                    text        not null,
    -- Signs too until then, so that receivers can change over.
    previous_secret           text,
    previous_secret_until     timestamptz,
    -- Events up to this number were taken up for delivery, or are not wanted.
    position                  bigint      not null check (position >= 0),
    -- Tries in a row that failed, since when, and how long nothing is sent because of it.
    failures                  integer     not null default 0,
    failing_since             timestamptz,
    rests_until               timestamptz,
    created_by                uuid        not null,
    created_at                timestamptz not null default engine.now(),
    updated_at                timestamptz not null default engine.now(),
    foreign key (project_id, org_id) references projects (id, org_id),
    check ((status = 'disabled') = (disabled_reason is not null)),
    check ((previous_secret is null) = (previous_secret_until is null))
);
create index webhooks_by_project on webhooks (project_id, id);

-- One event on its way to one webhook. A dead letter is one that failed for good.
create table webhook_deliveries (
    id              uuid primary key,
    webhook_id      uuid        not null references webhooks on delete cascade,
    event_id        uuid        not null,
    event_type      text        not null,
    seq             bigint      not null,
    status          text        not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
    attempts        integer     not null default 0,
    next_attempt_at timestamptz default engine.now(),
    -- Of the last try: what was answered, or why there was no answer.
    response_status integer,
    error           text,
    created_at      timestamptz not null default engine.now(),
    updated_at      timestamptz not null default engine.now(),
    delivered_at    timestamptz,
    unique (webhook_id, event_id),
    check ((status = 'pending') = (next_attempt_at is not null)),
    check ((status = 'delivered') = (delivered_at is not null))
);
create index webhook_deliveries_by_webhook on webhook_deliveries (webhook_id, id);
create index webhook_deliveries_due on webhook_deliveries (webhook_id, next_attempt_at) where status = 'pending';
