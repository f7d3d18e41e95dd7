-- The first answer to a request that named an idempotency key, written in the transaction of its effect: an effect
-- without its answer, or an answer without its effect, cannot exist. One-time secrets are taken out of the body.

create table idempotency (
    principal_id uuid        not null,
    method       text        not null,
    path         text        not null,
    key          text        not null,
    body_hash    bytea       not null,
    status       smallint    not null,
    headers      jsonb       not null,
    body         bytea       not null,
    created_at   timestamptz not null default engine.now(),
    primary key (principal_id, method, path, key)
);
create index idempotency_by_age on idempotency (created_at);
