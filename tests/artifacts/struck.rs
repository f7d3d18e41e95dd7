//! The workflows of artifacts survive being struck anywhere. The registry is a shelf of manifests in this process.

use std::sync::Arc;

use activities::Env;
use domain::artifact::Channel;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use uuid::Uuid;
use workflows::artifact::{Deprecation, Promotion, Withdrawal};
use workflows::reconcilers::retention::ClearAway;
use workflows::version::When;

use crate::lifecycle::{let_time_pass, somebody, wait_for};
use crate::support::database::TestDatabase;
use crate::support::registry;

const ID: Uuid = Uuid::from_u128(7);
const IMAGE: &str = "an image of these stories";

#[tokio::test(flavor = "multi_thread")]
async fn promoting_an_artifact_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Promotion { artifact_id: ID, channel: Channel::Dev, by: somebody() },
        fresh_env: published_artifact,
        leftovers: of_artifact,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deprecating_an_artifact_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Deprecation { artifact_id: ID, by: somebody() },
        fresh_env: published_artifact,
        leftovers: of_artifact,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retiring_an_artifact_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Withdrawal {
            artifact_id: ID,
            when: When::Unused,
            grace_seconds: 60,
            keep_seconds: 60,
            by: somebody(),
        },
        fresh_env: published_artifact,
        leftovers: of_artifact,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_away_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: ClearAway {},
        fresh_env: long_ago,
        leftovers: of_what_is_needed,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

const STRAY: &str = "an image that nobody registered";

/// A registered image and another that was never registered, both pushed long ago; an intent that came to nothing.
fn long_ago(engine: &Engine) -> Arc<Env> {
    let env = published_artifact(engine);
    let stray = registry::shelve(STRAY);
    wait_for(sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "delete from registry_pushes;
         update publish_intents set expires_at = engine.now() - interval '30 days';
         insert into publish_intents (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, repository,
                 tag, created_by, correlation_id, expires_at)
             values (gen_random_uuid(), '{ID}', '{ID}', 'notes', '2.0.0', 'runtime', 'oci', 'gpuaas/apps/project/notes',
                 'v', '{ID}', 'c', engine.now() - interval '30 days');
         insert into registry_pushes (event_id, credential_id, repository, digest, received_at)
             select digest, '{ID}', 'gpuaas/apps/project/notes', digest, engine.now() - interval '30 days'
             from (select digest from app_artifacts union select '{stray}') pushed",
    )))
    .execute(engine.pool().bare()))
    .expect("a past");
    env
}

/// Whatever is gone and should not be; and a stray that is gone although nobody had decided so.
fn of_what_is_needed(env: &Env) -> Vec<String> {
    let (intents, undecided): (i64, i64) = wait_for(
        sqlx::query_as(
            "select (select count(*) from publish_intents i join app_artifacts a on a.intent_id = i.id),
                    (select count(*) from registry_pushes p where going_at is null
                         and not exists (select 1 from app_artifacts a where a.digest = p.digest))",
        )
        .fetch_one(env.pool().bare()),
    )
    .expect("what is left");
    let mut wrong = Vec::new();
    wrong.extend((intents != 1).then(|| "the intent of the artifact is gone".to_owned()));
    wrong.extend(
        (!registry::is_shelved(&registry::shelved_as(IMAGE))).then(|| "the image is deleted".to_owned()),
    );
    let lost = undecided > 0 && !registry::is_shelved(&registry::shelved_as(STRAY));
    wrong.extend(lost.then(|| "the stray went before that was decided".to_owned()));
    wrong
}

/// A registry with one image, which is registered and of which nothing was told yet.
fn published_artifact(engine: &Engine) -> Arc<Env> {
    let digest = registry::shelve(IMAGE);
    wait_for(sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "insert into organizations (id, slug, display_name) values ('{ID}', 'org', 'org') on conflict do nothing;
         insert into projects (id, org_id, slug, display_name) values ('{ID}', '{ID}', 'project', 'p')
             on conflict do nothing;
         delete from app_artifacts;
         delete from publish_intents;
         delete from outbox;
         insert into publish_intents (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, repository,
                 tag, created_by, correlation_id, expires_at)
             values ('{ID}', '{ID}', '{ID}', 'notes', '1.0.0', 'runtime', 'oci', 'gpuaas/apps/project/notes', 'v',
                 '{ID}', 'c', engine.now());
         insert into app_artifacts (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, source_type,
                 repository, digest, media_type, size_bytes, intent_id, created_by, correlation_id)
             values ('{ID}', '{ID}', '{ID}', 'notes', '1.0.0', 'runtime', 'oci', 'oci_registry',
                 'gpuaas/apps/project/notes', '{digest}', 'application/vnd.oci.image.manifest.v1+json', 1, '{ID}',
                 '{ID}', 'c')",
    )))
    .execute(engine.pool().bare()))
    .expect("an artifact");
    Arc::new(Env::new(engine.clone()).with_registry(registry::shelf().registry))
}

/// Whatever is not as it was, in the database, in the registry and in what was told.
fn of_artifact(env: &Env) -> Vec<String> {
    let mut changes: Vec<String> = wait_for(
        sqlx::query_scalar(
            "select what from (
                 select 0 as place, format('%s %s %s', lifecycle_state, channels, deleted_at is not null) as what
                     from app_artifacts where lifecycle_state <> 'published'
                 union all select pos, type from outbox) changes order by place",
        )
        .fetch_all(env.pool().bare()),
    )
    .expect("the changes");
    let there: Option<String> =
        wait_for(sqlx::query_scalar("select digest from app_artifacts").fetch_one(env.pool().bare()))
            .expect("a digest");
    let digest = there.unwrap_or_default().parse().expect("a digest");
    changes.extend((!registry::is_shelved(&digest)).then(|| "the image is deleted".to_owned()));
    changes
}
