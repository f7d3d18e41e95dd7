-- Machines, what of them is given to projects, and what runs there. A state moves only along the table of legal moves in
-- `domain`; the checks here keep the words, not the moves.

create table nodes (
    id                    uuid primary key,
    name                  text        not null unique check (is_slug(name)),
    status                text        not null default 'enrolling'
        check (status in ('enrolling', 'active', 'drained', 'unavailable')),
    -- Whether an administrator drained it: a lost node that returns comes back to where it was.
    drained               boolean     not null default false,
    -- The address under which the node's workloads are reached; the agent tells it.
    address               text,
    driver                text        check (driver in ('docker', 'simulated')),
    agent_version         text,
    -- Cores, memory, GPUs and accelerators, as the agent found them.
    inventory             jsonb,
    -- The digest of the one-time token; null once it was used.
    enrolment_hash        bytea       unique,
    enrolment_expires_at  timestamptz,
    -- The public half of the node's own key.
    key_id                text        unique,
    public_key            text,
    last_seen_at          timestamptz,
    -- The newest report and its number; a report with a lower number is older news.
    report_sequence       bigint      not null default 0,
    report                jsonb,
    created_by            uuid        not null,
    created_at            timestamptz not null default engine.now(),
    updated_at            timestamptz not null default engine.now(),
    enrolled_at           timestamptz,
    check ((key_id is null) = (public_key is null)),
    check ((enrolment_hash is null) = (enrolment_expires_at is null)),
    check (status = 'enrolling' or key_id is not null)
);
create index nodes_heard_of on nodes (last_seen_at) where status in ('active', 'drained');

-- Whoever holds the node's key is the node, so a change of it changes who may do what.
create trigger nodes_change_authority after update of key_id, public_key on nodes
    for each statement execute function authority_changed();

-- An assertion is good once; rows outlive the assertion they forbid and no longer.
create table used_node_assertions (
    node_id    uuid        not null references nodes,
    jti        text        not null,
    expires_at timestamptz not null,
    primary key (node_id, jti)
);
create index used_node_assertions_by_age on used_node_assertions (expires_at);

create table allocations (
    id             uuid primary key,
    org_id         uuid        not null,
    project_id     uuid        not null,
    node_id        uuid        not null references nodes,
    capacity_shape text        not null check (capacity_shape in ('baremetal', 'gpu_slice')),
    sku            text        not null,
    -- The kind of accelerator its GPUs are; null without GPUs.
    accelerator    text,
    gpu_count      integer     not null check (gpu_count between 0 and 64),
    cpu_cores      integer     not null check (cpu_cores between 1 and 4096),
    memory_gib     integer     not null check (memory_gib between 1 and 65536),
    status         text        not null check (status in
        ('requested', 'provisioning', 'active', 'releasing', 'released', 'failed', 'release_failed')),
    created_by     uuid        not null,
    correlation_id text        not null,
    created_at     timestamptz not null default engine.now(),
    updated_at     timestamptz not null default engine.now(),
    activated_at   timestamptz,
    released_at    timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id),
    unique (id, project_id)
);
create index allocations_by_project on allocations (project_id, id);
create index allocations_by_node on allocations (node_id, id) where status <> 'released';

create table app_instances (
    id                          uuid primary key,
    org_id                      uuid        not null,
    project_id                  uuid        not null,
    app_slug                    text        not null check (is_slug(app_slug)),
    -- The version that serves; it changes only at the switch. Before that, the one being deployed.
    version                     text        not null,
    -- Where an upgrade or rollback is going.
    target_version              text,
    -- Where a rollback goes unless told otherwise: the last good version before the present one.
    previous_version            text,
    display_name                text        not null,
    status                      text        not null default 'requested' check (status in ('requested', 'deploying',
        'running', 'upgrading', 'rolling_back', 'decommissioning', 'decommissioned', 'failed')),
    status_reason               text        check (status_reason in ('image_pull_failed', 'digest_mismatch',
        'readiness_timeout', 'node_unreachable', 'port_unavailable', 'insufficient_capacity', 'entitlement_revoked',
        'artifact_revoked', 'credential_missing', 'task_rejected', 'worker_lost', 'allocation_released', 'internal')),
    status_message              text,
    -- What a failed instance was doing, and so what a retry resumes.
    failed_during               text        check (failed_during in ('deploying', 'decommissioning')),
    -- Rises in the transaction that starts a lifecycle run. Nodes refuse tasks of lower generations.
    generation                  bigint      not null default 1 check (generation > 0),
    operating_mode              text        not null,
    control_plane_scope         text        not null,
    runtime_backend             text        not null,
    allocation_id               uuid,
    placement_intent            jsonb       not null,
    config                      jsonb       not null,
    -- `gpu_count`, `cpu_cores`, `memory_gib` and `host_port` as the server decided them.
    resources                   jsonb       not null,
    variant                     text,
    packages                    jsonb       not null default '[]',
    -- Class to id; the credentials themselves are elsewhere, sealed.
    credentials                 jsonb       not null default '{}',
    operator_service_account_id uuid        references service_accounts,
    -- Where the workload is reached: a list of `{name, address, port}`.
    endpoints                   jsonb       not null default '[]',
    last_operation              jsonb,
    correlation_id              text        not null,
    created_by                  uuid        not null,
    created_at                  timestamptz not null default engine.now(),
    updated_at                  timestamptz not null default engine.now(),
    activated_at                timestamptz,
    decommissioned_at           timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id),
    foreign key (allocation_id, project_id) references allocations (id, project_id),
    unique (id, project_id),
    check (status_reason is null or status_message is not null),
    check ((status = 'failed') = (failed_during is not null))
);
create index app_instances_by_project on app_instances (project_id, id);
create index app_instances_by_version on app_instances (app_slug, version) where status <> 'decommissioned';
create index app_instances_by_target on app_instances (app_slug, target_version)
    where status <> 'decommissioned' and target_version is not null;
create index app_instances_by_previous on app_instances (app_slug, previous_version)
    where status <> 'decommissioned' and previous_version is not null;
create index app_instances_by_allocation on app_instances (allocation_id) where status <> 'decommissioned';

-- The digests an instance runs, is moving to, or may return to. Rows go when the instance is decommissioned, so that a
-- row means a use.
create table app_instance_artifacts (
    instance_id uuid not null references app_instances,
    standing    text not null check (standing in ('serving', 'target', 'previous')),
    name        text not null,
    artifact_id uuid not null,
    digest      text not null check (digest ~ '^sha256:[0-9a-f]{64}$'),
    repository  text not null,
    primary key (instance_id, standing, name)
);
create index app_instance_artifacts_by_artifact on app_instance_artifacts (artifact_id);

-- What nodes are asked to do. A task is signed each time it is handed out, so waiting does not expire it.
create table node_tasks (
    id               uuid primary key,
    node_id          uuid        not null references nodes,
    org_id           uuid,
    project_id       uuid,
    instance_id      uuid        references app_instances,
    kind             text        not null,
    -- The same for every try of one step, and so one task however often the step repeats.
    idempotency_key  text        not null unique,
    -- The fence: a node refuses a lower generation, and within one key a lower epoch.
    generation       bigint      not null,
    epoch            bigint      not null,
    -- The run that waits, and the name under which it is told the result.
    run_id           uuid,
    signal           text,
    input            jsonb       not null,
    -- What must not be readable at rest, bound to this row.
    sealed           text,
    status           text        not null default 'queued'
        check (status in ('queued', 'handed_out', 'succeeded', 'failed', 'refused', 'withdrawn')),
    lease_expires_at timestamptz,
    handed_out       integer     not null default 0,
    progress         jsonb,
    result           jsonb,
    correlation_id   text        not null,
    trace_id         text,
    created_at       timestamptz not null default engine.now(),
    updated_at       timestamptz not null default engine.now(),
    finished_at      timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id),
    check ((run_id is null) = (signal is null)),
    check ((status = 'handed_out') = (lease_expires_at is not null)),
    check ((status in ('succeeded', 'failed', 'refused', 'withdrawn')) = (finished_at is not null))
);
create index node_tasks_open on node_tasks (node_id, id) where finished_at is null;
create index node_tasks_by_instance on node_tasks (instance_id, id);
create index node_tasks_by_run on node_tasks (run_id);
create index node_tasks_by_correlation on node_tasks (correlation_id);
