-- What instances hold of nodes, as a ledger: taking and giving back are rows, and the balance is what is held. An
-- instance ends only at balance zero.

create table resource_ledger (
    id             uuid primary key,
    org_id         uuid        not null,
    project_id     uuid        not null,
    instance_id    uuid        not null references app_instances,
    kind           text        not null check (kind in ('gpu', 'cpu_core', 'memory_gib', 'port', 'workload')),
    -- What it is taken from: `allocation:<id>` for amounts, `node:<id>:<port>` for a port, `node:<id>:g<n>` for a workload.
    resource       text        not null,
    quantity       integer     not null check (quantity <> 0),
    run_id         uuid        not null,
    correlation_id text        not null,
    at             timestamptz not null default engine.now(),
    foreign key (project_id, org_id) references projects (id, org_id)
);
create index resource_ledger_by_instance on resource_ledger (instance_id, id);
create index resource_ledger_by_resource on resource_ledger (resource, id);
create trigger resource_ledger_only_grows before update or delete or truncate on resource_ledger
    for each statement execute function refuse_change_of_history();

-- What was resolved for a version when it was deployed: how it runs, and what it was given. A rollback returns to it.
create table app_instance_releases (
    instance_id uuid   not null references app_instances,
    standing    text   not null check (standing in ('serving', 'target', 'previous')),
    version     text   not null,
    generation  bigint not null,
    -- The version's runtime profile.
    profile     jsonb  not null,
    primary key (instance_id, standing)
);

-- That an instance left nothing behind: signed by the platform, with the node's own signed evidence inside.
create table teardown_receipts (
    instance_id uuid primary key references app_instances,
    node_id     uuid        not null references nodes,
    -- `key_id`, `payload` and `signature`.
    receipt     jsonb       not null,
    created_at  timestamptz not null default engine.now()
);
create trigger teardown_receipts_only_grow before update or delete or truncate on teardown_receipts
    for each statement execute function refuse_change_of_history();

-- What a silent node still owes: the removal of an instance's workloads. Collected when the node answers.
create table teardown_debts (
    instance_id  uuid primary key references app_instances,
    node_id      uuid        not null references nodes,
    run_id       uuid        not null,
    created_at   timestamptz not null default engine.now(),
    collected_at timestamptz
);
create index teardown_debts_open on teardown_debts (node_id) where collected_at is null;
