//! Every move of a version survives being struck anywhere: the gates, what is frozen, and the versions that a new one
//! supersedes.

use std::sync::Arc;

use activities::Env;
use domain::VersionAction;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::version::PromoteVersion;

use super::manifest;
use crate::lifecycle::{let_time_pass, somebody, wait_for};
use crate::support::database::TestDatabase;

const ID: Uuid = Uuid::from_u128(7);
const OLDER: Uuid = Uuid::from_u128(6);

/// As the run's input says it.
fn moving(action: VersionAction, canary: &Value, supersede: bool) -> PromoteVersion {
    let input = json!({
        "version_id": ID, "app_slug": "notes", "version": "1.0.0", "action": action, "canary": canary,
        "supersede": supersede, "by": somebody(),
    });
    serde_json::from_value(input).expect("an input")
}

async fn survives(workflow: PromoteVersion, fresh_env: fn(&Engine) -> Arc<Env>) {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow,
        fresh_env,
        leftovers: changes,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staging_a_version_survives_being_struck_anywhere() {
    survives(moving(VersionAction::Stage, &Value::Null, false), |engine| catalog(engine, "draft")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_survives_being_struck_anywhere() {
    let canary = json!({ "percent": 50, "project_ids": [] });
    survives(moving(VersionAction::Canary, &canary, false), |engine| catalog(engine, "staged")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_a_version_survives_being_struck_anywhere() {
    survives(moving(VersionAction::Publish, &Value::Null, false), |engine| catalog(engine, "canary")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn superseding_the_others_survives_being_struck_anywhere() {
    survives(moving(VersionAction::Publish, &Value::Null, true), |engine| catalog(engine, "canary")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_a_canary_back_survives_being_struck_anywhere() {
    survives(moving(VersionAction::Rollback, &Value::Null, false), |engine| catalog(engine, "canary")).await;
}

/// One version with an artifact that passes every gate, and an older one that is active; nothing was told yet.
fn catalog(engine: &Engine, status: &str) -> Arc<Env> {
    let accepted = domain::manifest::take(&manifest("notes", "1.0.0")).expect("a manifest");
    let manifest = serde_json::to_string(&accepted.manifest).expect("JSON");
    let frozen = if status == "draft" { "false" } else { "true" };
    let canary = if status == "canary" { r#"'{"percent": 50, "project_ids": []}'"# } else { "null" };
    wait_for(sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "insert into organizations (id, slug, display_name) values ('{ID}', 'org', 'org') on conflict do nothing;
         insert into projects (id, org_id, slug, display_name) values ('{ID}', '{ID}', 'project', 'p')
             on conflict do nothing;
         insert into apps (id, slug, owner_org_id, owner_project_id, card)
             values ('{ID}', 'notes', '{ID}', '{ID}', '{{}}') on conflict do nothing;
         delete from app_version_artifacts;
         delete from app_versions;
         delete from app_artifacts;
         delete from publish_intents;
         delete from outbox;
         insert into publish_intents (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, repository,
                 tag, created_by, correlation_id, expires_at)
             values ('{ID}', '{ID}', '{ID}', 'notes', '1.0.0', 'runtime', 'oci', 'gpuaas/apps/project/notes', 'v',
                 '{ID}', 'c', engine.now());
         insert into app_artifacts (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, source_type,
                 repository, digest, media_type, size_bytes, lifecycle_state, trust_state, channels, intent_id, created_by,
                 correlation_id)
             values ('{ID}', '{ID}', '{ID}', 'notes', '1.0.0', 'runtime', 'oci', 'oci_registry', 'gpuaas/apps/project/notes',
                 'sha256:' || repeat('0', 64), 'application/vnd.oci.image.manifest.v1+json', 1, 'promoted', 'verified',
                 '{{prod}}', '{ID}', '{ID}', 'c');
         insert into app_versions (id, app_id, version, status, manifest, content_digest, registered_by, canary)
             values ('{OLDER}', '{ID}', '0.9.0', 'active', '{{}}', 'sha256:' || repeat('0', 64), '{ID}', null),
                    ('{ID}', '{ID}', '1.0.0', '{status}', $manifest${manifest}$manifest$, 'sha256:' || repeat('1', 64),
                     '{ID}', {canary});
         insert into app_version_artifacts (version_id, name, variant, artifact_id, digest)
             select '{ID}', 'runtime', '', '{ID}', 'sha256:' || repeat('0', 64) where {frozen}",
    )))
    .execute(engine.pool().bare()))
    .expect("a catalog");
    Arc::new(Env::new(engine.clone()))
}

/// What was told, once anything was: where both versions stand then, and what is frozen.
fn changes(env: &Env) -> Vec<String> {
    wait_for(
        sqlx::query_scalar(
            "select what from (
                 select pos as place, type as what from outbox
                 union all select 0, format('%s %s', version, status) from app_versions where exists (select 1 from outbox)
                 union all select 0, 'frozen ' || name from app_version_artifacts where exists (select 1 from outbox)
             ) changes order by place, what",
        )
        .fetch_all(env.pool().bare()),
    )
    .expect("the changes")
}
