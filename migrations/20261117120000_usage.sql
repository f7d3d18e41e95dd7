-- What was used: every accepted report once, as it was told, by whoever counts it. Rows are never changed: what they cost
-- is worked out from them elsewhere, as often as needed.

create table usage_records (
    id                      uuid        not null,
    org_id                  uuid        not null,
    project_id              uuid        not null,
    app_instance_id         uuid,
    allocation_id           uuid,
    app_slug                text,
    usage_source            text        not null check (usage_source in ('allocation', 'app_runtime')),
    usage_unit              text        not null check (usage_unit ~ '^[a-z][a-z0-9_]{0,62}$'),
    quantity                bigint      not null check (quantity between 1 and 1000000000000),
    occurred_at             timestamptz not null,
    -- The billing window it belongs to, by the width that held when it was told.
    window_start            timestamptz not null,
    window_end              timestamptz not null,
    operating_mode          text,
    control_plane_scope     text,
    runtime_backend         text,
    control_plane_component text,
    correlation_id          text        not null check (length(correlation_id) between 1 and 128),
    reference_id            text,
    metadata                jsonb       not null default '{}',
    -- Whoever told it, and their own name for it: the same pair again is the same report.
    source                  text        not null,
    event_id                text        not null,
    recorded_at             timestamptz not null default engine.now(),
    primary key (project_id, id),
    unique (project_id, source, event_id),
    check (window_start <= occurred_at and occurred_at < window_end),
    check (usage_source <> 'app_runtime' or app_instance_id is not null),
    check (usage_source <> 'allocation' or allocation_id is not null)
);
create index usage_records_by_window on usage_records (project_id, window_start);
create index usage_records_by_correlation on usage_records (correlation_id);
create trigger usage_records_only_grow before update or delete or truncate on usage_records
    for each statement execute function refuse_change_of_history();

-- Windows that hold usage nobody has rated yet. Whoever writes usage touches the row, and whoever rates the window takes the
-- row away first: each waits for the other, so no record is overlooked.
create table open_windows (
    project_id   uuid        not null,
    window_start timestamptz not null,
    window_end   timestamptz not null,
    touched      bigint      not null default 1,
    primary key (project_id, window_start, window_end)
);
create index open_windows_by_end on open_windows (window_end);

-- What the platform counts itself: seconds of running instances and of allocations, by the database's clock.
create table meters (
    -- The instance or the allocation.
    subject_id     uuid primary key,
    kind           text        not null check (kind in ('instance', 'allocation')),
    org_id         uuid        not null,
    project_id     uuid        not null,
    -- Everything before is settled: counted, or known not to count. It only moves on, in whole seconds.
    metered_until  timestamptz not null,
    -- Whether it ran when it was last looked at.
    running        boolean     not null,
    -- What was counted of the present window and is no record yet.
    pending_from   timestamptz,
    seconds        bigint      not null default 0,
    gpu_seconds    bigint      not null default 0,
    correlation_id text        not null,
    opened_at      timestamptz not null default engine.now(),
    closed_at      timestamptz,
    check ((pending_from is null) = (seconds = 0))
);
create index meters_open on meters (kind, subject_id) where closed_at is null;

-- An instance's identity may tell of its own instance alone, so the instance is looked up by it.
create index app_instances_by_account on app_instances (operator_service_account_id)
    where operator_service_account_id is not null;
