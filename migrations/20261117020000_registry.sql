-- Credentials for the image registry: each reaches one repository until a moment. The id is the user name, and what the
-- registry calls whoever used it. Of the secret only a hash is kept: it has 256 random bits, so a plain hash is enough.
create table registry_credentials (
    id          uuid primary key,
    org_id      uuid        not null,
    project_id  uuid        not null,
    repository  text        not null,
    may_push    boolean     not null,
    secret_hash bytea       not null,
    created_at  timestamptz not null default engine.now(),
    expires_at  timestamptz not null,
    revoked_at  timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id)
);
create index registry_credentials_by_expiry on registry_credentials (expires_at);

-- Secrets that wait to be fetched once. Whoever has this table and the sealing keys still lacks the token that opens a row:
-- only its hash is here.
create table wrapped_secrets (
    token_hash  bytea primary key,
    sealed      text        not null,
    purpose     text        not null,
    ttl_seconds integer     not null check (ttl_seconds > 0),
    created_at  timestamptz not null default engine.now(),
    expires_at  timestamptz not null
);
create index wrapped_secrets_by_expiry on wrapped_secrets (expires_at);

-- What the registry told of pushes. Hints for people: nothing is believed because it stands here.
create table registry_pushes (
    -- The registry's own id of the event, by which a repetition is known.
    event_id      text primary key,
    credential_id uuid        not null,
    repository    text        not null,
    digest        text        not null,
    tag           text,
    media_type    text,
    size_bytes    bigint,
    received_at   timestamptz not null default engine.now()
);
create index registry_pushes_by_credential on registry_pushes (credential_id, received_at);
