-- What the platform itself ships, by version: names for artifacts that were published like any other.
create table platform_releases (
    id            uuid primary key,
    version       text        not null unique check (version ~ '^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$'),
    release_notes text,
    created_by    uuid        not null,
    created_at    timestamptz not null default engine.now()
);

create table platform_release_artifacts (
    release_id  uuid not null references platform_releases,
    name        text not null,
    artifact_id uuid not null references app_artifacts,
    primary key (release_id, name)
);
create index platform_release_artifacts_by_artifact on platform_release_artifacts (artifact_id);
