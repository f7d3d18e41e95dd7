//! The process that promotes or retires an artifact is killed, with SIGKILL and at every step, and the next one goes on: what
//! was decided stays decided, nothing is told twice, and no byte that is needed is lost.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use activities::Env;
use clients::clock::SystemClock;
use clients::registry::{Authority, Registry, TokenServer};
use engine::{Engine, RunState, Settings, Workers};
use serde_json::{Value, json};

use super::yard::{OURS, Yard};
use crate::http::project;
use crate::support::failing::when;
use crate::support::image::Image;
use crate::support::outsider::short_lease;
use crate::support::registry::{ISSUER, SERVICE};

const ORDERS: &str = "GPUAAS_TEST_ARTIFACT_WORKER";

/// Not a story: the worker process of the stories here. It does nothing without orders.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods)]
async fn outsider() {
    let Ok(told) = std::env::var(ORDERS) else { return };
    let told: Value = serde_json::from_str(&told).expect("orders");
    let text = |field: &str| told[field].as_str().expect("text").to_owned();
    let options = sqlx::postgres::PgConnectOptions::new()
        .host(&text("host"))
        .port(u16::try_from(told["port"].as_u64().expect("a port")).expect("a port"))
        .username(&text("user"))
        .database(&text("database"));
    let (place, struck) = (text("point"), AtomicBool::new(false));
    let faults = when(move |point| {
        if point.to_string() == place && !struck.swap(true, Ordering::SeqCst) {
            signal_hook::low_level::raise(signal_hook::consts::SIGKILL).expect("a thread may strike itself");
        }
        None
    });
    let engine = Engine::with_faults(options, Settings { slots: 4, ..short_lease() }, faults);
    let clock = Arc::new(SystemClock);
    let authority = Authority::from_pem(&text("key"), clock.clone()).expect("an authority");
    let tokens = TokenServer::new(authority, ISSUER, SERVICE, clock);
    let host = text("registry");
    let registry = Registry::new(&format!("http://{host}"), &host, tokens, None).expect("a client");
    let env = Env::new(engine.clone()).with_registry(registry);
    let _workers = Workers::start(&engine, Arc::new(env), workflows::registry());
    // It ends with its parent, because it watches its standard input.
    let parent_gone = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = parent_gone.await;
    std::process::exit(0);
}

fn start(yard: &Yard, point: &str) -> Child {
    let options = &yard.story.database.options;
    let orders = json!({
        "host": options.get_host(), "port": options.get_port(), "user": options.get_username(),
        "database": yard.story.database.name, "registry": yard.registry.host, "key": yard.registry.key(), "point": point,
    });
    Command::new(std::env::current_exe().expect("this very binary"))
        .args(["--exact", "artifacts::killed::outsider", "--nocapture", "--test-threads=1"])
        .env(ORDERS, orders.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the test binary starts again")
}

/// One process after the other dies at its point of the run; each finds what those before it left behind.
async fn killed_at(yard: &Yard, points: &[String]) {
    for point in points {
        let mut child = start(yard, point);
        let died = async {
            loop {
                if let Some(status) = child.try_wait().expect("a child of ours") {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let status = tokio::time::timeout(Duration::from_secs(120), died).await;
        let status = status.unwrap_or_else(|_| panic!("nobody came to {point}"));
        assert_eq!(status.code(), None, "the process was killed at {point}, not ended");
    }
}

/// The places at which a step can be struck, in the order in which a run comes by.
fn points(kind: &str, steps: &[(&str, &[&str])]) -> Vec<String> {
    let of = |(step, places): &(&str, &[&str])| {
        places.iter().map(|place| format!("{kind}/{step}/do/{place}")).collect::<Vec<_>>()
    };
    steps.iter().flat_map(of).collect()
}

const ACTIVITY: &[&str] = &["before-effect", "after-effect", "after-commit"];
const DECISION: &[&str] = &["before-commit", "after-commit"];

async fn ends(yard: &mut Yard, accepted: &Value) {
    yard.work();
    let run = accepted["workflow"]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_whose_process_is_killed_at_each_step_promotes_once() {
    let mut yard = Yard::idle().await;
    let artifact = yard.publish(&Image::saying("hello")).await;
    let accepted = yard.act("publisher", &artifact, "promote", json!({ "channel": "dev" })).await.with(202);
    let steps = [
        ("verify_artifact", ACTIVITY),
        ("keep_verdict", DECISION),
        ("mark_promoted", &["before-commit"][..]),
    ];
    killed_at(&yard, &points("artifact.promote", &steps)).await;
    ends(&mut yard, &accepted).await;
    assert_eq!(yard.shown(&artifact).await["channels"], json!(["dev"]));
    let told = ["apps.artifact.published", "apps.artifact.verified", "apps.artifact.promoted"];
    assert_eq!(yard.events().await, told);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retirement_whose_process_is_killed_at_each_step_deletes_what_it_may_and_nothing_else() {
    let mut yard = Yard::idle().await;
    yard.policy("artifact.retire_grace_seconds", json!(0)).await;
    let (image, other) = (Image::saying("hello"), Image::saying("something else"));
    let artifact = yard.publish(&image).await;
    yard.push(&other).await;
    yard.register(&other, json!({})).await.with(201);
    let accepted = yard.act("project-admin", &artifact, "retire", json!({})).await.with(202);
    let steps = [
        ("mark_deprecated", DECISION),
        ("list_uses", ACTIVITY),
        ("mark_retired", DECISION),
        ("list_manifests", ACTIVITY),
        ("let_go", DECISION),
        ("delete_bytes", ACTIVITY),
        ("mark_deleted", &["before-commit"][..]),
    ];
    killed_at(&yard, &points("artifact.retire", &steps)).await;
    ends(&mut yard, &accepted).await;
    let repository = yard.registry.client().repository(OURS);
    assert!(repository.find_manifest(image.digest.as_str()).await.unwrap().is_none());
    assert!(repository.find_manifest(other.digest.as_str()).await.unwrap().is_some());
    let events = yard.events().await;
    assert_eq!(events[events.len() - 2..], ["apps.artifact.deprecated", "apps.artifact.retired"]);
    assert_eq!(events.len(), 4, "{events:?}");
    let shown = yard.http.get(&project("/app-artifacts?lifecycle_state=retired")).await.with(200);
    assert_eq!(shown["items"].as_array().map(Vec::len), Some(1), "{shown:#}");
    yard.end().await;
}
