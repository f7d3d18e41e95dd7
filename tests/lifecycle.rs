//! Every registered workflow survives being struck anywhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use activities::Env;
use domain::VersionAction;
use engine::testing::{Check, check_workflow};
use engine::{Engine, Registry};
use futures::future::BoxFuture;
use uuid::Uuid;
use workflows::action::Requester;
use workflows::check_promises::CheckPromises;
use workflows::demo::Tour;
use workflows::reconcilers::clean_up::CleanUp;
use workflows::reconcilers::old_events::ForgetEvents;
use workflows::version::{PromoteVersion, Retirement, When};

use crate::support::database::TestDatabase;

/// All Rust below a folder, as one text for each file.
fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let read = |path: PathBuf| {
        if path.is_dir() {
            return sources(&path);
        }
        let is_rust = path.extension().is_some_and(|kind| kind == "rs");
        is_rust.then(|| std::fs::read_to_string(path).expect("a text")).into_iter().collect()
    };
    entries.flat_map(read).collect()
}

/// The types of the workflows that stories strike, by what the stories say.
fn struck() -> BTreeSet<String> {
    let mut types = BTreeSet::new();
    for text in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")) {
        let checks = text.split("Check {").skip(1);
        for (_, workflow) in checks.filter_map(|check| check.split_once("workflow: ")) {
            let path: String =
                workflow.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            // Made by a function of its own, as in `Type::new()`.
            let name = path.rsplit("::").find(|word| word.starts_with(char::is_uppercase));
            types.extend(name.map(str::to_owned));
        }
        // Scenes that several stories share say what they check by their type.
        let scenes = text.split("-> Check<").skip(1).filter_map(|scene| scene.split_once('>'));
        types.extend(scenes.map(|(name, _)| name.to_owned()));
    }
    types
}

/// The name that a type of workflow goes by.
fn name_of(text: &str, kind: &str) -> Option<String> {
    let body = text.split_once(&format!("impl Workflow for {kind} {{"))?.1;
    Some(body.split_once("const NAME: &'static str = \"")?.1.split_once('"')?.0.to_owned())
}

#[test]
fn every_registered_workflow_is_checked() {
    let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows/src"));
    let checked: BTreeSet<String> =
        struck().iter().flat_map(|kind| all.iter().filter_map(|text| name_of(text, kind))).collect();
    let registry: Registry<Env> = workflows::registry();
    let unchecked: Vec<&str> =
        registry.kinds().iter().map(|k| k.name).filter(|name| !checked.contains(*name)).collect();
    assert!(unchecked.is_empty(), "no story strikes {unchecked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_tour_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Tour { thing: "desk 4".into(), busy_tries: 0, wait_seconds: 60, fits: true },
        fresh_env: |engine| Arc::new(Env::new(engine.clone())),
        leftovers: Env::desk,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nightly_check_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: CheckPromises {},
        fresh_env: |engine| Arc::new(Env::new(engine.clone())),
        leftovers: |_env| Vec::new(),
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_old_events_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: ForgetEvents {},
        fresh_env: old_and_new_events,
        leftovers: misjudged,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaning_up_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: CleanUp {},
        fresh_env: old_and_new_answers,
        leftovers: answers,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

fn old_and_new_answers(engine: &Engine) -> Arc<Env> {
    wait_for(sqlx::raw_sql(
        "delete from idempotency;
         insert into idempotency (principal_id, method, path, key, body_hash, status, headers, body, created_at)
             select gen_random_uuid(), 'POST', '/', n, '', 201, '{}', '', engine.now() - case
                 when n <= 3 then interval '25 hours' else interval '1 hour' end from generate_series(1, 5) n",
    )
    .execute(engine.pool().bare()))
    .expect("answers");
    Arc::new(Env::new(engine.clone()))
}

fn answers(env: &Env) -> Vec<String> {
    let all = "select 'kept ' || key from idempotency order by 1";
    wait_for(sqlx::query_scalar(all).fetch_all(env.pool().bare())).expect("what is kept")
}

/// Three old events, told before two new ones.
fn old_and_new_events(engine: &Engine) -> Arc<Env> {
    wait_for(sqlx::raw_sql(
        "delete from outbox; delete from event_counters; insert into event_counters values (gen_random_uuid(), 5, 0);
         insert into outbox (id, project_id, seq, type, subject, data, correlation_id, at)
             select gen_random_uuid(), project_id, n, 'apps.version.staged', 'v', '{}', 'c', engine.now() - case
                 when n <= 3 then interval '31 days' else interval '1 day' end
             from event_counters, generate_series(1, 5) n",
    )
    .execute(engine.pool().bare()))
    .expect("events");
    Arc::new(Env::new(engine.clone()))
}

/// What is wrong with what is kept: wherever it was struck, nothing new is gone, and what the counter says is.
fn misjudged(env: &Env) -> Vec<String> {
    let wrong = "select 'gone ' || n from event_counters c, generate_series(c.forgotten + 1, 5) n
            where not exists (select from outbox o where o.project_id = c.project_id and o.seq = n)
        union all select 'kept ' || o.seq from outbox o join event_counters c using (project_id) where o.seq <= c.forgotten
        union all select 'too far ' || forgotten from event_counters where forgotten > 3 order by 1";
    wait_for(sqlx::query_scalar(wrong).fetch_all(env.pool().bare())).expect("what is kept")
}

#[tokio::test(flavor = "multi_thread")]
async fn promoting_a_version_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: PromoteVersion {
            version_id: VERSION,
            app_slug: "notes".into(),
            version: "1.0.0".into(),
            action: VersionAction::Deprecate,
            canary: None,
            supersede: false,
            by: somebody(),
            throwaway: None,
        },
        fresh_env: active_version,
        leftovers: changes,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retiring_a_version_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Retirement { version_id: VERSION, when: When::Unused, grace_seconds: 60, by: somebody() },
        fresh_env: active_version,
        leftovers: changes,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retiring_a_version_that_is_used_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Retirement { version_id: VERSION, when: When::Unused, grace_seconds: 60, by: somebody() },
        fresh_env: used_version,
        leftovers: changes,
        while_waiting: let_go_once_it_is_waited_for,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retiring_a_version_now_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Retirement { version_id: VERSION, when: When::Now, grace_seconds: 0, by: somebody() },
        fresh_env: active_version,
        leftovers: changes,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

/// The same catalog, and an instance that runs the version.
fn used_version(engine: &Engine) -> Arc<Env> {
    let env = active_version(engine);
    wait_for(sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "insert into app_instances (id, org_id, project_id, app_slug, version, display_name, status, operating_mode,
             control_plane_scope, runtime_backend, placement_intent, config, resources, correlation_id, created_by)
         values ('{VERSION}', '{VERSION}', '{VERSION}', 'notes', '1.0.0', 'notebook', 'running', 'tenant_dedicated', 'project',
             'launchable_oci', '{{}}', '{{}}', '{{}}', 'c', '{VERSION}')
         on conflict (id) do update set status = 'running'",
    )))
    .execute(engine.pool().bare()))
    .expect("an instance");
    env
}

/// The instance goes only when the run was seen to wait for it, so the loop is gone through at least once.
fn let_go_once_it_is_waited_for(engine: Engine, run: Uuid) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        sqlx::query(
            "update app_instances set status = 'decommissioned'
             where exists (select 1 from engine.steps_of($1) where name = 'reference_gone')",
        )
        .bind(run)
        .execute(engine.pool().bare())
        .await
        .expect("the instance lets go");
        let_time_pass(engine, run).await;
    })
}

pub const VERSION: Uuid = Uuid::from_u128(7);

pub fn somebody() -> Requester {
    let actor_type = domain::ActorType::User;
    Requester { actor_id: Uuid::nil(), actor_type, actor_role: None, reason: None }
}

/// A catalog with one active version, of which nothing was told yet.
pub fn active_version(engine: &Engine) -> Arc<Env> {
    wait_for(sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "insert into organizations (id, slug, display_name) values ('{VERSION}', 'org', 'org') on conflict do nothing;
         insert into projects (id, org_id, slug, display_name) values ('{VERSION}', '{VERSION}', 'project', 'p')
             on conflict do nothing;
         insert into apps (id, slug, owner_org_id, owner_project_id, card)
             values ('{VERSION}', 'notes', '{VERSION}', '{VERSION}', '{{}}') on conflict do nothing;
         delete from app_versions;
         delete from outbox;
         insert into app_versions (id, app_id, version, status, manifest, content_digest, registered_by)
             values ('{VERSION}', '{VERSION}', '1.0.0', 'active', '{{}}', 'sha256:' || repeat('0', 64), '{VERSION}')",
    )))
    .execute(engine.pool().bare()))
    .expect("a version");
    Arc::new(Env::new(engine.clone()))
}

/// The version's status if it moved, and everything that was told of it.
fn changes(env: &Env) -> Vec<String> {
    wait_for(
        sqlx::query_scalar(
            "select what from (select 0 as place, status as what from app_versions where status <> 'active'
             union all select pos, type from outbox) changes order by place",
        )
        .fetch_all(env.pool().bare()),
    )
    .expect("the changes")
}

/// The checker asks between runs, from plain functions.
pub fn wait_for<T>(asked: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(asked))
}

/// The tour waits for the clock and for a word; both come with time.
pub fn let_time_pass(engine: Engine, _run: Uuid) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        sqlx::query("update engine.test_clock set ahead = ahead + make_interval(secs => $1)")
            .bind(Duration::from_secs(61).as_secs_f64())
            .execute(engine.pool().bare())
            .await
            .expect("the clock moves");
        engine.wake();
    })
}
