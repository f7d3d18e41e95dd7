-- What instances say of themselves. Each workload, known by its generation, has a row as soon as it spoke or somebody waits
-- for it to speak; whoever comes second of the two finds the first.
create table app_instance_heartbeats (
    instance_id uuid        not null references app_instances,
    generation  bigint      not null,
    last_at     timestamptz,
    -- The run that waits for the first word, and the name under which it is told.
    run_id      uuid,
    signal      text,
    primary key (instance_id, generation),
    check ((run_id is null) = (signal is null))
);
create index app_instance_heartbeats_awaited on app_instance_heartbeats (run_id) where run_id is not null;
