-- Keys whose signatures a project accepts. Only public halves are kept; a retired one vouches for nothing new.
create table signing_keys (
    id         uuid primary key,
    org_id     uuid        not null,
    project_id uuid        not null,
    name       text        not null check (is_slug(name)),
    algorithm  text        not null check (algorithm = 'ecdsa_p256_sha256'),
    public_key text        not null,
    created_by uuid        not null,
    created_at timestamptz not null default engine.now(),
    retired_at timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id)
);
create unique index signing_keys_by_name on signing_keys (project_id, name) where retired_at is null;
create index signing_keys_by_project on signing_keys (project_id, id);

-- The permission to publish one artifact of a version. An image goes to the repository with the credential of the same id;
-- a blob is uploaded to us, in as many parts as it takes.
create table publish_intents (
    id              uuid primary key,
    org_id          uuid        not null,
    project_id      uuid        not null,
    app_slug        text        not null,
    app_version     text        not null,
    artifact_name   text        not null,
    variant         text,
    artifact_kind   text        not null check (artifact_kind in ('oci', 'blob')),
    repository      text        check ((artifact_kind = 'oci') = (repository is not null)),
    tag             text        check ((artifact_kind = 'oci') = (tag is not null)),
    source_uri      text        check ((artifact_kind = 'blob') = (source_uri is not null)),
    max_bytes       bigint      check ((artifact_kind = 'blob') = (max_bytes is not null)),
    expected_digest text        check (expected_digest ~ '^sha256:[0-9a-f]{64}$'),
    signing_key_id  uuid        references signing_keys,
    created_by      uuid        not null,
    correlation_id  text        not null,
    created_at      timestamptz not null default engine.now(),
    expires_at      timestamptz not null,
    foreign key (project_id, org_id) references projects (id, org_id)
);
create index publish_intents_by_repository on publish_intents (project_id, repository);
create index publish_intents_by_source on publish_intents (project_id, source_uri);

-- What an app runs, by digest. `lifecycle_state` and `trust_state` move along the tables in `domain` and nowhere else.
create table app_artifacts (
    id              uuid primary key,
    org_id          uuid        not null,
    project_id      uuid        not null,
    app_slug        text        not null,
    app_version     text        not null,
    artifact_name   text        not null,
    variant         text,
    artifact_kind   text        not null check (artifact_kind in ('oci', 'blob')),
    source_type     text        not null check (source_type in ('oci_registry', 'artifact_store')),
    repository      text        check ((artifact_kind = 'oci') = (repository is not null)),
    source_uri      text        check ((artifact_kind = 'blob') = (source_uri is not null)),
    tag             text,
    digest          text        not null check (digest ~ '^sha256:[0-9a-f]{64}$'),
    media_type      text        not null,
    size_bytes      bigint      not null check (size_bytes >= 0),
    visibility      text        not null default 'project' check (visibility in ('platform', 'tenant', 'project')),
    lifecycle_state text        not null default 'published'
        check (lifecycle_state in ('published', 'promoted', 'deprecated', 'retired')),
    trust_state     text        not null default 'unverified'
        check (trust_state in ('unverified', 'verified', 'failed_verification', 'revoked')),
    channels        text[]      not null default '{}' check (channels <@ array['dev', 'test', 'staging', 'prod']),
    -- What the last verification found: which checks, which key, the signature's own digest and payload.
    evidence        jsonb       not null default '{}',
    intent_id       uuid        not null references publish_intents,
    created_by      uuid        not null,
    correlation_id  text        not null,
    created_at      timestamptz not null default engine.now(),
    updated_at      timestamptz not null default engine.now(),
    -- When the registry's copy was deleted.
    deleted_at      timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id)
);
create unique index app_artifacts_once on app_artifacts (app_slug, app_version, artifact_name, coalesce(variant, ''), digest);
create index app_artifacts_by_project on app_artifacts (project_id, id);
create index app_artifacts_by_digest on app_artifacts (repository, digest);

-- The permission to pull one artifact, bound to who asked or to a node. The credential of the same id reaches the
-- repository; which digest it was meant for is kept here.
create table pull_intents (
    id             uuid primary key,
    org_id         uuid        not null,
    project_id     uuid        not null,
    artifact_id    uuid        not null references app_artifacts,
    repository     text        not null,
    digest         text        not null,
    node_id        uuid,
    created_by     uuid        not null,
    correlation_id text        not null,
    created_at     timestamptz not null default engine.now(),
    expires_at     timestamptz not null,
    foreign key (project_id, org_id) references projects (id, org_id)
);
create index pull_intents_by_artifact on pull_intents (artifact_id);
