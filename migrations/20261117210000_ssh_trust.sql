-- Who may log in to a node to set an instance up: the public half of a key in custody, for as long as the instance stands there.
alter table access_credentials
    add column public_key text,
    add check (public_key is null or (kind = 'ssh_key' and revoked_at is null));

create table ssh_trusts (
    instance_id   uuid primary key references app_instances,
    node_id       uuid not null references nodes,
    credential_id uuid not null references access_credentials
);
create index ssh_trusts_by_node on ssh_trusts (node_id);
create index ssh_trusts_by_credential on ssh_trusts (credential_id);

-- Every set of keys that a node is given has a higher number than the one before, whoever asks for it: the node refuses older ones.
create sequence ssh_trust_number as bigint;
