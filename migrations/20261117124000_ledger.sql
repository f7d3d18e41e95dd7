-- What usage costs. Prices have versions that never change; what each window was last charged is kept beside its usage; the
-- ledger holds every charge and every correction of one, and only grows.

create table prices (
    id             uuid primary key,
    -- Counts the versions of prices for the same thing.
    version        integer     not null check (version > 0),
    usage_source   text        not null check (usage_source in ('allocation', 'app_runtime')),
    usage_unit     text        not null check (usage_unit ~ '^[a-z][a-z0-9_]{0,62}$'),
    -- Only for this app, or only for allocations of this kind.
    app_slug       text,
    sku            text,
    -- Every second of an allocation is paid for once: an app's price never covers capacity.
    covers         text        not null check (covers = case usage_source when 'allocation' then 'capacity' else 'service' end),
    rate           jsonb       not null,
    currency       text        not null check (currency ~ '^[A-Z]{3}$'),
    effective_from timestamptz not null,
    created_by     uuid        not null,
    created_at     timestamptz not null default engine.now(),
    unique nulls not distinct (usage_source, usage_unit, app_slug, sku, version)
);
create trigger prices_only_grow before update or delete or truncate on prices
    for each statement execute function refuse_change_of_history();

-- The sum of a window's records, and what was last charged for it.
create table usage_windows (
    org_id          uuid        not null,
    project_id      uuid        not null,
    window_start    timestamptz not null,
    window_end      timestamptz not null,
    usage_source    text        not null,
    usage_unit      text        not null,
    app_instance_id uuid,
    allocation_id   uuid,
    app_slug        text,
    quantity        bigint      not null check (quantity > 0),
    price_id        uuid        references prices,
    amount_minor    bigint      not null default 0,
    -- Its charge in the ledger, if it made a difference.
    entry_seq       bigint,
    unique nulls not distinct (project_id, window_start, window_end, usage_source, usage_unit, app_instance_id, allocation_id),
    check ((amount_minor <> 0) = (entry_seq is not null)),
    check (price_id is not null or amount_minor = 0)
);

-- The same by the hour, so that a year of it can be read at once.
create table usage_hours (
    project_id      uuid        not null,
    hour            timestamptz not null,
    usage_source    text        not null,
    usage_unit      text        not null,
    app_instance_id uuid,
    allocation_id   uuid,
    app_slug        text,
    quantity        bigint      not null,
    -- How much of it has no price.
    unpriced        bigint      not null,
    amount_minor    bigint      not null,
    unique nulls not distinct (project_id, hour, usage_source, usage_unit, app_instance_id, allocation_id, app_slug)
);

-- What a month of one thing under one price comes to: `amount_minor` is always the price of `quantity`, rounded once.
create table rated_series (
    project_id      uuid   not null,
    month           date   not null,
    usage_source    text   not null,
    usage_unit      text   not null,
    app_instance_id uuid,
    allocation_id   uuid,
    price_id        uuid   not null references prices,
    quantity        bigint not null check (quantity >= 0),
    amount_minor    bigint not null,
    unique nulls not distinct (project_id, month, usage_source, usage_unit, app_instance_id, allocation_id, price_id)
);

create table ledger_entries (
    org_id          uuid        not null,
    project_id      uuid        not null,
    seq             bigint      not null check (seq > 0),
    kind            text        not null check (kind in ('charge', 'reversal', 'adjustment', 'credit')),
    amount_minor    bigint      not null check (amount_minor <> 0),
    currency        text        not null,
    window_start    timestamptz,
    window_end      timestamptz,
    usage_source    text,
    usage_unit      text,
    app_instance_id uuid,
    allocation_id   uuid,
    quantity        bigint,
    price_id        uuid        references prices,
    price_version   integer,
    reverses        bigint,
    correlation_id  text        not null,
    posted_at       timestamptz not null,
    prev_hash       text        not null check (prev_hash ~ '^[0-9a-f]{64}$'),
    hash            text        not null check (hash ~ '^[0-9a-f]{64}$'),
    primary key (project_id, seq),
    foreign key (project_id, reverses) references ledger_entries (project_id, seq),
    -- A charge is taken back once.
    unique (project_id, reverses),
    check ((kind = 'reversal') = (reverses is not null)),
    check ((kind = 'credit') = (price_id is null))
);
create index ledger_entries_by_correlation on ledger_entries (correlation_id);
create trigger ledger_only_grows before update or delete or truncate on ledger_entries
    for each statement execute function refuse_change_of_history();

-- The end of each project's chain. The balance is the sum of its entries, kept here and proven every night.
create table ledger_heads (
    project_id    uuid primary key,
    org_id        uuid        not null,
    seq           bigint      not null default 0,
    hash          text        not null default '0000000000000000000000000000000000000000000000000000000000000000',
    balance_minor bigint      not null default 0,
    currency      text,
    -- Whether it was told that the balance is low; it is told again only after it was not.
    told_low      boolean     not null default false,
    -- The month for which it was told that the budget is spent.
    told_spent    date,
    updated_at    timestamptz not null default engine.now()
);

create table budgets (
    project_id   uuid primary key,
    org_id       uuid        not null,
    -- Without one there is no limit.
    amount_minor bigint      check (amount_minor between 0 and 1000000000000),
    action       text        not null check (action in ('warn', 'deny_new', 'stop')),
    -- While it is simulated, everything is told and nothing is done.
    mode         text        not null check (mode in ('simulate', 'enforce')),
    updated_by   uuid        not null,
    updated_at   timestamptz not null default engine.now()
);
