-- What a release of an instance was given, so that a rollback returns to all of it and not to the image alone.
alter table app_instance_releases
    -- With the defaults that the version's schema fills in.
    add column config    jsonb not null default '{}',
    -- `gpu_count`, `cpu_cores`, `memory_gib` and `host_port` as the server decided them.
    add column resources jsonb not null default '{}',
    -- Name of the port to the port on the node, once it was launched.
    add column ports     jsonb not null default '{}';

-- An identity and the permission to pull are held too, and given back.
alter table resource_ledger drop constraint resource_ledger_kind_check;
alter table resource_ledger add constraint resource_ledger_kind_check check (kind in
    ('gpu', 'cpu_core', 'memory_gib', 'port', 'workload', 'service_account', 'pull_intent'));

-- Which workload of an instance a key was given to, so that it ends with that one and no sooner.
alter table service_account_keys add column generation bigint;
