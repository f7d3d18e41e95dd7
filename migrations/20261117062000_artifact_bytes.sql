-- Whose bytes are whose. An index names manifests that a node may run, so they are kept as long as it is.
alter table app_artifacts
    add column children text[] not null default '{}',
    -- The manifests that are deleted with a retired artifact, from the moment that is decided; null before. From then on
    -- the row has no claim on any bytes, and nobody registers these until `deleted_at`.
    add column going    text[];

-- Who still needs the manifests of a repository, and which of them are on their way out.
create index app_artifacts_claiming on app_artifacts (repository) where deleted_at is null;
create index app_version_artifacts_by_artifact on app_version_artifacts (artifact_id);
