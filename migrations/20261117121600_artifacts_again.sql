-- Bytes that were retired and deleted may be published again for the same version.
drop index app_artifacts_once;
create unique index app_artifacts_once
    on app_artifacts (app_slug, app_version, artifact_name, coalesce(variant, ''), digest) where deleted_at is null;
-- What was revoked for an app stays revoked, whoever registers it.
create index app_artifacts_by_app on app_artifacts (project_id, app_slug, digest);

-- A push that nobody registered is deleted in the end: from when that is decided, nobody registers it until it is gone.
alter table registry_pushes add column going_at timestamptz, add column deleted_at timestamptz;
create index registry_pushes_by_manifest on registry_pushes (repository, digest);
-- From here on nothing is registered for the intent, so that its upload can go.
alter table publish_intents add column closed_at timestamptz;
create index publish_intents_by_expiry on publish_intents (expires_at);
create index pull_intents_by_expiry on pull_intents (expires_at);
