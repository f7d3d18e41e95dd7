//! A node registers its own key once and speaks for itself alone from then on.

use agent::{Home, Newcomer, Simulated, enrol};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use node_protocol::{Inventory, Key, Keyring, Signed, assert_identity};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::update::clock_of;
use crate::artifacts::yard::Yard;
use crate::http::{Http, admin};
use crate::support::agent::{Door, RunningAgent, now_of, token};
use crate::support::machine::Machine;
use crate::support::node::{Node, enrolment};
use crate::support::realm::PLATFORM;
use crate::support::story::Story;

const ENROLL: &str = "/internal/v1/nodes/enroll";

#[tokio::test(flavor = "multi_thread")]
async fn an_enrolment_token_registers_one_key_once() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = http.post(&admin("/nodes"), json!({ "name": "gpu-1" })).await.with(201);
    assert_eq!((&made["status"], &made["driver"]), (&json!("enrolling"), &json!(null)));
    let token = made["enrolment_token"].as_str().unwrap();
    let nobody = http.bearing("");
    let key = Key::generate();
    assert_eq!(nobody.post(ENROLL, enrolment("enrol-guess", &key)).await.with(401)["code"], "token_invalid");
    let enrolled = nobody.post(ENROLL, enrolment(token, &key)).await.with(200);
    assert_eq!(enrolled["key_id"], key.id());
    let again = nobody.post(ENROLL, enrolment(token, &Key::generate())).await.with(401);
    assert_eq!(again["code"], "token_invalid");
    let node = http.get(&admin(&format!("/nodes/{}", made["id"].as_str().unwrap()))).await.with(200);
    assert_eq!((&node["status"], &node["driver"]), (&json!("active"), &json!("simulated")));
    assert_eq!(node["inventory"]["gpus"].as_array().unwrap().len(), 8);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enrolment_whose_answer_was_lost_is_answered_again_and_nothing_changes() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = http.post(&admin("/nodes"), json!({ "name": "gpu-1" })).await.with(201);
    let (token, key, nobody) = (made["enrolment_token"].as_str().unwrap(), Key::generate(), http.bearing(""));
    let first = nobody.post(ENROLL, enrolment(token, &key)).await.with(200);
    let node = admin(&format!("/nodes/{}", made["id"].as_str().unwrap()));
    http.post(&format!("{node}/drain"), json!({})).await.with(200);
    let before = http.get(&node).await.with(200);
    let again = nobody.post(ENROLL, enrolment(token, &key)).await.with(200);
    assert_eq!((&again["node_id"], &again["keyring"]), (&first["node_id"], &first["keyring"]));
    nobody.post(ENROLL, enrolment(token, &Key::generate())).await.with(401);
    let after = http.get(&node).await.with(200);
    assert_eq!((&after, &after["status"]), (&before, &json!("drained")));
    let told = "select count(*) from audit where action = 'enroll_node' and actor_type = 'node'";
    let told: i64 = sqlx::query_scalar(told).fetch_one(&story.pool).await.unwrap();
    assert_eq!(told, 1, "it enrolled once");
    story.advance(std::time::Duration::from_secs(24 * 3600 + 1)).await;
    nobody.post(ENROLL, enrolment(token, &key)).await.with(401);
    story.end().await;
}

/// The way between the two is cut at the worst moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_heard_no_answer_asks_again_and_is_the_node() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (door, token) = (Door::open(&http).await, token(&http, "gpu-1").await);
    let folder = std::env::temp_dir().join(format!("gpuaas-agent-{}", uuid::Uuid::now_v7()));
    let home = Home::at(&folder).unwrap();
    let inventory = Inventory { cpu_cores: 8, memory_gib: 64, gpus: vec![], machine: None };
    let ask = async || {
        let key = home.newcomer(&token).unwrap();
        let driver = "simulated";
        let node =
            Newcomer { key: &key, address: "127.0.0.1", driver, agent_version: "t", inventory: &inventory };
        (enrol(&door.url, &token, &node).await, key)
    };
    door.lose_answers();
    assert!(ask().await.0.is_err());
    door.cut(false);
    let (answered, key) = ask().await;
    let (identity, enrolled) = answered.unwrap();
    home.enrolled(&identity, &key, &enrolled.keyring).unwrap();
    assert_eq!(home.key().unwrap().id(), enrolled.key_id);
    assert!(home.identity().unwrap().came_by(&token));
    std::fs::remove_dir_all(&folder).unwrap();
    story.end().await;
}

/// What a machine is: the node, and the key that the platform knows it by.
async fn who(yard: &Yard, machine: &Machine) -> (Value, Option<String>) {
    let known = sqlx::query_scalar("select key_id from nodes where id = $1").bind(machine.id);
    let known: Option<String> = known.fetch_one(&yard.story.pool).await.unwrap();
    let key = Home::at(&machine.home("")).unwrap().key().unwrap();
    assert_eq!(known, Some(key.id()), "{}", machine.said());
    let identity = machine.read("identity.json").unwrap();
    assert_eq!((&identity["node_id"], machine.read("newcomer.json")), (&json!(machine.id), None));
    (identity, known)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_started_again_with_its_enrolment_line_goes_on_as_the_node_it_is() {
    let yard = Yard::new().await;
    let clock = clock_of(&yard);
    let mut machine = Machine::start(&yard, 60).await;
    let before = who(&yard, &machine).await;
    assert!(machine.stop().success());
    let last = machine.sequence(&yard).await;
    machine.enrol_again();
    machine.reports(&yard, last).await;
    assert_eq!(who(&yard, &machine).await, before);
    assert!(machine.stop().success());
    clock.abort();
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_enrols_anew_is_another_node() {
    let yard = Yard::new().await;
    let clock = clock_of(&yard);
    let mut machine = Machine::start(&yard, 60).await;
    let (first, before) = (machine.id, who(&yard, &machine).await);
    assert!(machine.stop().success());
    machine.enrol_anew(&yard, "gpu-2").await;
    machine.reports(&yard, 0).await;
    let after = who(&yard, &machine).await;
    assert_ne!((machine.id, &after.1), (first, &before.1));
    assert!(machine.stop().success());
    clock.abort();
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_reached_at_the_address_it_was_started_with_last() {
    let yard = Yard::new().await;
    let clock = clock_of(&yard);
    let mut machine = Machine::start(&yard, 60).await;
    let is_at = "select address = $2[1] from nodes where id = $1";
    yard.story.until_true("it is here", is_at, machine.id, &["127.0.0.1"]).await;
    assert!(machine.stop().success());
    machine.start_again_at("10.0.7.2");
    yard.story.until_true("it is there", is_at, machine.id, &["10.0.7.2"]).await;
    assert!(machine.stop().success());
    let last = machine.sequence(&yard).await;
    machine.start_again();
    machine.reports(&yard, last).await;
    yard.story.until_true("it stays where it was", is_at, machine.id, &["10.0.7.2"]).await;
    assert!(machine.stop().success());
    clock.abort();
    yard.end().await;
}

/// What an earlier release does with a heartbeat that says more than it knows.
async fn knows_no_address(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    let said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if head.uri.path().ends_with("/heartbeat") && said.get("address").is_some() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    next.run(Request::from_parts(head, bytes.into())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_heard_by_a_platform_that_knows_less_of_it() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let earlier = api::router(http.state.clone(), Router::new()).layer(from_fn(knows_no_address));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, earlier).await });
    let made = token(&http, "gpu-1").await;
    let agent = RunningAgent::join(&url, &made, &Simulated::new(), now_of(&http)).await;
    let reports = "select report_sequence > 1 and $2::text[] is not null from nodes where id = $1";
    story.until_true("it is heard", reports, agent.id, &[]).await;
    agent.end().await;
    serving.abort();
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enrolment_token_ends_after_a_day() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = http.post(&admin("/nodes"), json!({ "name": "gpu-1" })).await.with(201);
    story.advance(std::time::Duration::from_secs(24 * 3600 + 1)).await;
    let body = enrolment(made["enrolment_token"].as_str().unwrap(), &Key::generate());
    http.bearing("").post(ENROLL, body).await.with(401);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_enrolment_token_is_told_once_and_kept_nowhere() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let ask = || {
        http.send(
            axum::http::Method::POST,
            "/api/v1/admin/nodes",
            &[("idempotency-key", "k1")],
            Some(json!({ "name": "gpu-1" })),
        )
    };
    let first = ask().await.with(201);
    let token = first["enrolment_token"].as_str().unwrap().to_owned();
    let replay = ask().await.with(201);
    assert_eq!(
        (&replay["enrolment_token"], &replay["secret_already_delivered"]),
        (&json!(null), &json!(true))
    );
    let kept: String = sqlx::query_scalar(
        "select string_agg(t::text, ' ') from (select n::text as t from nodes n union all select a::text from audit a
         union all select convert_from(body, 'utf8') from idempotency) all_rows",
    )
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert!(!kept.contains(&token), "the token rests in the database");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_proves_its_own_key_and_each_proof_counts_once() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let stranger = Key::generate();
    assert_eq!(Node::token(&http, node.id, &stranger).await.with(401)["code"], "token_invalid");
    let assertion = assert_identity(&node.key, node.id, PLATFORM, http.realm.now());
    let body = json!({ "key_id": node.key.id(), "assertion": assertion.expose() });
    let (path, nobody) = (node.path("/token"), http.bearing(""));
    nobody.post(&path, body.clone()).await.with(200);
    assert_eq!(nobody.post(&path, body).await.with(401)["code"], "token_invalid");
    let elsewhere = assert_identity(&node.key, node.id, "https://another.test", http.realm.now());
    let body = json!({ "key_id": node.key.id(), "assertion": elsewhere.expose() });
    assert_eq!(nobody.post(&path, body).await.with(401)["code"], "token_scope_invalid");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_speaks_for_itself_alone() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let (one, other) = (Node::enrol(&http, "gpu-1").await, Node::enrol(&http, "gpu-2").await);
    one.beats(1, json!([])).await.with(200);
    let as_other = Node { http: one.http.clone(), ..other };
    assert_eq!(as_other.beats(1, json!([])).await.with(403)["code"], "insufficient_permissions");
    let as_person = Node { http: http.clone(), ..as_other };
    as_person.beats(1, json!([])).await.with(403);
    one.http.get(&admin("/nodes")).await.with(403);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_report_changes_nothing_and_the_answer_is_signed() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let workload = json!({
        "instance_id": uuid::Uuid::nil(), "member": "main", "generation": 1, "state": "running", "health": "healthy",
        "usage": { "cpu_milliseconds": 5, "memory_bytes": 7 },
    });
    let answer = node.beats(5, json!([workload])).await.with(200);
    let signed: Signed = serde_json::from_value(answer["keyring"].clone()).unwrap();
    let key = node.keyring.believed(&signed.key_id).expect("a signer that is believed already");
    assert_eq!(signed.open::<Keyring>(&key).unwrap(), node.keyring);
    node.beats(4, json!([])).await.with(200);
    let shown = http.get(&admin(&format!("/nodes/{}", node.id))).await.with(200);
    assert_eq!(shown["workloads"].as_array().unwrap().len(), 1, "{shown:#}");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_by_another_driver_than_the_nodes_is_refused_and_keeps_the_one_before() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let beat = async |sequence: i64, driver: &str| {
        let body =
            json!({ "sequence": sequence, "agent_version": "test", "driver": driver, "workloads": [] });
        node.http.send(axum::http::Method::POST, &node.path("/heartbeat"), &[], Some(body)).await
    };
    beat(1, "simulated").await.with(200);
    assert_eq!(beat(2, "docker").await.with(409)["code"], "state_conflict");
    let kept: i64 =
        sqlx::query_scalar("select report_sequence from nodes").fetch_one(&story.pool).await.unwrap();
    assert_eq!(kept, 1, "a node that became another is not heard, and is given up for lost in time");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_is_asked_for_once_and_again_without_effect() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let at = |verb: &str| admin(&format!("/nodes/{}/{verb}", node.id));
    for _ in 0..2 {
        let drained = http.post(&at("drain"), json!({})).await.with(200);
        assert_eq!(
            (&drained["status"], &drained["allowed_actions"]),
            (&json!("drained"), &json!(["activate", "update"]))
        );
    }
    assert_eq!(http.post(&at("activate"), json!({})).await.with(200)["status"], "active");
    let new = http.post(&admin("/nodes"), json!({ "name": "gpu-2" })).await.with(201);
    let path = admin(&format!("/nodes/{}/drain", new["id"].as_str().unwrap()));
    assert_eq!(http.post(&path, json!({})).await.with(409)["details"]["state"], "enrolling");
    story.end().await;
}
